#include "pressure.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_text.h"

// Two lines of four numbers.
#define PRESSURE_MAX 512

bool ioat_pressure_parse_cgroup(const char *text, char step[PATH_MAX])
{
    // Version 2 is hierarchy 0, and names no controllers: cgroups(7).
    const char *line = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
    if (line == NULL)
        return false;
    const char *path = line + (*line == '\n' ? 4 : 3);
    const size_t length = strcspn(path, "\n");
    static const char own[] = "/slurm", prefix[] = "/step_";
    const size_t parent = length - (length < strlen(own) ? length : strlen(own));
    if (parent == 0 || parent >= PATH_MAX || strncmp(path + parent, own, strlen(own)) != 0)
        return false;
    memcpy(step, path, parent);
    step[parent] = '\0';
    const char *name = strrchr(step, '/');
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

bool ioat_pressure_parse(const char *text, uint64_t *stalled_us)
{
    static const char begin[] = "some ", total[] = " total=";
    if (strncmp(text, begin, strlen(begin)) != 0)
        return false;
    const char *found = strstr(text, total);
    if (found == NULL || found > strchr(text, '\n'))
        return false;
    const char *digits = found + strlen(total);
    char *end = NULL;
    errno = 0;
    *stalled_us = strtoull(digits, &end, 10);
    return *digits >= '0' && *digits <= '9' && errno == 0 && *end == '\n';
}

bool ioat_pressure_read(const char *hierarchy, uint64_t *stalled_us)
{
    char text[PATH_MAX + PRESSURE_MAX], step[PATH_MAX], path[2 * PATH_MAX];
    if (!ioat_kernel_text("/proc/self/cgroup", text, sizeof text) ||
        !ioat_pressure_parse_cgroup(text, step))
        return false;
    snprintf(path, sizeof path, "%s%s/io.pressure", hierarchy, step);
    return ioat_kernel_text(path, text, sizeof text) && ioat_pressure_parse(text, stalled_us);
}

#include "pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static bool read_text(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t length = read(fd, text, size - 1);
    close(fd);
    if (length < 0)
        return false;
    text[length] = '\0';
    return true;
}

bool ioat_pressure_read(const char *hierarchy, uint64_t *stalled_us)
{
    char text[PATH_MAX + PRESSURE_MAX], step[PATH_MAX], path[2 * PATH_MAX];
    if (!read_text("/proc/self/cgroup", text, sizeof text) ||
        !ioat_pressure_parse_cgroup(text, step))
        return false;
    snprintf(path, sizeof path, "%s%s/io.pressure", hierarchy, step);
    return read_text(path, text, sizeof text) && ioat_pressure_parse(text, stalled_us);
}

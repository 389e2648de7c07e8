#include "measures.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "kernel_text.h"

// Seven lines of a name and a number.
#define IO_MAX 512

static const char *const NAMES[IOAT_MEASURES_COUNT] = {
    "rchar",
    "wchar",
    "syscr",
    "syscw",
    "read_bytes",
    "write_bytes",
    // Written and deleted before it reached the storage.
    "cancelled_write_bytes",
    "user_us",
    "system_us",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
};

static bool parse_line(const char *text, const char *name, uint64_t *value)
{
    const size_t length = strlen(name);
    for (const char *line = text; line != NULL;) {
        if (strncmp(line, name, length) == 0 && strncmp(line + length, ": ", 2) == 0) {
            const char *digits = line + length + 2;
            char *end = NULL;
            errno = 0;
            *value = strtoull(digits, &end, 10);
            return *digits >= '0' && *digits <= '9' && errno == 0 && *end == '\n';
        }
        const char *next = strchr(line, '\n');
        line = next == NULL ? NULL : next + 1;
    }
    return false;
}

bool ioat_measures_parse_io(const char *text, struct ioat_measures *measures)
{
    for (size_t i = 0; i < IOAT_MEASURES_IO; i++)
        if (!parse_line(text, NAMES[i], &measures->values[i]))
            return false;
    return true;
}

static bool read_io(struct ioat_measures *measures)
{
    char text[IO_MAX];
    return ioat_kernel_text("/proc/self/io", text, sizeof text) &&
           ioat_measures_parse_io(text, measures);
}

static uint64_t not_negative(long number)
{
    return number > 0 ? (uint64_t)number : 0;
}

static uint64_t microseconds(const struct timeval *time)
{
    return not_negative(time->tv_sec) * 1000000 + not_negative(time->tv_usec);
}

bool ioat_measures_read(struct ioat_measures *measures)
{
    struct rusage children;
    if (!read_io(measures) || getrusage(RUSAGE_CHILDREN, &children) != 0)
        return false;
    uint64_t *values = measures->values + IOAT_MEASURES_IO;
    values[0] = microseconds(&children.ru_utime);
    values[1] = microseconds(&children.ru_stime);
    values[2] = not_negative(children.ru_majflt);
    values[3] = not_negative(children.ru_nvcsw);
    values[4] = not_negative(children.ru_nivcsw);
    return true;
}

void ioat_measures_subtract(struct ioat_measures *measures, const struct ioat_measures *before)
{
    for (size_t i = 0; i < IOAT_MEASURES_COUNT; i++) {
        uint64_t *value = &measures->values[i];
        *value = *value > before->values[i] ? *value - before->values[i] : 0;
    }
}

void ioat_measures_name(uint32_t step_id, char name[IOAT_MEASURES_NAME_SIZE])
{
    snprintf(name, IOAT_MEASURES_NAME_SIZE, "step-%" PRIu32 ".measures", step_id);
}

// The longest text is 13 names and numbers of 20 digits: it fits.
size_t ioat_measures_format(const struct ioat_measures *measures, uint32_t step_id,
                            char text[IOAT_MEASURES_TEXT_SIZE])
{
    int length = snprintf(text, IOAT_MEASURES_TEXT_SIZE,
                          "io-autotune-measures 1\nstep %" PRIu32 "\n", step_id);
    for (size_t i = 0; i < IOAT_MEASURES_COUNT; i++)
        length += snprintf(text + length, IOAT_MEASURES_TEXT_SIZE - (size_t)length,
                           "%s %" PRIu64 "\n", NAMES[i], measures->values[i]);
    if (measures->has_stalled)
        length += snprintf(text + length, IOAT_MEASURES_TEXT_SIZE - (size_t)length,
                           "io_stalled_us %" PRIu64 "\n", measures->stalled_us);
    return (size_t)length;
}

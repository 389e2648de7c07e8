#ifndef IOAT_CLOCK_H
#define IOAT_CLOCK_H

#include <stdint.h>
#include <time.h>

#define IOAT_NS_PER_MS INT64_C(1000000)

/// CLOCK_MONOTONIC in ns: one clock for all processes of a node, so that stamps can be compared.
static inline int64_t ioat_now_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 * IOAT_NS_PER_MS + now.tv_nsec;
}

#endif

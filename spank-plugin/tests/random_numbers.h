// Random numbers for the tests of what reads untrusted text: the same on every run.
#ifndef IOAT_TESTS_RANDOM_NUMBERS_H
#define IOAT_TESTS_RANDOM_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#define IOAT_RANDOM_SEED UINT64_C(20200914)

// splitmix64 (Steele, Lea and Flood, OOPSLA 2014), whose state is the caller's.
static inline uint64_t ioat_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline size_t ioat_random_below(uint64_t *state, size_t limit)
{
    return (size_t)(ioat_random(state) % limit);
}

#endif

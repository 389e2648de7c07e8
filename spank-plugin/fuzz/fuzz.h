// A fuzz target is one file with LLVMFuzzerTestOneInput. `make fuzz` links it to libFuzzer, `make
// test` to brief.c.
#ifndef IOAT_FUZZ_H
#define IOAT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/// A copy of exactly the input's length and a terminating zero, for the sanitizers.
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif

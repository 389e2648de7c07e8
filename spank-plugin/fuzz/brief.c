// The brief run of a fuzz target: each input of the directory as it is and changed ROUNDS times,
// the same on every run.
#include <dirent.h>
#include <stdio.h>

#include "fuzz.h"
#include "random_numbers.h"

#define INPUT_MAX 65536

static size_t below(size_t limit)
{
    static uint64_t state = IOAT_RANDOM_SEED;
    return ioat_random_below(&state, limit);
}

// Replaces, removes or inserts bytes; returns the new length.
static size_t change(uint8_t *data, size_t size)
{
    static const char *const words[] = {"\n", "=",       ",",        ":",  "..",          "/",
                                        "%s", "\x1b[2J", "\xff\xfe", "-1", "99999999999", "app="};
    const size_t place = size == 0 ? 0 : below(size);
    const char *word = words[below(sizeof words / sizeof *words)];
    const size_t length = strlen(word), removed = below(size - place + 1);
    switch (below(4)) {
    case 0:
        memmove(data + place, data + place + removed, size - place - removed);
        return size - removed;
    case 1:
        if (size + length > INPUT_MAX)
            return size;
        memmove(data + place + length, data + place, size - place);
        memcpy(data + place, word, length);
        return size + length;
    default:
        if (size > 0)
            data[place] = (uint8_t)below(256);
        return size;
    }
}

static int run(const char *path, size_t rounds)
{
    static uint8_t input[INPUT_MAX], changed[INPUT_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return 1;
    const size_t size = fread(input, 1, sizeof input, file);
    fclose(file);
    LLVMFuzzerTestOneInput(input, size);
    for (size_t i = 0; i < rounds; i++) {
        size_t length = size;
        memcpy(changed, input, size);
        for (size_t left = 1 + below(4); left > 0; left--)
            length = change(changed, length);
        LLVMFuzzerTestOneInput(changed, length);
    }
    return 0;
}

int main(int argc, char **argv)
{
    char path[4096];
    size_t count = 0;
    DIR *kept = argc == 3 ? opendir(argv[1]) : NULL;
    if (kept == NULL) {
        fprintf(stderr, "usage: %s DIRECTORY-OF-INPUTS ROUNDS\n", argv[0]);
        return 2;
    }
    const struct dirent *entry;
    while ((entry = readdir(kept)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        const int length = snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        if (length < 0 || (size_t)length >= sizeof path || run(path, strtoul(argv[2], NULL, 10)))
            return 1;
        count++;
    }
    closedir(kept);
    printf("%s: %zu inputs, %s changes of each\n", argv[0], count, argv[2]);
    return count == 0;
}

// A clean environment for a child: what is not named here does not reach it.
#ifndef IOAT_ENVIRONMENT_H
#define IOAT_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#define IOAT_ENVIRONMENT_MAX 40

/// NAME=VALUE entries, ended by NULL as execve wants them. Start with {0}.
struct ioat_environment {
    char *entries[IOAT_ENVIRONMENT_MAX + 1];
    size_t count;
};

/// Appends one entry. False when it is full or memory is short; nothing changes then.
bool ioat_environment_add(struct ioat_environment *environment, const char *name,
                          const char *value);

/// Appends NAME as this process has it, if it has it.
bool ioat_environment_copy(struct ioat_environment *environment, const char *name);

/// Frees the entries.
void ioat_environment_clear(struct ioat_environment *environment);

#endif

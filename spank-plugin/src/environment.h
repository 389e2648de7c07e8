#ifndef IOAT_ENVIRONMENT_H
#define IOAT_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#define IOAT_ENVIRONMENT_MAX 40

/// A child's environment: NAME=VALUE entries, ended by NULL. Start with {0}.
struct ioat_environment {
    char *entries[IOAT_ENVIRONMENT_MAX + 1];
    size_t count;
};

/// False, with nothing changed, when it is full or memory is short.
bool ioat_environment_add(struct ioat_environment *environment, const char *name,
                          const char *value);

/// Adds NAME with this process's value, if it has one.
bool ioat_environment_copy(struct ioat_environment *environment, const char *name);

void ioat_environment_clear(struct ioat_environment *environment);

#endif

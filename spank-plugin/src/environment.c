#include "environment.h"

#include <stdio.h>
#include <stdlib.h>

bool ioat_environment_add(struct ioat_environment *environment, const char *name, const char *value)
{
    char *entry = NULL;
    if (environment->count == IOAT_ENVIRONMENT_MAX || asprintf(&entry, "%s=%s", name, value) < 0)
        return false;
    environment->entries[environment->count++] = entry;
    return true;
}

bool ioat_environment_copy(struct ioat_environment *environment, const char *name)
{
    const char *value = getenv(name);
    return value == NULL || ioat_environment_add(environment, name, value);
}

void ioat_environment_clear(struct ioat_environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->entries[i]);
    *environment = (struct ioat_environment){0};
}

#include "variables.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "text.h"

// A longer record is forged.
#define RECORD_MAX 65536

enum presence { ABSENT, SAME, OTHER };

struct entry {
    uint32_t job_id;
    const char *name;
    const char *value;
};

// Inherited lines of this job point into `text`; new ones follow.
struct record {
    char *text;
    size_t count;
    struct entry entries[2 * IOAT_JOB_ENV_VARIABLES];
    bool changed;
};

const char *ioat_status_name(enum ioat_status status)
{
    switch (status) {
    case IOAT_STATUS_SET:
        return "set";
    case IOAT_STATUS_USER:
        return "user";
    case IOAT_STATUS_ABSENT:
        break;
    }
    return "absent";
}

// Compares the environment with NAME=VALUE. An unreadable value counts as somebody else's.
static enum presence look(spank_t spank, const char *name, const char *value)
{
    const size_t size = strlen(value) + 2;
    char *found = malloc(size);
    if (found == NULL)
        return OTHER;
    const spank_err_t rc = spank_getenv(spank, name, found, (int)size);
    enum presence presence = OTHER;
    if (rc == ESPANK_ENV_NOEXIST)
        presence = ABSENT;
    else if (rc == ESPANK_SUCCESS && strcmp(found, value) == 0)
        presence = SAME;
    free(found);
    return presence;
}

// Splits a line in place; false when it is malformed.
static bool split(char *line, struct entry *entry)
{
    char *colon = strchr(line, ':');
    char *sign = colon == NULL ? NULL : strchr(colon, '=');
    if (sign == NULL || !ioat_text_parse_u32(line, (size_t)(colon - line), &entry->job_id) ||
        !ioat_job_env_allows(colon + 1, (size_t)(sign - colon - 1)) ||
        !ioat_text_is_printable(sign + 1, strlen(sign + 1)))
        return false;
    *sign = '\0';
    entry->name = colon + 1;
    entry->value = sign + 1;
    return true;
}

// Drops malformed lines, as a user can forge the record. Rule 1: another job's variables go with
// their lines, unless changed since. A heterogeneous job is one job.
static void inherit(spank_t spank, const struct ioat_place *place, struct record *record)
{
    char *rest = NULL;
    record->text = malloc(RECORD_MAX);
    if (record->text == NULL)
        return;
    const spank_err_t rc = spank_getenv(spank, IOAT_RECORD_NAME, record->text, RECORD_MAX);
    record->changed = rc == ESPANK_NOSPACE;
    if (rc != ESPANK_SUCCESS)
        return;
    for (char *line = strtok_r(record->text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        struct entry entry = {0};
        const bool valid = split(line, &entry);
        const bool ours = entry.job_id == place->job_id || entry.job_id == place->leader_id;
        if (valid && ours && record->count < IOAT_JOB_ENV_VARIABLES) {
            record->entries[record->count++] = entry;
            continue;
        }
        record->changed = true;
        if (valid && !ours && look(spank, entry.name, entry.value) == SAME)
            spank_unsetenv(spank, entry.name);
    }
}

static struct entry *find(struct record *record, const char *name)
{
    for (size_t i = record->count; i > 0; i--)
        if (strcmp(record->entries[i - 1].name, name) == 0)
            return &record->entries[i - 1];
    return NULL;
}

static bool is_set_by(const struct ioat_job_env *file, const char *name)
{
    for (size_t i = 0; file != NULL && i < file->count; i++)
        if (file->variables[i].value != NULL && strcmp(file->variables[i].name, name) == 0)
            return true;
    return false;
}

// Whether a value names a file in another node's directory, RUN/CLUSTER/NODE/...
static bool is_elsewhere(const char *value, const struct ioat_place *place)
{
    size_t length = strlen(place->run_dir);
    while (length > 0 && place->run_dir[length - 1] == '/')
        length--;
    if (strncmp(value, place->run_dir, length) != 0 || value[length] != '/')
        return false;
    const char *node = strchr(value + length + 1, '/');
    const size_t name_length = strlen(place->node);
    return node == NULL || strncmp(node + 1, place->node, name_length) != 0 ||
           node[1 + name_length] != '/';
}

// Rule 2: our variable without a value on this node (no answer, or a later component's) goes if it
// names another node's file. Other values stay, so that all ranks agree.
static void forget(spank_t spank, const struct ioat_place *place, const struct ioat_job_env *file,
                   struct record *record)
{
    size_t kept = 0;
    for (size_t i = 0; i < record->count; i++) {
        const struct entry entry = record->entries[i];
        if (!is_set_by(file, entry.name) && is_elsewhere(entry.value, place) &&
            look(spank, entry.name, entry.value) == SAME) {
            spank_unsetenv(spank, entry.name);
            record->changed = true;
        } else {
            record->entries[kept++] = entry;
        }
    }
    record->count = kept;
}

// Rule 3: an existing variable is the user's, unless the record says it is ours: an outer step's
// value, perhaps of another node, which ours replaces.
static enum ioat_status set(spank_t spank, uint32_t job_id, const struct ioat_variable *variable,
                            struct record *record)
{
    struct entry *ours = find(record, variable->name);
    const enum presence presence =
        look(spank, variable->name, ours != NULL ? ours->value : variable->value);
    if (presence != (ours != NULL ? SAME : ABSENT))
        return IOAT_STATUS_USER;
    if (ours != NULL && strcmp(ours->value, variable->value) == 0)
        return IOAT_STATUS_SET;
    const spank_err_t rc = spank_setenv(spank, variable->name, variable->value, 1);
    if (rc != ESPANK_SUCCESS) {
        IOAT_STEP_ERROR("%s cannot be set: %s", variable->name, spank_strerror(rc));
        return IOAT_STATUS_ABSENT;
    }
    if (ours == NULL)
        ours = &record->entries[record->count++];
    *ours = (struct entry){.job_id = job_id, .name = variable->name, .value = variable->value};
    record->changed = true;
    return IOAT_STATUS_SET;
}

// Rule 4: a watched variable. It may come from an outer step, as the record does.
static enum ioat_status watch(spank_t spank, const char *name, struct record *record)
{
    const struct entry *ours = find(record, name);
    if (ours != NULL && look(spank, name, ours->value) == SAME)
        return IOAT_STATUS_SET;
    return look(spank, name, "") == ABSENT ? IOAT_STATUS_ABSENT : IOAT_STATUS_USER;
}

// To be freed; NULL when memory is short.
static char *format(const struct record *record)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    if (stream == NULL)
        return NULL;
    for (size_t i = 0; i < record->count; i++) {
        const struct entry *entry = &record->entries[i];
        fprintf(stream, "%s%" PRIu32 ":%s=%s", i > 0 ? "\n" : "", entry->job_id, entry->name,
                entry->value);
    }
    if (fclose(stream) == 0)
        return text;
    free(text);
    return NULL;
}

static void write_record(spank_t spank, const struct record *record)
{
    if (record->count == 0) {
        spank_unsetenv(spank, IOAT_RECORD_NAME);
        return;
    }
    char *text = format(record);
    if (text == NULL || spank_setenv(spank, IOAT_RECORD_NAME, text, 1) != ESPANK_SUCCESS)
        IOAT_STEP_ERROR(IOAT_RECORD_NAME
                        " cannot be set: inner steps take our variables for the user's");
    free(text);
}

void ioat_variables_apply(spank_t spank, const struct ioat_place *place,
                          const struct ioat_job_env *file, enum ioat_status *statuses)
{
    struct record record = {0};
    inherit(spank, place, &record);
    forget(spank, place, file, &record);
    for (size_t i = 0; file != NULL && i < file->count; i++) {
        const struct ioat_variable *variable = &file->variables[i];
        statuses[i] = variable->value != NULL ? set(spank, place->job_id, variable, &record)
                                              : watch(spank, variable->name, &record);
    }
    if (record.changed)
        write_record(spank, &record);
    free(record.text);
}

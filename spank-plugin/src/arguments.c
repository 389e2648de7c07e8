#include "arguments.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

#define KEYS                                                                                       \
    "helper=PATH, config=PATH, run_dir=PATH, spool_dir=PATH, submit_deadline_ms=N, "               \
    "job_deadline_ms=N, default=on|off"

// A minute: longer than a job may ever wait.
#define DEADLINE_MAX_MS 60000

static const char *read_path(const char *value, const char **path)
{
    const size_t length = strnlen(value, PATH_MAX);
    if (value[0] != '/' || length >= PATH_MAX || !ioat_text_is_printable(value, length))
        return "an absolute path";
    *path = value;
    return NULL;
}

static const char *read_deadline(const char *value, int *milliseconds)
{
    uint32_t number = 0;
    if (!ioat_text_parse_u32(value, strlen(value), &number) || number == 0 ||
        number > DEADLINE_MAX_MS)
        return "milliseconds, 1 to 60000";
    *milliseconds = (int)number;
    return NULL;
}

static const char *read_switch(const char *value, bool *on)
{
    if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
        return "on or off";
    *on = strcmp(value, "on") == 0;
    return NULL;
}

// NULL, or what the value should have been; `known` tells whether the key is ours.
static const char *read_word(const char *key, size_t length, const char *value,
                             struct ioat_arguments *arguments, bool *known)
{
    const struct {
        const char *key;
        const char **target;
    } paths[] = {
        {"helper", &arguments->helper},
        {"config", &arguments->config},
        {"run_dir", &arguments->run_dir},
        {"spool_dir", &arguments->spool_dir},
    };
    const struct {
        const char *key;
        int *target;
    } deadlines[] = {
        {"submit_deadline_ms", &arguments->submit_deadline_ms},
        {"job_deadline_ms", &arguments->job_deadline_ms},
    };
    *known = true;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strlen(paths[i].key) == length && strncmp(key, paths[i].key, length) == 0)
            return read_path(value, paths[i].target);
    for (size_t i = 0; i < sizeof deadlines / sizeof *deadlines; i++)
        if (strlen(deadlines[i].key) == length && strncmp(key, deadlines[i].key, length) == 0)
            return read_deadline(value, deadlines[i].target);
    if (length == strlen("default") && strncmp(key, "default", length) == 0)
        return read_switch(value, &arguments->default_on);
    *known = false;
    return NULL;
}

void ioat_arguments_parse(int count, char **words, struct ioat_arguments *arguments,
                          ioat_arguments_report_f *report)
{
    *arguments = (struct ioat_arguments){
        .helper = "/usr/libexec/io-autotune/io-autotune-node",
        .config = "/etc/io-autotune/client.toml",
        .run_dir = "/run/io-autotune",
        .spool_dir = "/var/spool/io-autotune",
        .submit_deadline_ms = 300,
        .job_deadline_ms = 2000,
        .default_on = false,
    };
    for (int i = 0; i < count; i++) {
        const char *equals = strchr(words[i], '=');
        const char *wrong = NULL;
        bool known = false;
        char message[512];
        if (equals != NULL)
            wrong = read_word(words[i], (size_t)(equals - words[i]), equals + 1, arguments, &known);
        if (!known)
            snprintf(message, sizeof message,
                     "plugstack.conf: \"%.128s\" is not an argument of this plugin and is ignored; "
                     "give " KEYS,
                     words[i]);
        else if (wrong != NULL)
            snprintf(message, sizeof message,
                     "plugstack.conf: \"%.128s\" is ignored and the default used; the value must "
                     "be %s",
                     words[i], wrong);
        else
            continue;
        ioat_text_clean(message, strlen(message));
        report(message);
    }
}

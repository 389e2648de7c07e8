#include "spec.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CHOICES                                                                                    \
    "Give an accelerator's name, app=NAME, accelerator=NAME, mode=tune|observe|off, dir=PATH, "    \
    "verbose or tell, separated by commas"
#define NAME_RULE                                                                                  \
    "a name is 1 to 128 letters, digits and . _ + @ -, and starts with a letter or a digit"

static const char *const MODES[] = {
    [IOAT_MODE_TUNE] = "tune",
    [IOAT_MODE_OBSERVE] = "observe",
    [IOAT_MODE_OFF] = "off",
};

const char *ioat_mode_name(enum ioat_mode mode)
{
    return MODES[mode];
}

// Not zero-terminated.
struct slice {
    const char *start;
    size_t length;
};

struct reader {
    const char *from;
    struct ioat_spec *spec;
    bool mode_given;
    char *error;
};

static bool equals(struct slice slice, const char *word)
{
    return slice.length == strlen(word) && memcmp(slice.start, word, slice.length) == 0;
}

static bool find_mode(struct slice value, enum ioat_mode *mode)
{
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++)
        if (equals(value, MODES[i])) {
            *mode = (enum ioat_mode)i;
            return true;
        }
    return false;
}

__attribute__((format(printf, 3, 4))) static int refuse(struct reader *reader, struct slice item,
                                                        const char *format, ...)
{
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    snprintf(reader->error, IOAT_SPEC_ERROR_SIZE, "%s: \"%.*s%s\": %s. " CHOICES ".", reader->from,
             (int)(item.length > 64 ? 64 : item.length), item.start, item.length > 64 ? "..." : "",
             reason);
    ioat_text_clean(reader->error, strlen(reader->error));
    return -1;
}

static int take_name(struct reader *reader, struct slice item, const char *key, struct slice value,
                     char target[IOAT_NAME_MAX + 1])
{
    if (target[0] != '\0')
        return refuse(reader, item, "%s is given twice", key);
    if (value.length == 0)
        return refuse(reader, item, "%s= has no value", key);
    if (!ioat_text_is_name(value.start, value.length))
        return refuse(reader, item, NAME_RULE);
    memcpy(target, value.start, value.length);
    target[value.length] = '\0';
    return 0;
}

static int take_dir(struct reader *reader, struct slice item, struct slice value)
{
    if (reader->spec->dir[0] != '\0')
        return refuse(reader, item, "dir is given twice");
    if (!ioat_text_is_path(value.start, value.length))
        return refuse(reader, item,
                      "a directory is a whole path of at most %d letters, digits and . _ + @ - /",
                      IOAT_PATH_MAX);
    memcpy(reader->spec->dir, value.start, value.length);
    reader->spec->dir[value.length] = '\0';
    return 0;
}

static int take_mode(struct reader *reader, struct slice item, struct slice value)
{
    if (reader->mode_given)
        return refuse(reader, item, "mode is given twice");
    if (!find_mode(value, &reader->spec->mode))
        return refuse(reader, item, "there is no such mode");
    reader->mode_given = true;
    return 0;
}

static int take_item(struct reader *reader, struct slice item)
{
    const char *sign = memchr(item.start, '=', item.length);
    enum ioat_mode mode;
    if (item.length == 0)
        return refuse(reader, item, "there is nothing before or after a comma");
    if (sign == NULL) {
        if (equals(item, "verbose")) {
            reader->spec->verbose = true;
            return 0;
        }
        if (equals(item, "tell")) {
            reader->spec->tell = true;
            return 0;
        }
        if (find_mode(item, &mode))
            return take_mode(reader, item, item);
        return take_name(reader, item, "accelerator", item, reader->spec->accelerator);
    }
    const struct slice key = {item.start, (size_t)(sign - item.start)};
    const struct slice value = {sign + 1, item.length - key.length - 1};
    if (equals(key, "app"))
        return take_name(reader, item, "app", value, reader->spec->app);
    if (equals(key, "accelerator"))
        return take_name(reader, item, "accelerator", value, reader->spec->accelerator);
    if (equals(key, "mode"))
        return take_mode(reader, item, value);
    if (equals(key, "dir"))
        return take_dir(reader, item, value);
    return refuse(reader, item, "there is no such key");
}

int ioat_spec_parse(const char *text, const char *from, struct ioat_spec *spec,
                    char error[IOAT_SPEC_ERROR_SIZE])
{
    struct reader reader = {.from = from, .spec = spec, .error = error};
    *spec = (struct ioat_spec){.mode = IOAT_MODE_TUNE};
    error[0] = '\0';
    if (text == NULL || text[0] == '\0' || strcmp(text, "(null)") == 0)
        return 0;
    struct slice rest = {text, strnlen(text, IOAT_SPEC_MAX + 1)};
    int rc = 0;
    if (rest.length > IOAT_SPEC_MAX)
        rc = refuse(&reader, rest, "longer than %d bytes", IOAT_SPEC_MAX);
    while (rc == 0) {
        const char *comma = memchr(rest.start, ',', rest.length);
        const size_t length = comma == NULL ? rest.length : (size_t)(comma - rest.start);
        rc = take_item(&reader, (struct slice){rest.start, length});
        if (comma == NULL)
            break;
        rest.start += length + 1;
        rest.length -= length + 1;
    }
    if (rc != 0)
        *spec = (struct ioat_spec){.mode = IOAT_MODE_TUNE};
    return rc;
}

bool ioat_spec_without_app(const char *text, char kept[IOAT_SPEC_MAX + 1])
{
    static const char key[] = "app=";
    const char *end = text + strnlen(text, IOAT_SPEC_MAX);
    char *next = kept;
    bool had = false;
    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const size_t length = (size_t)((comma == NULL ? end : comma) - text);
        if (length >= strlen(key) && memcmp(text, key, strlen(key)) == 0) {
            had = true;
        } else {
            if (next != kept)
                *next++ = ',';
            memcpy(next, text, length);
            next += length;
        }
        text += length + (comma != NULL);
    }
    *next = '\0';
    return had;
}

#include "request.h"

#include <stdio.h>
#include <string.h>

static char *add(char *end, const char *key, const char *value)
{
    return stpcpy(stpcpy(stpcpy(end, key), value), ",");
}

static char *add_encoded(char *end, const char *key, const char *value)
{
    const size_t length = strnlen(value, IOAT_REQUEST_TEXT_MAX);
    end = stpcpy(end, key);
    for (size_t i = 0; i < length; i++) {
        // A name begins with a letter or a digit only.
        const char probe[] = {'x', value[i]};
        if (ioat_text_is_name(probe, sizeof probe))
            *end++ = value[i];
        else
            end += sprintf(end, "%%%02X", (unsigned char)value[i]);
    }
    return stpcpy(end, ",");
}

void ioat_request_format(const struct ioat_spec *spec, const char *job_name, const char *comment,
                         char text[IOAT_REQUEST_SIZE])
{
    char *end = text;
    if (spec->app[0] != '\0') {
        end = add(end, "app=", spec->app);
    } else {
        if (job_name != NULL && job_name[0] != '\0')
            end = add_encoded(end, "name=", job_name);
        if (comment != NULL && comment[0] != '\0')
            end = add_encoded(end, "comment=", comment);
    }
    if (spec->accelerator[0] != '\0')
        end = add(end, "accelerator=", spec->accelerator);
    end = stpcpy(stpcpy(end, "mode="), ioat_mode_name(spec->mode));
    // Only where it is asked for: helpers of an earlier release refuse what they do not know.
    if (spec->tell)
        end = stpcpy(end, ",tell=yes");
    if (spec->dir[0] != '\0')
        stpcpy(stpcpy(end, ",dir="), spec->dir);
}

// Whether one of the items that commas separate is `key` with this value.
static bool has_item(const char *request, const char *key, const char *value)
{
    const size_t key_length = strlen(key), value_length = strlen(value);
    for (const char *item = request; item != NULL;) {
        const char *comma = strchr(item, ',');
        const size_t length = comma == NULL ? strlen(item) : (size_t)(comma - item);
        if (length == key_length + value_length && memcmp(item, key, key_length) == 0 &&
            memcmp(item + key_length, value, value_length) == 0)
            return true;
        item = comma == NULL ? NULL : comma + 1;
    }
    return false;
}

bool ioat_request_has(const char *request, const struct ioat_spec *spec)
{
    return has_item(request, "mode=", ioat_mode_name(spec->mode)) &&
           (!spec->tell || has_item(request, "tell=", "yes")) &&
           (spec->dir[0] == '\0' || has_item(request, "dir=", spec->dir)) &&
           (spec->app[0] == '\0' || has_item(request, "app=", spec->app)) &&
           (spec->accelerator[0] == '\0' || has_item(request, "accelerator=", spec->accelerator));
}

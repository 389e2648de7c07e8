// The text after --io-autotune=, and the job's name.
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "request.h"
#include "spec.h"
#include "text.h"

static int is_name(const char *text)
{
    return text[0] == '\0' || ioat_text_is_name(text, strlen(text));
}

// Attack (parsers): An option's SPEC, and the job's name and comment.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[IOAT_SPEC_ERROR_SIZE], canonical[IOAT_REQUEST_SIZE];
    static const struct ioat_spec nothing = {.mode = IOAT_MODE_TUNE};
    struct ioat_spec spec, again;
    // The job's name follows the SPEC's terminating zero.
    char *text = fuzz_text(data, size);
    const size_t length = strlen(text);
    const int rc = ioat_spec_parse(text, "--io-autotune", &spec, error);
    assert((rc == 0) == (error[0] == '\0'));
    assert(ioat_text_is_printable(error, strlen(error)));
    assert(rc == 0 || strstr(error, "--io-autotune") != NULL);
    // Whatever a job is called, its name ends where it ends, and the mode stays.
    ioat_request_format(&nothing, text, text, canonical);
    assert(ioat_text_is_printable(canonical, strlen(canonical)));
    assert((strchr(canonical, ',') == NULL) == (length == 0));
    assert(strcmp(strrchr(canonical, 'm'), "mode=tune") == 0);
    if (rc == 0) {
        assert(is_name(spec.app) && is_name(spec.accelerator));
        assert(spec.dir[0] == '\0' || ioat_text_is_path(spec.dir, strlen(spec.dir)));
        // What travels parses back to the same SPEC, but for what says the job's own name.
        const char *job_name = length < size ? text + length + 1 : NULL;
        ioat_request_format(&spec, job_name, job_name, canonical);
        assert(strlen(canonical) < IOAT_REQUEST_SIZE);
        assert(ioat_text_is_printable(canonical, strlen(canonical)));
        ioat_request_format(&spec, NULL, NULL, canonical);
        assert(ioat_spec_parse(canonical, "--io-autotune", &again, error) == 0);
        assert(strcmp(again.accelerator, spec.accelerator) == 0 &&
               strcmp(again.app, spec.app) == 0 && again.mode == spec.mode &&
               strcmp(again.dir, spec.dir) == 0);
        if (!spec.tell)
            assert(ioat_request_has(canonical, &spec));
        // Without its app= a SPEC says the same otherwise.
        char kept[IOAT_SPEC_MAX + 1];
        const bool had = ioat_spec_without_app(text, kept);
        assert(had == (spec.app[0] != '\0'));
        assert(ioat_spec_parse(kept, "IO_AUTOTUNE", &again, error) == 0);
        assert(strcmp(again.accelerator, spec.accelerator) == 0 && again.app[0] == '\0' &&
               again.mode == spec.mode && again.tell == spec.tell);
    }
    free(text);
    return 0;
}

// The text after --io-autotune=, and the job's name.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "request.h"
#include "spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[IOAT_SPEC_ERROR_SIZE], canonical[IOAT_REQUEST_SIZE];
    struct ioat_spec spec, again;
    // The job's name follows the SPEC's terminating zero.
    char *text = fuzz_text(data, size);
    const size_t length = strlen(text);
    const int rc = ioat_spec_parse(text, &spec, error);
    assert((rc == 0) == (error[0] == '\0'));
    assert(ioat_text_is_printable(error, strlen(error)));
    assert(rc == 0 || strstr(error, "--io-autotune") != NULL);
    const struct ioat_request request =
        ioat_request_derive(&spec, length < size ? text + length + 1 : NULL);
    assert(request.app[0] == '\0' || ioat_text_is_name(request.app, strlen(request.app)));
    if (rc == 0) {
        // The canonical text parses back to the same request.
        ioat_request_format(&request, canonical);
        assert(request.meaningless_name || ioat_spec_parse(canonical, &again, error) == 0);
        assert(request.meaningless_name || strcmp(again.accelerator, spec.accelerator) == 0);
    }
    free(text);
    return 0;
}

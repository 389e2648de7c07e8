// The environment of a prolog or epilog, one NAME=VALUE a line, untrusted.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fake_spank.h"
#include "fuzz.h"
#include "job_hooks.h"
#include "text.h"

static void set(const char *line, void *data)
{
    char *copy = strdup(line), *equals = strchr(copy, '=');
    (void)data;
    if (equals != NULL && equals != copy) {
        *equals = '\0';
        // slurmd's variables, and none that the sanitizers read.
        if (strncmp(copy, "SLURM", 5) == 0 || strncmp(copy, "SPANK", 5) == 0)
            setenv(copy, equals + 1, 1);
    }
    free(copy);
}

// Attack (parsers): The environment of prolog and epilog.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct ioat_arguments arguments = {.helper = "/nonexistent/helper",
                                                    .config = "/nonexistent/client.toml",
                                                    .run_dir = "/nonexistent/run",
                                                    .spool_dir = "/nonexistent/spool",
                                                    .job_deadline_ms = 100};
    char *text = fuzz_text(data, size), *rest = NULL;
    clearenv();
    fake_reset(S_CTX_JOB_SCRIPT);
    fake.no_items = size % 2 == 0;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        set(line, NULL);
    const size_t asked = getenv("SPANK_IO_AUTOTUNE") != NULL;
    ioat_job_hook(&arguments, fake_handle(), "start");
    // Each helper that is not started is logged.
    assert(fake_logged(FAKE_ERROR, "") >= asked);
    free(text);
    return 0;
}

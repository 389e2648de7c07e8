// The record of what we set, which the user can forge.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fake_spank.h"
#include "fuzz.h"
#include "variables.h"

// Attack (parsers): The record `IO_AUTOTUNE_SET`.
// Outcome: PATH and LD_PRELOAD stay as the user has set them.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct ioat_place place = {
        .job_id = 1234, .leader_id = 1233, .run_dir = "/run", .node = "n1"};
    static const struct ioat_job_env file = {
        .job_id = 1234, .count = 1, .variables = {{"ROMIO_HINTS", "/a"}}};
    enum ioat_status status;
    char *text = fuzz_text(data, size);
    fake_reset(S_CTX_REMOTE);
    fake_env("PATH", "1");
    fake_env("LD_PRELOAD", "1");
    if (size % 2 == 0)
        fake_env("ROMIO_HINTS", size % 4 == 0 ? "/a" : "/run/c/n2/f");
    fake_env(IOAT_RECORD_NAME, text);
    ioat_variables_apply(fake_handle(), &place, &file, &status);
    // Never ours to remove.
    assert(strcmp(fake_env_value("PATH"), "1") == 0);
    assert(strcmp(fake_env_value("LD_PRELOAD"), "1") == 0);
    assert(status != IOAT_STATUS_ABSENT);
    if (status == IOAT_STATUS_SET)
        assert(strcmp(fake_env_value("ROMIO_HINTS"), "/a") == 0);
    fake_reset(S_CTX_REMOTE);
    free(text);
    return 0;
}

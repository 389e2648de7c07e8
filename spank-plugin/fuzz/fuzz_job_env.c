// The job's file, which the helper writes for slurmstepd.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "job_env.h"
#include "text.h"

// Attack (parsers): A file of a job or of the spool.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ioat_job_env file;
    char *text = fuzz_text(data, size);
    const char *problem = ioat_job_env_parse(text, size, &file);
    assert(problem == NULL || problem[0] != '\0');
    assert(problem != NULL || file.count <= IOAT_JOB_ENV_VARIABLES);
    for (size_t i = 0; problem == NULL && i < file.count; i++) {
        const struct ioat_variable *variable = &file.variables[i];
        assert(ioat_job_env_allows(variable->name, strlen(variable->name)));
        assert(variable->value == NULL ||
               ioat_text_is_printable(variable->value, strlen(variable->value)));
    }
    free(text);
    return 0;
}

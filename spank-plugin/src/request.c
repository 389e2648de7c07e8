#include "request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

// Job names that say nothing of the program; compared without case and script extensions.
static const char *const MEANINGLESS[] = {
    "a.out",   "bash",  "batch",  "csh",     "dash",   "env",  "fish",  "interactive",
    "job",     "ksh",   "main",   "mpiexec", "mpirun", "none", "null",  "python",
    "python3", "run",   "salloc", "sbatch",  "script", "sh",   "slurm", "slurm_script",
    "srun",    "stdin", "submit", "tcsh",    "wrap",   "zsh",
};

static const char *const EXTENSIONS[] = {".sh", ".bash", ".sbatch", ".slurm", ".job", ".batch"};

static size_t stem_length(const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof EXTENSIONS / sizeof *EXTENSIONS; i++) {
        const size_t tail = strlen(EXTENSIONS[i]);
        if (length > tail && strcasecmp(name + length - tail, EXTENSIONS[i]) == 0)
            return length - tail;
    }
    return length;
}

static bool is_meaningless(const char *name)
{
    const size_t length = stem_length(name);
    for (size_t i = 0; i < sizeof MEANINGLESS / sizeof *MEANINGLESS; i++)
        if (strlen(MEANINGLESS[i]) == length && strncasecmp(name, MEANINGLESS[i], length) == 0)
            return true;
    return false;
}

static bool adopt(const char *job_name, char app[IOAT_NAME_MAX + 1])
{
    const size_t length = strnlen(job_name, IOAT_NAME_MAX + 1);
    if (length == 0 || length > IOAT_NAME_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        const char probe[] = {'x', job_name[i]};
        app[i] = '_';
        if (ioat_text_is_name(probe, sizeof probe))
            app[i] = job_name[i];
    }
    app[length] = '\0';
    if (ioat_text_is_name(app, length))
        return true;
    app[0] = '\0';
    return false;
}

struct ioat_request ioat_request_derive(const struct ioat_spec *spec, const char *job_name)
{
    struct ioat_request request = {.mode = spec->mode};
    memcpy(request.app, spec->app, sizeof request.app);
    memcpy(request.accelerator, spec->accelerator, sizeof request.accelerator);
    if (request.app[0] != '\0')
        return request;
    if (job_name == NULL || !adopt(job_name, request.app) || is_meaningless(request.app)) {
        request.meaningless_name = true;
        if (request.mode == IOAT_MODE_TUNE)
            request.mode = IOAT_MODE_OBSERVE;
    }
    return request;
}

void ioat_request_format(const struct ioat_request *request, char text[IOAT_REQUEST_SIZE])
{
    const bool app = request->app[0] != '\0', accelerator = request->accelerator[0] != '\0';
    snprintf(text, IOAT_REQUEST_SIZE, "%s%s%s%s%s%smode=%s%s", app ? "app=" : "", request->app,
             app ? "," : "", accelerator ? "accelerator=" : "", request->accelerator,
             accelerator ? "," : "", ioat_mode_name(request->mode),
             request->meaningless_name ? ",note=meaningless_name" : "");
}

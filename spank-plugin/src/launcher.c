#include "launcher.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

// Less than any series' slurm_opt_t (src/common/slurm_opt.h), which has some hundred members.
#define OPTIONS_LEAST 512

// SPANK has no way to ask for an option of Slurm's own, and from 24.11 on sbatch no longer exports
// SLURM_JOB_NAME before its plugins run. The programs' options are the variable `opt`, and
// src/common/slurm_opt.c reads it by an option's name; both are exported in 22.05 to 26.05.
struct reader {
    void *options;
    // Returns Slurm's own allocation, a few bytes in a process that ends soon.
    char *(*get)(void *options, const char *name);
    bool (*is_set)(void *options, const char *name);
};

static bool find(struct reader *reader)
{
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    reader->options = dlsym(RTLD_DEFAULT, "opt");
    // POSIX has dlsym return functions as objects.
    *(void **)&reader->get = dlsym(RTLD_DEFAULT, "slurm_option_get");
    *(void **)&reader->is_set = dlsym(RTLD_DEFAULT, "slurm_option_isset");
    return reader->options != NULL && reader->get != NULL && reader->is_set != NULL &&
           dladdr1(reader->options, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 &&
           symbol != NULL && symbol->st_size >= OPTIONS_LEAST;
}

static bool is_set(const char *name)
{
    struct reader reader;
    return find(&reader) && reader.is_set(reader.options, name);
}

bool ioat_launcher_is_inside_job(void)
{
    return getenv("SLURM_JOB_ID") != NULL || getenv("SLURM_JOBID") != NULL;
}

static bool is_unless_absent(const char *variable, const char *job_id)
{
    const char *value = getenv(variable);
    return value == NULL || strcmp(value, job_id) == 0;
}

enum ioat_allocation ioat_launcher_allocation(void)
{
    struct reader reader;
    if (!find(&reader))
        return ioat_launcher_is_inside_job() ? IOAT_ALLOCATION_OWN : IOAT_ALLOCATION_NEW;
    // Given on the command line or by SLURM_JOB_ID (src/srun/opt.c); SLURM_JOBID alone is none.
    if (!reader.is_set(reader.options, "jobid"))
        return IOAT_ALLOCATION_NEW;
    const char *job_id = reader.get(reader.options, "jobid");
    const bool own = job_id != NULL && ioat_launcher_is_inside_job() &&
                     is_unless_absent("SLURM_JOB_ID", job_id) &&
                     is_unless_absent("SLURM_JOBID", job_id);
    return own ? IOAT_ALLOCATION_OWN : IOAT_ALLOCATION_OTHER;
}

const char *ioat_launcher_job_name(void)
{
    struct reader reader;
    if (!find(&reader))
        // Inside a job it may be the outer job's.
        return ioat_launcher_is_inside_job() ? NULL : getenv("SLURM_JOB_NAME");
    const char *name = reader.get(reader.options, "job-name");
    // A script from standard input has none; then sbatch.c, _fill_job_desc_from_opts, says this.
    if (name == NULL && strcmp(program_invocation_short_name, "sbatch") == 0)
        return "sbatch";
    return name;
}

const char *ioat_launcher_comment(void)
{
    struct reader reader;
    const bool given = find(&reader) && reader.is_set(reader.options, "comment");
    return given ? reader.get(reader.options, "comment") : NULL;
}

bool ioat_launcher_is_quiet(void)
{
    return is_set("quiet") || is_set("parsable");
}

// Each callback returns 0: a job must never fail because of us. The exception is a wrong SPEC.
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>
#include <slurm/spank.h>

#include "context.h"
#include "job_hooks.h"
#include "log.h"

#define EXPORT __attribute__((visibility("default")))

#pragma GCC visibility push(default)
// plugin_name, plugin_type, plugin_version and spank_plugin_version, which Slurm's loader checks.
SPANK_PLUGIN(io_autotune, 1)
#pragma GCC visibility pop

// What slurm_spank_init costs if it fails all the same: Slurm would drain the node. Older series do
// not look for it.
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
EXPORT int slurm_spank_init_failure_mode = ESPANK_JOB_FAILURE;
#else
EXPORT int slurm_spank_init_failure_mode;
#endif

static struct ioat_context context = {.step.dir_fd = -1};

static char option_name[] = "io-autotune";
static char option_argument[] = "[SPEC]";
static char option_usage[] =
    "tune the I/O accelerator of this job: each run gets the parametrization that the tuner wants "
    "to see next. SPEC is a list separated by commas: an accelerator's name, or those of several "
    "with + between them, app=NAME (the application; default: the job's name), accelerator=NAME, "
    "mode=tune (default), mode=observe (measure, apply nothing), mode=off, verbose (say what is "
    "known wherever stderr goes), tell (say in the job's stderr what it runs with), or dir=PATH (a "
    "directory of yours that an accelerator's command may act on). IO_AUTOTUNE=SPEC in the "
    "environment is the default";

// Only slurmd reports an administrator's typos; users do not see them.
static void report_loudly(const char *message)
{
    IOAT_ERROR("%s", message);
}

static void report_quietly(const char *message)
{
    IOAT_DEBUG("%s", message);
}

static void read_arguments(int ac, char **av, ioat_arguments_report_f *report)
{
    ioat_arguments_parse(ac, av, &context.arguments, report);
}

static int on_option(int value, const char *argument, int remote)
{
    (void)value;
    // The submission has already checked it.
    if (remote != 0)
        return 0;
    return ioat_submission_option(&context.submission, &context.arguments, argument);
}

/// In every process but the prolog's and the epilog's.
EXPORT int slurm_spank_init(spank_t spank, int ac, char **av)
{
    const spank_context_t where = spank_context();
    struct spank_option option = {
        .name = option_name,
        .arginfo = option_argument,
        .usage = option_usage,
        // getopt's optional_argument.
        .has_arg = 2,
        .val = 0,
        .cb = on_option,
    };
    context = (struct ioat_context){.step.dir_fd = -1};
    read_arguments(ac, av, where == S_CTX_SLURMD ? report_loudly : report_quietly);
    if (where != S_CTX_ALLOCATOR && where != S_CTX_LOCAL && where != S_CTX_REMOTE)
        return 0;
    const spank_err_t rc = spank_option_register(spank, &option);
    if (rc != ESPANK_SUCCESS)
        IOAT_ERROR("the option --io-autotune cannot be registered: %s", spank_strerror(rc));
    return 0;
}

/// In sbatch and salloc once per job component, in srun, and as root in every slurmstepd.
EXPORT int slurm_spank_init_post_opt(spank_t spank, int ac, char **av)
{
    (void)ac;
    (void)av;
    switch (spank_context()) {
    case S_CTX_ALLOCATOR:
    case S_CTX_LOCAL:
        ioat_submission_post_opt(&context.submission, &context.arguments, spank);
        break;
    case S_CTX_REMOTE:
        ioat_step_open(&context.step, &context.arguments, spank);
        break;
    default:
        break;
    }
    return 0;
}

/// slurmstepd, with the user's effective uid, before the tasks are forked.
EXPORT int slurm_spank_user_init(spank_t spank, int ac, char **av)
{
    (void)ac;
    (void)av;
    ioat_step_start(&context.step, spank);
    return 0;
}

/// The task's process, as the user, once its stdio is the job's and before execve.
EXPORT int slurm_spank_task_init(spank_t spank, int ac, char **av)
{
    (void)ac;
    (void)av;
    ioat_step_tell(&context.step, spank);
    return 0;
}

EXPORT int slurm_spank_task_post_fork(spank_t spank, int ac, char **av)
{
    (void)spank;
    (void)ac;
    (void)av;
    ioat_step_forked(&context.step);
    return 0;
}

EXPORT int slurm_spank_task_exit(spank_t spank, int ac, char **av)
{
    (void)ac;
    (void)av;
    ioat_step_task_exit(&context.step, spank);
    return 0;
}

/// At the end of every process that called slurm_spank_init, except slurmd.
EXPORT int slurm_spank_exit(spank_t spank, int ac, char **av)
{
    (void)spank;
    (void)ac;
    (void)av;
    if (spank_context() == S_CTX_REMOTE)
        ioat_step_close(&context.step);
    return 0;
}

/// A separate process on each node, as root, before the job's first step there.
EXPORT int slurm_spank_job_prolog(spank_t spank, int ac, char **av)
{
    read_arguments(ac, av, report_quietly);
    ioat_job_hook(&context.arguments, spank, "start");
    return 0;
}

/// A separate process on each node, as root, after the job's last step there.
EXPORT int slurm_spank_job_epilog(spank_t spank, int ac, char **av)
{
    read_arguments(ac, av, report_quietly);
    ioat_job_hook(&context.arguments, spank, "finish");
    return 0;
}

// A SPANK without Slurm: the functions of slurm/spank.h that the plugin calls, with the state they
// work on laid open to tests.
#ifndef IOAT_TESTS_FAKE_SPANK_H
#define IOAT_TESTS_FAKE_SPANK_H

#include <slurm/spank.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum fake_level { FAKE_ERROR, FAKE_INFO, FAKE_DEBUG };

/// What the fake answers with, and what was done to it.
struct fake {
    spank_context_t context;
    uint32_t job_id, step_id, local_tasks, nodes;
    uid_t uid;
    gid_t gid;
    int exit_status;
    /// The task in whose process slurm_spank_task_init is called.
    int task;
    /// Whether spank_get_item fails for everything, as it does in a wrong context.
    bool no_items;
    /// Whether spank_setenv and spank_job_control_setenv fail.
    bool setenv_fails;
    /// What slurm_spank_init registered.
    struct spank_option option;
    bool registered;
    /// Whether the launching program lets its options be read, as sbatch does, and some of them.
    bool options;
    const char *job_name, *comment;
    /// srun's --jobid, or SLURM_JOB_ID, which sets it; NULL without either.
    const char *allocation;
    bool quiet, parsable;
    /// Whether the log is written to standard error, as sbatch, salloc and srun do.
    bool writes;
};

extern struct fake fake;

/// The handle to call the plugin with.
spank_t fake_handle(void);

/// Forgets everything and starts anew in `context`.
void fake_reset(spank_context_t context);

/// The job's environment: set (a NULL value removes) and get (NULL when absent).
void fake_env(const char *name, const char *value);
const char *fake_env_value(const char *name);

/// The job-control environment.
void fake_control(const char *name, const char *value);
const char *fake_control_value(const char *name);

/// Log lines of a level that contain `part`, which may be "".
size_t fake_logged(enum fake_level level, const char *part);

/// While true, ioat_pidfd_open fails as on a kernel without it.
extern bool fake_no_pidfd;

#endif

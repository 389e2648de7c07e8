// In slurmstepd: sets the job's variables, stamps and measures the step, without network, thread or
// child.
#ifndef IOAT_STEP_H
#define IOAT_STEP_H

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>

#include "arguments.h"
#include "job_env.h"
#include "measures.h"
#include "stamp.h"
#include "variables.h"

/// Start with {0}.
struct ioat_step {
    /// The ids are known, and it is not the extern step.
    bool known;
    struct ioat_place place;
    /// Backs place.node if that is the host's name.
    char host[256];
    /// The job has a file, so the step gets a stamp.
    bool tuned;
    int dir_fd;
    char *text;
    struct ioat_job_env file;
    struct ioat_stamp stamp;
    bool started, stamped;
    bool finished;
    /// What slurmstepd itself had read, written and waited for before the tasks, if that is known.
    struct ioat_measures before;
    bool measured;
    /// The job's first step on this node, which tells what the job asked to be told.
    bool first;
};

/// slurm_spank_init_post_opt, as root: reads the job's file.
void ioat_step_open(struct ioat_step *step, const struct ioat_arguments *arguments, spank_t spank);

/// slurm_spank_user_init, with the user's effective uid: sets the variables and notes the start.
void ioat_step_start(struct ioat_step *step, spank_t spank);

/// slurm_spank_task_init, in the task's own process as the user: writes the line that the job asked
/// for to the first task's stderr, if that takes it without waiting.
void ioat_step_tell(const struct ioat_step *step, spank_t spank);

/// slurm_spank_task_post_fork, as root: writes the first stamp, and begins to measure.
void ioat_step_forked(struct ioat_step *step);

/// slurm_spank_task_exit, as root: notes a task's end; writes stamp and measures after the last.
void ioat_step_task_exit(struct ioat_step *step, spank_t spank);

/// slurm_spank_exit, as root: writes both if a task's end was not reported.
void ioat_step_close(struct ioat_step *step);

#endif

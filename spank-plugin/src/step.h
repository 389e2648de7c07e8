// In slurmstepd: reads the job's file, sets its variables and stamps the step. No network, no
// thread, no child.
#ifndef IOAT_STEP_H
#define IOAT_STEP_H

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>

#include "arguments.h"
#include "job_env.h"
#include "stamp.h"
#include "variables.h"

/// What one slurmstepd remembers of its step. Start with {0}.
struct ioat_step {
    /// Whether this is a step to deal with: its ids are known, and it is not the extern step.
    bool known;
    struct ioat_place place;
    /// Holds place.node where that is the host's name.
    char host[256];
    /// Whether the job has a file, and so the step gets a stamp.
    bool tuned;
    int dir_fd;
    char *text;
    struct ioat_job_env file;
    struct ioat_stamp stamp;
    /// Whether the step was started as far as slurm_spank_user_init, and a first stamp written.
    bool started, stamped;
    /// Whether the last stamp is written.
    bool finished;
};

/// slurm_spank_init_post_opt, as root: finds and reads the job's file.
void ioat_step_open(struct ioat_step *step, const struct ioat_arguments *arguments, spank_t spank);

/// slurm_spank_user_init, with the user's effective uid: sets the variables and takes the start.
void ioat_step_start(struct ioat_step *step, spank_t spank);

/// slurm_spank_task_post_fork, as root: writes the first stamp, which tells that the step runs.
void ioat_step_forked(struct ioat_step *step);

/// slurm_spank_task_exit, as root: notes how a task ended; writes the stamp after the last.
void ioat_step_task_exit(struct ioat_step *step, spank_t spank);

/// slurm_spank_exit, as root: writes the stamp if some task's end was never told, and frees all.
void ioat_step_close(struct ioat_step *step);

#endif

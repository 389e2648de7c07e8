// What a step reports of itself: the text of step-STEPID.stamp. Pure.
//
//     io-autotune-stamp 1
//     step 4294967291
//     start_ns 123456789        (CLOCK_MONOTONIC)
//     end_ns 223456789          (left out while the step runs)
//     nodes 2                   (of the step; each has a stamp)
//     tasks 4                   (on this node)
//     exited 4
//     wait_status 0             (as wait(2) has it; the first that is not 0)
//     variable ROMIO_HINTS set  (or user, or absent; any number)
#ifndef IOAT_STAMP_H
#define IOAT_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job_env.h"
#include "variables.h"

/// Room for a stamp's file name, in bytes.
#define IOAT_STAMP_NAME_SIZE 32

/// A step on this node.
struct ioat_stamp {
    uint32_t step_id;
    int64_t start_ns;
    /// When the last task that has ended did so.
    int64_t end_ns;
    /// Whether the step is over, so that end_ns is its end.
    bool ended;
    uint32_t nodes;
    uint32_t tasks;
    uint32_t exited;
    int wait_status;
    enum ioat_status statuses[IOAT_JOB_ENV_VARIABLES];
};

/// A task has ended at `now_ns` with `wait_status`.
void ioat_stamp_exit(struct ioat_stamp *stamp, int64_t now_ns, int wait_status);

/// The stamp's file name.
void ioat_stamp_name(const struct ioat_stamp *stamp, char name[IOAT_STAMP_NAME_SIZE]);

/// The stamp's text, to be freed, and its length; NULL when memory is short. `file` names the
/// variables that the statuses belong to.
char *ioat_stamp_format(const struct ioat_stamp *stamp, const struct ioat_job_env *file,
                        size_t *length);

#endif

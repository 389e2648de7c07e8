// What a step reports: the text of step-STEPID.stamp. Pure.
//
//     io-autotune-stamp 1
//     step 4294967291
//     start_ns 123456789        (CLOCK_MONOTONIC)
//     end_ns 223456789          (left out while the step runs)
//     nodes 2                   (of the step; each has a stamp)
//     tasks 4                   (on this node)
//     exited 4
//     wait_status 0             (of wait(2); the first that is not 0)
//     variable ROMIO_HINTS set  (or user, or absent; any number)
#ifndef IOAT_STAMP_H
#define IOAT_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job_env.h"
#include "variables.h"

#define IOAT_STAMP_NAME_SIZE 32

struct ioat_stamp {
    uint32_t step_id;
    int64_t start_ns;
    /// When the last ended task ended.
    int64_t end_ns;
    /// Whether the step is over.
    bool ended;
    uint32_t nodes;
    uint32_t tasks;
    uint32_t exited;
    int wait_status;
    enum ioat_status statuses[IOAT_JOB_ENV_VARIABLES];
};

void ioat_stamp_exit(struct ioat_stamp *stamp, int64_t now_ns, int wait_status);

void ioat_stamp_name(const struct ioat_stamp *stamp, char name[IOAT_STAMP_NAME_SIZE]);

/// To be freed; NULL when memory is short. `file` names the variables of the statuses.
char *ioat_stamp_format(const struct ioat_stamp *stamp, const struct ioat_job_env *file,
                        size_t *length);

#endif

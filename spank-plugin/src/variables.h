// What we set is recorded in the job's environment, in IO_AUTOTUNE_SET, one JOBID:NAME=VALUE a
// line: inner steps and nested jobs inherit variables, and only the record tells ours from the
// user's. A step on another node than its launcher's gets its own node's values instead.
#ifndef IOAT_VARIABLES_H
#define IOAT_VARIABLES_H

#include <slurm/spank.h>
#include <stdint.h>

#include "job_env.h"

#define IOAT_RECORD_NAME "IO_AUTOTUNE_SET"

struct ioat_place {
    uint32_t job_id;
    /// The first component of a heterogeneous job, which carries the run; else the job itself.
    uint32_t leader_id;
    const char *run_dir;
    const char *node;
};

enum ioat_status {
    /// We set it, here or in an outer step of the job, and this node's value is in force.
    IOAT_STATUS_SET,
    /// The user has set or removed it; we leave it alone.
    IOAT_STATUS_USER,
    /// Nobody set it.
    IOAT_STATUS_ABSENT,
};

const char *ioat_status_name(enum ioat_status status);

/// Drops what other jobs' steps, or this job's on other nodes, left, then sets the variables of
/// `file` (may be NULL) unless the user has them otherwise. `statuses` gets one entry per variable
/// of the file. Call it in slurm_spank_user_init.
void ioat_variables_apply(spank_t spank, const struct ioat_place *place,
                          const struct ioat_job_env *file, enum ioat_status *statuses);

#endif

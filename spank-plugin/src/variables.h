// Which variables a step gets, and what becomes of those it inherited from us.
//
// What we set is recorded in the job's environment too, in IO_AUTOTUNE_SET, one JOBID:NAME=VALUE
// to a line: inner steps and nested jobs inherit variables, and only the record tells ours from the
// user's. Steps on other nodes inherit those of the node they were launched from, and get their own
// node's instead.
#ifndef IOAT_VARIABLES_H
#define IOAT_VARIABLES_H

#include <slurm/spank.h>
#include <stdint.h>

#include "job_env.h"

/// The record's name.
#define IOAT_RECORD_NAME "IO_AUTOTUNE_SET"

/// Where a step runs.
struct ioat_place {
    uint32_t job_id;
    /// The first component of a heterogeneous job, whose run this is; else the job itself.
    uint32_t leader_id;
    /// The run directory, and this node's name below it: RUN/CLUSTER/NODE/JOBID.
    const char *run_dir;
    const char *node;
};

/// What became of a variable.
enum ioat_status {
    /// We set it, here or in an outer step of the same job, and our value for this node is in
    /// force.
    IOAT_STATUS_SET,
    /// The user has set or removed it, and it was left alone.
    IOAT_STATUS_USER,
    /// Nobody set it.
    IOAT_STATUS_ABSENT,
};

/// The status as a stamp writes it.
const char *ioat_status_name(enum ioat_status status);

/// Drops what another job's steps, or this job's on another node, left in the environment, then
/// sets what `file` says (NULL when the job has none here) unless the user has it otherwise.
/// `statuses` gets one entry for each variable of the file. Call it in slurm_spank_user_init.
void ioat_variables_apply(spank_t spank, const struct ioat_place *place,
                          const struct ioat_job_env *file, enum ioat_status *statuses);

#endif

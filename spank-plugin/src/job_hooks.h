// In the prolog and the epilog of a node, as root: runs the helper.
#ifndef IOAT_JOB_HOOKS_H
#define IOAT_JOB_HOOKS_H

#include <slurm/spank.h>

#include "arguments.h"

/// Runs the helper's `start` (prolog) or `finish` (epilog) for a job that carries a request; for
/// any other job nothing is done. Whatever happens is logged, and the job goes on.
void ioat_job_hook(const struct ioat_arguments *arguments, spank_t spank, const char *command);

#endif

#ifndef IOAT_JOB_HOOKS_H
#define IOAT_JOB_HOOKS_H

#include <slurm/spank.h>

#include "arguments.h"

/// Prolog and epilog, as root: runs the helper's `start` or `finish` for a job with a request, else
/// `restore` if settings are not restored. Errors are logged, and the job goes on.
void ioat_job_hook(const struct ioat_arguments *arguments, spank_t spank, const char *command);

#endif

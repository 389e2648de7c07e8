#ifndef IOAT_LOG_H
#define IOAT_LOG_H

#include <slurm/spank.h>

/// To stderr in sbatch, salloc and srun, else to slurmd's log; in slurmstepd also to the job's
/// stderr.
#define IOAT_ERROR(...) slurm_error("io-autotune: " __VA_ARGS__)
#define IOAT_INFO(...) slurm_info("io-autotune: " __VA_ARGS__)
/// Errors in slurmstepd: to slurmd's log alone, since a job's output must not change.
#define IOAT_STEP_ERROR(...) slurm_info("io-autotune: error: " __VA_ARGS__)
/// Detail, shown only on request (sbatch -vv, SlurmdDebug=debug).
#define IOAT_DEBUG(...) slurm_debug("io-autotune: " __VA_ARGS__)

#endif

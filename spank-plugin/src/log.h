// Log lines. Every one carries the plugin's name, because it ends up among those of Slurm and of
// other plugins.
#ifndef IOAT_LOG_H
#define IOAT_LOG_H

#include <slurm/spank.h>

/// An error: on stderr for a user of sbatch, salloc and srun, else in slurmd's log. In slurmstepd
/// it would be written to the job's own stderr as well.
#define IOAT_ERROR(...) slurm_error("io-autotune: " __VA_ARGS__)
/// Information, shown by default in the same places.
#define IOAT_INFO(...) slurm_info("io-autotune: " __VA_ARGS__)
/// What is wrong in slurmstepd: in slurmd's log alone, because a job's output is what it would be
/// without us.
#define IOAT_STEP_ERROR(...) slurm_info("io-autotune: error: " __VA_ARGS__)
/// Detail, shown only when asked for (sbatch -vv, SlurmdDebug=debug).
#define IOAT_DEBUG(...) slurm_debug("io-autotune: " __VA_ARGS__)

#endif

// Log lines. Every one carries the plugin's name, because it ends up among those of Slurm and of
// other plugins.
#ifndef IOAT_LOG_H
#define IOAT_LOG_H

#include <slurm/spank.h>

/// An error: on stderr for a user of sbatch, salloc and srun, else in slurmd's log.
#define IOAT_ERROR(...) slurm_error("io-autotune: " __VA_ARGS__)
/// Information, shown by default in the same places.
#define IOAT_INFO(...) slurm_info("io-autotune: " __VA_ARGS__)
/// Detail, shown only when asked for (sbatch -vv, SlurmdDebug=debug).
#define IOAT_DEBUG(...) slurm_debug("io-autotune: " __VA_ARGS__)

#endif

#ifndef IOAT_LOG_H
#define IOAT_LOG_H

#include <slurm/spank.h>

#include "unsignalled.h"

// Slurm writes a line to the stderr of sbatch, salloc and srun, which must not end by what is only
// said.
#define IOAT_LOG(function, ...)                                                                    \
    do {                                                                                           \
        struct ioat_held_signals ioat_before;                                                      \
        ioat_hold_signals(&ioat_before);                                                           \
        function("io-autotune: " __VA_ARGS__);                                                     \
        ioat_release_signals(&ioat_before);                                                        \
    } while (0)

/// To stderr in sbatch, salloc and srun, else to slurmd's log; in slurmstepd also to the job's
/// stderr.
#define IOAT_ERROR(...) IOAT_LOG(slurm_error, __VA_ARGS__)
#define IOAT_INFO(...) IOAT_LOG(slurm_info, __VA_ARGS__)
/// Errors in slurmstepd: to slurmd's log alone, since a job's output must not change.
#define IOAT_STEP_ERROR(...) IOAT_LOG(slurm_info, "error: " __VA_ARGS__)
/// Detail, shown only on request (sbatch -vv, SlurmdDebug=debug).
#define IOAT_DEBUG(...) IOAT_LOG(slurm_debug, __VA_ARGS__)

#endif

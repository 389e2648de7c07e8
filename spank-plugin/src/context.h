#ifndef IOAT_CONTEXT_H
#define IOAT_CONTEXT_H

#include "arguments.h"
#include "step.h"
#include "submission.h"

/// State between callbacks. Slurm calls the plugin from one thread at a time.
struct ioat_context {
    struct ioat_arguments arguments;
    /// For sbatch, salloc and srun.
    struct ioat_submission submission;
    /// For slurmstepd.
    struct ioat_step step;
};

#endif

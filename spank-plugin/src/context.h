// Everything that the plugin remembers between callbacks of one process.
#ifndef IOAT_CONTEXT_H
#define IOAT_CONTEXT_H

#include "arguments.h"
#include "step.h"
#include "submission.h"

/// The one context of a process. Slurm calls the plugin from one thread at a time.
struct ioat_context {
    struct ioat_arguments arguments;
    /// Used by sbatch, salloc and srun.
    struct ioat_submission submission;
    /// Used by slurmstepd.
    struct ioat_step step;
};

#endif

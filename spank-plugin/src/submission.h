#ifndef IOAT_SUBMISSION_H
#define IOAT_SUBMISSION_H

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>

#include "arguments.h"
#include "request.h"

/// State of sbatch, salloc and srun. Start with {0}.
struct ioat_submission {
    /// The last SPEC, if the option was given.
    bool asked;
    struct ioat_spec spec;
    /// Whether it was given for the current component of a heterogeneous job.
    bool asked_here;
    /// Components seen; the first one's SPEC and its request, which is empty when none travels.
    unsigned components;
    struct ioat_spec first_spec;
    char request[IOAT_REQUEST_SIZE];
    /// The user was told why something stays untuned.
    bool explained;
    /// Slurm has handed over the option of the environment for the current component, which asks
    /// for nothing.
    bool replayed;
    /// The last check: the callback fires for #SBATCH, the environment and the command line.
    char checked[IOAT_NAME_MAX + 1];
    bool refused;
    /// Nanoseconds of the deadline spent so far.
    int64_t spent_ns;
};

/// Handles the option. Returns -1, and logs why, when the SPEC is wrong or the service knows no
/// such accelerator; an outage refuses nothing.
int ioat_submission_option(struct ioat_submission *submission,
                           const struct ioat_arguments *arguments, const char *value);

/// Sends the request and shows the preview. An srun in an allocation that is there already passes
/// on its own job's request, and says what the option cannot change. Slurm calls it for each
/// component of a heterogeneous job, in order; the first carries the run. Nothing that would ask in
/// the job's name stays in the environment that the job inherits.
void ioat_submission_post_opt(struct ioat_submission *submission,
                              const struct ioat_arguments *arguments, spank_t spank);

#endif

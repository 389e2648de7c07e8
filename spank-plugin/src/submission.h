// In sbatch, salloc and srun, as the user: the option, the request that travels with the job, and
// the preview line.
#ifndef IOAT_SUBMISSION_H
#define IOAT_SUBMISSION_H

#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>

#include "arguments.h"
#include "request.h"

/// What one submitting process remembers. Start with {0}.
struct ioat_submission {
    /// Whether the option was given at all, and the last SPEC.
    bool asked;
    struct ioat_spec spec;
    /// Whether it was given for the component at hand. Only a heterogeneous job has several.
    bool asked_here;
    /// How many components have come by, and what the first of them asked for: the SPEC, and the
    /// request that travels, which is empty when none does.
    unsigned components;
    struct ioat_spec first_spec;
    char request[IOAT_REQUEST_SIZE];
    /// Whether it has been said why something stays untuned.
    bool explained;
    /// Whether the outer job's option has come by, in a submission from inside a job.
    bool replayed;
    /// The accelerator checked last and what came of it: the option's callback fires once for
    /// #SBATCH, once for the environment and once for the command line.
    char checked[IOAT_NAME_MAX + 1];
    bool refused;
    /// Nanoseconds of the deadline that are spent.
    int64_t spent_ns;
};

/// The option with the argument `value`. Returns -1, with the reason logged, when the SPEC is wrong
/// or the service knows no such accelerator; a service that cannot be asked refuses nothing.
int ioat_submission_option(struct ioat_submission *submission,
                           const struct ioat_arguments *arguments, const char *value);

/// All options are known: sends the request with the job and shows the preview; an srun inside a
/// job passes the job's request on, or explains why the step stays untuned. A job that did not ask
/// costs nothing. Slurm calls it once for each component of a heterogeneous job, in their order;
/// the first carries the run.
void ioat_submission_post_opt(struct ioat_submission *submission,
                              const struct ioat_arguments *arguments, spank_t spank);

#endif

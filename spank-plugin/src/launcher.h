// What sbatch, salloc and srun were asked for, beyond our own option.
#ifndef IOAT_LAUNCHER_H
#define IOAT_LAUNCHER_H

#include <stdbool.h>

/// Whether this runs inside a job, as far as the environment says: a user can unset or set anything
/// there.
bool ioat_launcher_is_inside_job(void);

/// Where a step goes.
enum ioat_allocation {
    /// None is there yet: srun makes one.
    IOAT_ALLOCATION_NEW,
    /// Of the job that srun runs in, whose environment it has.
    IOAT_ALLOCATION_OWN,
    /// Of another job, by --jobid.
    IOAT_ALLOCATION_OTHER,
};

/// In srun: the allocation that its step goes to.
enum ioat_allocation ioat_launcher_allocation(void);

/// The name that squeue will show for the job that is being submitted; NULL if it is not known. Not
/// to be freed.
const char *ioat_launcher_job_name(void);

/// The job's --comment; NULL without one, or if it is not known. Not to be freed.
const char *ioat_launcher_comment(void);

/// Whether --quiet or --parsable was given.
bool ioat_launcher_is_quiet(void);

#endif

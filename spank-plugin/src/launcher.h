// What sbatch, salloc and srun were asked for, beyond our own option.
#ifndef IOAT_LAUNCHER_H
#define IOAT_LAUNCHER_H

#include <stdbool.h>

/// Whether this runs inside a job.
bool ioat_launcher_is_inside_job(void);

/// The name that squeue will show for the job that is being submitted; NULL if it is not known. Not
/// to be freed.
const char *ioat_launcher_job_name(void);

/// The job's --comment; NULL without one, or if it is not known. Not to be freed.
const char *ioat_launcher_comment(void);

/// Whether --quiet or --parsable was given.
bool ioat_launcher_is_quiet(void);

#endif

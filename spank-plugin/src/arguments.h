// The plugin's own arguments: key=value words in plugstack.conf.
#ifndef IOAT_ARGUMENTS_H
#define IOAT_ARGUMENTS_H

#include <stdbool.h>

struct ioat_arguments {
    /// The helper's executable, an absolute path.
    const char *helper;
    /// Its configuration file, an absolute path.
    const char *config;
    /// Has the jobs' directories, RUN/CLUSTER/NODE/JOBID.
    const char *run_dir;
    /// Undelivered reports.
    const char *spool_dir;
    /// Milliseconds per sbatch, salloc or srun, in total.
    int submit_deadline_ms;
    /// Milliseconds per prolog and per epilog.
    int job_deadline_ms;
    bool default_on;
};

/// Gets a full sentence on each argument that is not understood.
typedef void ioat_arguments_report_f(const char *message);

/// Starts from the defaults. A wrong word is reported and its default stays: a typo must never harm
/// a job. The strings stay in `words`, which Slurm keeps while the plugin is loaded.
void ioat_arguments_parse(int count, char **words, struct ioat_arguments *arguments,
                          ioat_arguments_report_f *report);

#endif

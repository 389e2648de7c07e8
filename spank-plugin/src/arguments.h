// The plugin's own arguments: the key=value words behind its path in plugstack.conf.
#ifndef IOAT_ARGUMENTS_H
#define IOAT_ARGUMENTS_H

#include <stdbool.h>

/// What the administrator configured.
struct ioat_arguments {
    /// The helper's executable, an absolute path.
    const char *helper;
    /// The helper's configuration file, an absolute path.
    const char *config;
    /// Where the jobs' directories are: RUN/CLUSTER/NODE/JOBID.
    const char *run_dir;
    /// Where the helper keeps reports that could not be delivered.
    const char *spool_dir;
    /// Milliseconds that one sbatch, salloc or srun may spend on us, in total.
    int submit_deadline_ms;
    /// Milliseconds that the prolog, and again the epilog, may spend on us.
    int job_deadline_ms;
    /// Whether a job without the option is treated as if it had it.
    bool default_on;
};

/// Told about each argument that is not understood; `message` is a full sentence.
typedef void ioat_arguments_report_f(const char *message);

/// Reads the `count` words of `words` into `arguments`, which starts with the defaults. A word that
/// is wrong is reported and its default stays: a typo here must never harm a job. The strings are
/// borrowed from `words`, which Slurm keeps as long as the plugin is loaded.
void ioat_arguments_parse(int count, char **words, struct ioat_arguments *arguments,
                          ioat_arguments_report_f *report);

#endif

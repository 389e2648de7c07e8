// The job's file, which the helper writes in the prolog: what to set in each step. Pure.
//
//     io-autotune 1
//     job 1234
//     uid 1000
//     set NAME=VALUE        (any number; set the variable, and report on it)
//     watch NAME            (any number; only report on it)
//     tell TEXT             (at most once; a line for the job's stderr)
#ifndef IOAT_JOB_ENV_H
#define IOAT_JOB_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IOAT_JOB_ENV_NAME "job.env"
/// Below half of what one Linux variable holds (MAX_ARG_STRLEN): the record is one variable.
#define IOAT_JOB_ENV_MAX 32768
/// Without the newline.
#define IOAT_JOB_ENV_LINE_MAX 4096
#define IOAT_JOB_ENV_VARIABLES 64

struct ioat_variable {
    const char *name;
    /// NULL when it is only watched.
    const char *value;
};

struct ioat_job_env {
    uint32_t job_id;
    uint32_t uid;
    /// NULL: the job did not ask.
    const char *tell;
    size_t count;
    struct ioat_variable variables[IOAT_JOB_ENV_VARIABLES];
};

/// Whether we may set or remove a variable: well formed, not Slurm's or our record, and nothing
/// that root's programs, the dynamic linker or an interpreter act on.
bool ioat_job_env_allows(const char *name, size_t length);

/// Parses `text` in place; it needs room for one more byte, and `file` points into it. Returns
/// NULL, or why the whole file must not be used.
const char *ioat_job_env_parse(char *text, size_t length, struct ioat_job_env *file);

#endif

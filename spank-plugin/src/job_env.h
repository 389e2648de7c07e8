// The job's file, which the helper writes in the prolog: what to set in each step. Pure.
//
//     io-autotune 1
//     job 1234
//     uid 1000
//     set NAME=VALUE        (any number; a variable to set, and to report on)
//     watch NAME            (any number; a variable to report on)
#ifndef IOAT_JOB_ENV_H
#define IOAT_JOB_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The file's name in the job's directory.
#define IOAT_JOB_ENV_NAME "job.env"
/// Its largest size. Half of what Linux lets one variable hold (MAX_ARG_STRLEN), and less, because
/// what is set is recorded in one.
#define IOAT_JOB_ENV_MAX 32768
/// Its longest line, without the newline.
#define IOAT_JOB_ENV_LINE_MAX 4096
/// How many variables it may name.
#define IOAT_JOB_ENV_VARIABLES 64

/// One variable.
struct ioat_variable {
    const char *name;
    /// What to set it to; NULL when it is only watched.
    const char *value;
};

/// A job's file.
struct ioat_job_env {
    uint32_t job_id;
    uint32_t uid;
    size_t count;
    struct ioat_variable variables[IOAT_JOB_ENV_VARIABLES];
};

/// Whether we may set or remove a variable: the name is well formed, and is not one that root's
/// programs, the dynamic linker or an interpreter act on, nor Slurm's, nor our own record.
bool ioat_job_env_allows(const char *name, size_t length);

/// Reads the `length` bytes of `text`, which must have room for one more, and cuts them into
/// pieces in place; `file` points into them. Returns NULL, or what is wrong with the file, which is
/// then not to be used at all.
const char *ioat_job_env_parse(char *text, size_t length, struct ioat_job_env *file);

#endif

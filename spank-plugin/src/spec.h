// The option's argument: --io-autotune[=SPEC]. Pure.
#ifndef IOAT_SPEC_H
#define IOAT_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

enum ioat_mode {
    IOAT_MODE_TUNE,
    /// Measure and record, apply nothing.
    IOAT_MODE_OBSERVE,
    /// Leave the job alone.
    IOAT_MODE_OFF,
};

/// Absent names are empty.
struct ioat_spec {
    enum ioat_mode mode;
    char app[IOAT_NAME_MAX + 1];
    char accelerator[IOAT_NAME_MAX + 1];
    /// Say what is known of the application wherever stderr goes.
    bool verbose;
    /// Say in the job's stderr what it runs with.
    bool tell;
    /// The user's directory that commands may act on, as the user.
    char dir[IOAT_PATH_MAX + 1];
};

#define IOAT_SPEC_ERROR_SIZE 512

/// Parses an accelerator's name, a mode, `verbose`, `tell`, and key=value items with the keys app,
/// accelerator, dir and mode. NULL, "" and "(null)" mean no SPEC (Slurm passes all three,
/// src/common/plugstack.c). `from` says where it was given. Returns 0; or -1 with an empty `spec`
/// and, in `error`, what is wrong and what can be given.
int ioat_spec_parse(const char *text, const char *from, struct ioat_spec *spec,
                    char error[IOAT_SPEC_ERROR_SIZE]);

/// Bytes of the longest SPEC.
#define IOAT_SPEC_MAX 1024

/// Writes a SPEC that can be parsed without its app=, and returns whether it had one.
bool ioat_spec_without_app(const char *text, char kept[IOAT_SPEC_MAX + 1]);

const char *ioat_mode_name(enum ioat_mode mode);

#endif

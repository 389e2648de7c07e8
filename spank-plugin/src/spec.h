// The option's argument: --io-autotune[=SPEC]. Pure.
#ifndef IOAT_SPEC_H
#define IOAT_SPEC_H

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
};

#define IOAT_SPEC_ERROR_SIZE 512

/// Parses an accelerator's name and key=value items with the keys app, accelerator and mode. NULL,
/// "" and "(null)" mean no SPEC (Slurm passes all three, src/common/plugstack.c). Returns 0; or -1
/// with an empty `spec` and, in `error`, what is wrong and what can be given.
int ioat_spec_parse(const char *text, struct ioat_spec *spec, char error[IOAT_SPEC_ERROR_SIZE]);

const char *ioat_mode_name(enum ioat_mode mode);

#endif

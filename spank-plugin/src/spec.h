// The option's argument: --io-autotune[=SPEC]. Pure.
#ifndef IOAT_SPEC_H
#define IOAT_SPEC_H

#include <stddef.h>

#include "text.h"

/// What a user wants done with a job.
enum ioat_mode {
    /// Measure it and apply the next parametrization.
    IOAT_MODE_TUNE,
    /// Measure and record, apply nothing.
    IOAT_MODE_OBSERVE,
    /// Leave the job alone.
    IOAT_MODE_OFF,
};

/// A SPEC. A name that was not given is empty.
struct ioat_spec {
    enum ioat_mode mode;
    char app[IOAT_NAME_MAX + 1];
    char accelerator[IOAT_NAME_MAX + 1];
};

/// Room for any message of ioat_spec_parse, in bytes.
#define IOAT_SPEC_ERROR_SIZE 512

/// Reads a SPEC: items separated by commas, each an accelerator's name or key=value with the keys
/// app, accelerator and mode. NULL, "" and "(null)" mean that no SPEC was given (Slurm hands over
/// all three, src/common/plugstack.c). Returns 0; or -1 with the reason in `error`, which says what
/// was asked, what is wrong and what can be given, and `spec` as if none was given.
int ioat_spec_parse(const char *text, struct ioat_spec *spec, char error[IOAT_SPEC_ERROR_SIZE]);

/// The mode's name as a user writes it.
const char *ioat_mode_name(enum ioat_mode mode);

#endif

// The request that travels with a job: a SPEC plus what the submission knows. Pure.
#ifndef IOAT_REQUEST_H
#define IOAT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "spec.h"

/// Absent names are empty.
struct ioat_request {
    enum ioat_mode mode;
    char app[IOAT_NAME_MAX + 1];
    char accelerator[IOAT_NAME_MAX + 1];
    /// The job's name identifies no application, so the job is only observed.
    bool meaningless_name;
};

#define IOAT_REQUEST_SIZE 384

/// Without app=, the application is `job_name` (may be NULL) with `_` for each character that names
/// cannot have. If that is meaningless (`wrap`, `bash`, ...) or no name, the mode becomes observe.
struct ioat_request ioat_request_derive(const struct ioat_spec *spec, const char *job_name);

/// Writes app=NAME,accelerator=NAME,mode=MODE[,note=meaningless_name] without empty items.
void ioat_request_format(const struct ioat_request *request, char text[IOAT_REQUEST_SIZE]);

#endif

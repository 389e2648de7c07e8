// What travels with a job: a SPEC completed by what the submission knows. Pure.
#ifndef IOAT_REQUEST_H
#define IOAT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "spec.h"

/// A job's request. A name that there is none of is empty.
struct ioat_request {
    enum ioat_mode mode;
    char app[IOAT_NAME_MAX + 1];
    char accelerator[IOAT_NAME_MAX + 1];
    /// The job's name tells no application from another, so the job is observed and not tuned.
    bool meaningless_name;
};

/// Room for any request's text, in bytes.
#define IOAT_REQUEST_SIZE 384

/// Completes `spec`. Without app=, the application is `job_name` (NULL when there is none) with `_`
/// for each character that names do not have; when it means nothing (`wrap`, `bash`, `run.sh`, ...)
/// or is no name even so, the mode becomes observe.
struct ioat_request ioat_request_derive(const struct ioat_spec *spec, const char *job_name);

/// Writes the canonical text app=NAME,accelerator=NAME,mode=MODE[,note=meaningless_name]; what is
/// empty is left out.
void ioat_request_format(const struct ioat_request *request, char text[IOAT_REQUEST_SIZE]);

#endif

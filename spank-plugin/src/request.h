// The request that travels with a job: a SPEC plus what the submission knows. Pure.
#ifndef IOAT_REQUEST_H
#define IOAT_REQUEST_H

#include "spec.h"

/// Bytes of a job's name or comment that travel; the rest is cut.
#define IOAT_REQUEST_TEXT_MAX 256

/// With its three times encoded texts, two names, a path, keys and signs.
#define IOAT_REQUEST_SIZE 2048

/// Writes [app=NAME,][name=TEXT,][comment=TEXT,][accelerator=NAME,]mode=MODE[,tell=yes]
/// [,dir=PATH], without a break. Without
/// app= the service makes the application of the job's name and comment, each of which may be NULL.
/// TEXT is percent-encoded: what a name cannot have is %XX.
void ioat_request_format(const struct ioat_spec *spec, const char *job_name, const char *comment,
                         char text[IOAT_REQUEST_SIZE]);

/// Whether a job with this request, which may be anything, already has what the SPEC of one of its
/// steps asks for.
bool ioat_request_has(const char *request, const struct ioat_spec *spec);

#endif

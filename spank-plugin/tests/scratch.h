// A directory of one's own for each test, and small files in it.
#ifndef IOAT_TESTS_SCRATCH_H
#define IOAT_TESTS_SCRATCH_H

#include <stdbool.h>
#include <sys/types.h>

/// Makes a fresh directory, below $TMPDIR or /tmp; its path is valid until scratch_remove.
const char *scratch_make(void);

/// Removes it with all that is in it.
void scratch_remove(void);

/// The path of a file in it; valid for eight more calls.
const char *scratch_path(const char *name);

/// Writes a file with these permissions.
const char *scratch_write(const char *name, const char *text, mode_t mode);

/// Makes a directory and those above it.
const char *scratch_mkdir(const char *name, mode_t mode);

/// Writes an executable /bin/sh script, and returns its path.
const char *scratch_script(const char *name, const char *body);

/// The content of a file, or "" when there is none; valid until the next call.
const char *scratch_read(const char *name);

/// Whether there is such a file.
bool scratch_exists(const char *name);

#endif

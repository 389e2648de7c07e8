// A line in a job's output.
#ifndef IOAT_TELL_H
#define IOAT_TELL_H

#include <stdbool.h>
#include <stddef.h>

/// Writes "io-autotune: TEXT" and a newline to `fd`, at most 1024 bytes in one write; `kept` is a
/// variable that the job had set itself, or NULL. Writes nothing where that would wait, and raises
/// no signal: the line is never worth a job's time.
void ioat_tell(int fd, const char *text, const char *kept);

/// Whether a line can be written now: a reader that does not read lets whoever writes wait.
bool ioat_can_be_told(int fd);

/// Writes once, whatever comes of it: no limit on files and no reader that is gone ends the
/// process.
void ioat_write_once(int fd, const char *text, size_t length);

#endif

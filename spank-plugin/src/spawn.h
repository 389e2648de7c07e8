#ifndef IOAT_SPAWN_H
#define IOAT_SPAWN_H

#include <stdbool.h>
#include <stddef.h>

struct ioat_spawn {
    /// argv[0] is the executable's absolute path.
    char *const *argv;
    char *const *envp;
    /// The child's standard input, at most IOAT_SPAWN_INPUT_MAX bytes; NULL: /dev/null. Unlike
    /// arguments, other users of the host cannot read it.
    const char *input;
    /// Milliseconds until the child and its process group are killed.
    int deadline_ms;
    /// Whether stderr joins stdout or goes to /dev/null.
    bool with_stderr;
};

/// What any pipe holds, so that nobody waits for the child to read it: pipe(7) has a page at least.
#define IOAT_SPAWN_INPUT_MAX 4096

enum ioat_outcome {
    /// `code` is the exit status.
    IOAT_EXITED,
    /// `code` is the signal.
    IOAT_SIGNALLED,
    /// Killed at the deadline; `code` is 0.
    IOAT_TIMED_OUT,
    /// `code` is an errno value.
    IOAT_NOT_STARTED,
    /// Reaped by other code of this process or an ignored SIGCHLD; `code` is 0.
    IOAT_LOST,
};

struct ioat_spawn_result {
    enum ioat_outcome outcome;
    int code;
    /// Bytes of output kept; more was read and dropped.
    size_t length;
};

/// Runs a child under a hard deadline in its own process group, with default signals and no
/// inherited descriptors. Returns at its end, or at most 0.2 s after the deadline,
/// without waiting for other holders of the pipe; kills the rest of the process group. Starts no
/// thread and changes no signal handler.
struct ioat_spawn_result ioat_spawn_run(const struct ioat_spawn *spawn, char *output, size_t size);

void ioat_spawn_describe(const struct ioat_spawn_result *result, char *text, size_t size);

#endif

// One child under a hard deadline.
#ifndef IOAT_SPAWN_H
#define IOAT_SPAWN_H

#include <stdbool.h>
#include <stddef.h>

/// What is to be run.
struct ioat_spawn {
    /// argv[0] is the executable's absolute path.
    char *const *argv;
    /// The child's whole environment.
    char *const *envp;
    /// Milliseconds until the child, and its process group, is killed.
    int deadline_ms;
    /// Whether stderr is taken together with stdout; else it goes to /dev/null.
    bool with_stderr;
};

/// How it ended.
enum ioat_outcome {
    /// It exited; `code` is its exit status.
    IOAT_EXITED,
    /// A signal ended it; `code` is the signal.
    IOAT_SIGNALLED,
    /// It was killed at its deadline; `code` is 0.
    IOAT_TIMED_OUT,
    /// It could not be started; `code` is an errno value.
    IOAT_NOT_STARTED,
    /// It ended, and somebody else in this process (or an ignored SIGCHLD) reaped it; `code` is 0.
    IOAT_LOST,
};

/// The result of ioat_spawn_run.
struct ioat_spawn_result {
    enum ioat_outcome outcome;
    int code;
    /// Bytes of output kept; further output was read and dropped.
    size_t length;
};

/// Runs a child in a process group of its own, with every signal unblocked and at its default,
/// stdin from /dev/null and no other descriptor of this process. Returns when it has ended, or
/// at most a fifth of a second after the deadline: whoever still holds the pipe is not waited for.
/// Up to `size` bytes of output are stored in `output`. What is left of the process group is
/// killed. Starts no thread and changes no signal handler.
struct ioat_spawn_result ioat_spawn_run(const struct ioat_spawn *spawn, char *output, size_t size);

/// Says in words how a child ended, for a log, in `text`.
void ioat_spawn_describe(const struct ioat_spawn_result *result, char *text, size_t size);

#endif

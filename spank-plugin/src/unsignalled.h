// What is only said ends no process.
#ifndef IOAT_UNSIGNALLED_H
#define IOAT_UNSIGNALLED_H

#include <signal.h>
#include <stdbool.h>

/// What a thread's signals were before `ioat_hold_signals`.
struct ioat_held_signals {
    sigset_t mask;
    sigset_t pending;
    bool held;
};

/// Until `ioat_release_signals`, the calling thread gets no signal by writing to a pipe without a
/// reader or beyond a limit on files. Other threads of sbatch, srun and the job's own program, and
/// what they do about signals, are not touched.
void ioat_hold_signals(struct ioat_held_signals *before);

/// Forgets the signals that came by writing meanwhile. `errno` stays.
void ioat_release_signals(const struct ioat_held_signals *before);

#endif

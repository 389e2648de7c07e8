#include "unsignalled.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

// Both are sent to the thread that writes.
static const int SIGNALS[] = {SIGPIPE, SIGXFSZ};
#define SIGNALS_COUNT (sizeof SIGNALS / sizeof *SIGNALS)

void ioat_hold_signals(struct ioat_held_signals *before)
{
    sigset_t signals;
    sigemptyset(&signals);
    for (size_t i = 0; i < SIGNALS_COUNT; i++)
        sigaddset(&signals, SIGNALS[i]);
    sigemptyset(&before->pending);
    sigpending(&before->pending);
    before->held = pthread_sigmask(SIG_BLOCK, &signals, &before->mask) == 0;
}

void ioat_release_signals(const struct ioat_held_signals *before)
{
    const struct timespec at_once = {0};
    const int error = errno;
    if (!before->held)
        return;
    for (size_t i = 0; i < SIGNALS_COUNT; i++) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, SIGNALS[i]);
        // What was pending before is for whoever had blocked it.
        if (sigismember(&before->pending, SIGNALS[i]) == 1)
            continue;
        while (sigtimedwait(&one, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
    errno = error;
}

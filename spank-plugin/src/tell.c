#include "tell.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

// Less than PIPE_BUF: a pipe that can be written to takes all of it.
#define LINE_SIZE 1024

// A limit on files or a reader that is gone would end the task by these.
static const int SIGNALS[] = {SIGPIPE, SIGXFSZ};
#define SIGNALS_COUNT (sizeof SIGNALS / sizeof *SIGNALS)

void ioat_write_once(int fd, const char *text, size_t length)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before[SIGNALS_COUNT];
    size_t ignored = 0;
    while (ignored < SIGNALS_COUNT && sigaction(SIGNALS[ignored], &ignore, &before[ignored]) == 0)
        ignored++;
    if (ignored == SIGNALS_COUNT && write(fd, text, length) < 0) {
        // The job's own output fails as well then, and says so.
    }
    while (ignored-- > 0)
        sigaction(SIGNALS[ignored], &before[ignored], NULL);
}

void ioat_tell(int fd, const char *text, const char *kept)
{
    char line[LINE_SIZE];
    int length = kept == NULL
                     ? snprintf(line, sizeof line, "io-autotune: %s\n", text)
                     : snprintf(line, sizeof line,
                                "io-autotune: %s is this job's own and stays, so nothing of the "
                                "tuner's counts; asked for was: %s\n",
                                kept, text);
    if (length < 0)
        return;
    if ((size_t)length >= sizeof line) {
        length = sizeof line - 1;
        line[length - 1] = '\n';
    }
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0)
        ioat_write_once(fd, line, (size_t)length);
}

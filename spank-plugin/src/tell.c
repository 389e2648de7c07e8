#include "tell.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "unsignalled.h"

// Less than PIPE_BUF: a pipe that can be written to takes all of it.
#define LINE_SIZE 1024

void ioat_write_once(int fd, const char *text, size_t length)
{
    struct ioat_held_signals before;
    ioat_hold_signals(&before);
    if (write(fd, text, length) < 0) {
        // The job's own output fails as well then, and says so.
    }
    ioat_release_signals(&before);
}

bool ioat_can_be_told(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    return poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0;
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
    if (ioat_can_be_told(fd))
        ioat_write_once(fd, line, (size_t)length);
}

#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "pidfd.h"

// Only a child in an uninterruptible system call survives SIGKILL longer; the job does not wait.
#define KILL_GRACE_MS 200
// The polling interval without pidfd.
#define LOOK_MS 5

struct child {
    pid_t pid;
    int pidfd;
    // -1 after its end.
    int output;
};

struct sink {
    char *bytes;
    size_t size;
    size_t length;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    int rc = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                      POSIX_SPAWN_SETSIGDEF);
    if (rc == 0)
        rc = posix_spawnattr_setpgroup(attributes, 0);
    if (rc == 0)
        rc = posix_spawnattr_setsigmask(attributes, &none);
    if (rc == 0)
        rc = posix_spawnattr_setsigdefault(attributes, &all);
    return rc;
}

static int set_actions(posix_spawn_file_actions_t *actions, int input, int output, bool with_stderr)
{
    // The pipe first: it may itself be descriptor 0, 1 or 2 if the host program has closed them.
    // The input is none of these.
    int rc = posix_spawn_file_actions_adddup2(actions, output, 1);
    if (rc == 0 && with_stderr)
        rc = posix_spawn_file_actions_adddup2(actions, 1, 2);
    if (rc == 0 && !with_stderr)
        rc = posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY, 0);
    if (rc == 0 && input >= 0)
        rc = posix_spawn_file_actions_adddup2(actions, input, 0);
    if (rc == 0 && input < 0)
        rc = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_addclosefrom_np(actions, 3);
    return rc;
}

// A pipe that holds all of a text; its end for reading is no standard descriptor.
static int pipe_with(const char *text, int *reader)
{
    int pipe_fds[2];
    const size_t length = strlen(text);
    if (length > IOAT_SPAWN_INPUT_MAX)
        return E2BIG;
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return errno;
    // Its reader is there, so nothing raises SIGPIPE.
    const ssize_t written = write(pipe_fds[1], text, length);
    int rc = written < 0 ? errno : 0;
    if (rc == 0 && (size_t)written != length)
        rc = ENOBUFS;
    if (rc == 0) {
        *reader = fcntl(pipe_fds[0], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        rc = *reader < 0 ? errno : 0;
    }
    // The child waits for what it reads as others do.
    if (rc == 0 && fcntl(*reader, F_SETFL, 0) != 0)
        rc = errno;
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return rc;
}

static int start_with(const struct ioat_spawn *spawn, int input, struct child *child)
{
    int pipe_fds[2];
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return errno;
    int rc = fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
    if (rc == 0)
        rc = posix_spawnattr_init(&attributes);
    if (rc == 0) {
        rc = posix_spawn_file_actions_init(&actions);
        if (rc == 0) {
            rc = set_attributes(&attributes);
            if (rc == 0)
                rc = set_actions(&actions, input, pipe_fds[1], spawn->with_stderr);
            if (rc == 0)
                rc = posix_spawn(&child->pid, spawn->argv[0], &actions, &attributes, spawn->argv,
                                 spawn->envp);
            posix_spawn_file_actions_destroy(&actions);
        }
        posix_spawnattr_destroy(&attributes);
    }
    close(pipe_fds[1]);
    if (rc != 0) {
        close(pipe_fds[0]);
        return rc;
    }
    child->output = pipe_fds[0];
    child->pidfd = ioat_pidfd_open(child->pid);
    return 0;
}

static int start(const struct ioat_spawn *spawn, struct child *child)
{
    int input = -1;
    int rc = spawn->input == NULL ? 0 : pipe_with(spawn->input, &input);
    if (rc == 0)
        rc = start_with(spawn, input, child);
    close_fd(&input);
    return rc;
}

// Reads what the pipe holds, at most one pipe's worth; closes it at its end.
static void drain(struct child *child, struct sink *sink)
{
    char spare[4096];
    for (int i = 0; i < 16 && child->output >= 0; i++) {
        const size_t room = sink->size - sink->length;
        char *target = room > 0 ? sink->bytes + sink->length : spare;
        const ssize_t got = read(child->output, target, room > 0 ? room : sizeof spare);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0)
            close_fd(&child->output);
        else if (room > 0)
            sink->length += (size_t)got;
    }
}

// The child is not reaped yet: while it is a zombie, its process group's id cannot be reused.
static bool has_ended(const struct child *child)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        return info.si_pid == child->pid;
    return errno == ECHILD;
}

// True at the child's end, false at `deadline_ns`.
static bool await_end(struct child *child, struct sink *sink, int64_t deadline_ns)
{
    for (;;) {
        if (has_ended(child))
            return true;
        const int64_t left_ns = deadline_ns - ioat_now_ns();
        if (left_ns <= 0)
            return false;
        int64_t wait_ms = (left_ns + IOAT_NS_PER_MS - 1) / IOAT_NS_PER_MS;
        if (child->pidfd < 0 && wait_ms > LOOK_MS)
            wait_ms = LOOK_MS;
        // poll ignores negative descriptors.
        struct pollfd fds[] = {
            {.fd = child->output, .events = POLLIN},
            {.fd = child->pidfd, .events = POLLIN},
        };
        if (poll(fds, 2, (int)wait_ms) > 0 && fds[0].revents != 0)
            drain(child, sink);
    }
}

static void reap(pid_t pid, bool in_time, struct ioat_spawn_result *result)
{
    int status = 0;
    pid_t rc;
    do
        rc = waitpid(pid, &status, WNOHANG);
    while (rc < 0 && errno == EINTR);
    result->outcome = IOAT_LOST;
    result->code = 0;
    if (!in_time) {
        result->outcome = IOAT_TIMED_OUT;
    } else if (rc == pid && WIFEXITED(status)) {
        result->outcome = IOAT_EXITED;
        result->code = WEXITSTATUS(status);
    } else if (rc == pid && WIFSIGNALED(status)) {
        result->outcome = IOAT_SIGNALLED;
        result->code = WTERMSIG(status);
    }
}

struct ioat_spawn_result ioat_spawn_run(const struct ioat_spawn *spawn, char *output, size_t size)
{
    const int64_t deadline_ns = ioat_now_ns() + spawn->deadline_ms * IOAT_NS_PER_MS;
    struct ioat_spawn_result result = {.outcome = IOAT_NOT_STARTED};
    struct child child = {.pid = -1, .pidfd = -1, .output = -1};
    struct sink sink = {.bytes = output, .size = size};
    result.code = start(spawn, &child);
    if (result.code != 0)
        return result;
    const bool in_time = await_end(&child, &sink, deadline_ns);
    // With SIGCHLD ignored no zombie reserves the process group's id.
    siginfo_t info;
    if (!in_time || waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        kill(-child.pid, SIGKILL);
    if (!in_time)
        await_end(&child, &sink, ioat_now_ns() + KILL_GRACE_MS * IOAT_NS_PER_MS);
    drain(&child, &sink);
    reap(child.pid, in_time, &result);
    result.length = sink.length;
    close_fd(&child.output);
    close_fd(&child.pidfd);
    return result;
}

void ioat_spawn_describe(const struct ioat_spawn_result *result, char *text, size_t size)
{
    switch (result->outcome) {
    case IOAT_EXITED:
        snprintf(text, size, "ended with exit status %d", result->code);
        return;
    case IOAT_SIGNALLED:
        snprintf(text, size, "was ended by signal %d", result->code);
        return;
    case IOAT_TIMED_OUT:
        snprintf(text, size, "was killed at its deadline");
        return;
    case IOAT_NOT_STARTED:
        snprintf(text, size, "could not be started: %s", strerrordesc_np(result->code));
        return;
    case IOAT_LOST:
        snprintf(text, size, "ended, with an unknown exit status");
        return;
    }
}

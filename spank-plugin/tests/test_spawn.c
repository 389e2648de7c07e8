// A child under a deadline, and every way in which it can misbehave.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "cmocka_all.h"
#include "fake_spank.h"
#include "scratch.h"
#include "spawn.h"

// Far beyond any deadline below, and below what a child that is not killed would take.
#define PROMPT_MS 5000

static char output[4097];
static int64_t took_ms;

// What the next child is given.
static const char *input;

static struct ioat_spawn_result run_with(const char *body, int deadline_ms, bool with_stderr)
{
    char *argv[] = {(char *)(uintptr_t)scratch_script("child", body), "argument", NULL};
    char *envp[] = {"PATH=/usr/bin:/bin", "KEPT=yes", NULL};
    const struct ioat_spawn spawn = {.argv = argv,
                                     .envp = envp,
                                     .input = input,
                                     .deadline_ms = deadline_ms,
                                     .with_stderr = with_stderr};
    memset(output, 0, sizeof output);
    const int64_t begin_ns = ioat_now_ns();
    const struct ioat_spawn_result result = ioat_spawn_run(&spawn, output, sizeof output - 1);
    took_ms = (ioat_now_ns() - begin_ns) / IOAT_NS_PER_MS;
    // Whatever happened, no zombie stays.
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    return result;
}

static struct ioat_spawn_result run(const char *body, int deadline_ms)
{
    return run_with(body, deadline_ms, true);
}

static int setup(void **state)
{
    (void)state;
    fake_reset(S_CTX_ALLOCATOR);
    setenv("SECRET", "leaked", 1);
    input = NULL;
    scratch_make();
    return 0;
}

static int setup_without_pidfd(void **state)
{
    setup(state);
    fake_no_pidfd = true;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fake_reset(S_CTX_ALLOCATOR);
    scratch_remove();
    return 0;
}

static void output_and_status(void **state)
{
    (void)state;
    const struct ioat_spawn_result result =
        run("echo \"$1 $KEPT [$SECRET]\"; echo err >&2; read x || echo eof; exit 3", PROMPT_MS);
    assert_int_equal(result.outcome, IOAT_EXITED);
    assert_int_equal(result.code, 3);
    assert_string_equal(output, "argument yes []\nerr\neof\n");
    assert_int_equal(result.length, strlen(output));
}

static void the_input_is_read_to_its_end(void **state)
{
    (void)state;
    static char most[IOAT_SPAWN_INPUT_MAX + 2];
    memset(most, 'x', IOAT_SPAWN_INPUT_MAX);
    input = most;
    struct ioat_spawn_result result = run("wc -c", PROMPT_MS);
    assert_int_equal(result.outcome, IOAT_EXITED);
    assert_int_equal(atoi(output), IOAT_SPAWN_INPUT_MAX);
    // One that does not read is not waited for.
    result = run("exit 4", PROMPT_MS);
    assert_int_equal(result.code, 4);
    assert_true(took_ms < PROMPT_MS);
    most[IOAT_SPAWN_INPUT_MAX] = 'x';
    result = run("wc -c", PROMPT_MS);
    assert_int_equal(result.outcome, IOAT_NOT_STARTED);
    assert_int_equal(result.code, E2BIG);
    input = "";
    result = run("wc -c", PROMPT_MS);
    assert_string_equal(output, "0\n");
}

// sbatch may have been started without them: then pipes get their numbers.
static void the_input_comes_where_standard_descriptors_are_closed(void **state)
{
    (void)state;
    int kept[3];
    input = "a secret";
    for (int fd = 0; fd < 3; fd++) {
        kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
        close(fd);
    }
    const struct ioat_spawn_result result = run("cat; echo .", PROMPT_MS);
    for (int fd = 0; fd < 3; fd++) {
        dup2(kept[fd], fd);
        close(kept[fd]);
    }
    assert_int_equal(result.outcome, IOAT_EXITED);
    assert_string_equal(output, "a secret.\n");
}

static void stderr_can_be_dropped(void **state)
{
    (void)state;
    const struct ioat_spawn_result result = run_with("echo out; echo err >&2", PROMPT_MS, false);
    assert_int_equal(result.code, 0);
    assert_string_equal(output, "out\n");
}

static void a_signal(void **state)
{
    (void)state;
    const struct ioat_spawn_result result = run("kill -SEGV $$", PROMPT_MS);
    assert_int_equal(result.outcome, IOAT_SIGNALLED);
    assert_int_equal(result.code, SIGSEGV);
}

static void clean_start(void **state)
{
    (void)state;
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGINT, SIG_IGN);
    const int leak = fcntl(0, F_DUPFD, 57);
    assert_true(leak >= 57);
    const struct ioat_spawn_result result = run(
        "[ \"$(cut -d' ' -f5 /proc/$$/stat)\" = $$ ] && echo group\n"
        "[ -e /proc/$$/fd/57 ] || echo closed\n"
        // glibc's posix_spawn ignores the two signals that it keeps to itself (32 and 33).
        "grep -E 'Sig(Blk|Ign):.(0000000000000000|0000000180000000)$' /proc/self/status | wc -l",
        PROMPT_MS);
    close(leak);
    signal(SIGINT, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(result.code, 0);
    assert_string_equal(output, "group\nclosed\n2\n");
}

static void closed_standard_descriptors(void **state)
{
    (void)state;
    int saved[3];
    for (int i = 0; i < 3; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    const struct ioat_spawn_result result =
        run("echo out; echo err >&2; read x || echo eof", PROMPT_MS);
    for (int i = 0; i < 3; i++) {
        dup2(saved[i], i);
        close(saved[i]);
    }
    assert_int_equal(result.outcome, IOAT_EXITED);
    assert_string_equal(output, "out\nerr\neof\n");
}

static void missing(void **state)
{
    (void)state;
    char *argv[] = {"/nonexistent/io-autotune-node", NULL}, *envp[] = {NULL};
    char text[128];
    const struct ioat_spawn spawn = {.argv = argv, .envp = envp, .deadline_ms = PROMPT_MS};
    const struct ioat_spawn_result result = ioat_spawn_run(&spawn, output, 16);
    assert_int_equal(result.outcome, IOAT_NOT_STARTED);
    assert_int_equal(result.code, ENOENT);
    ioat_spawn_describe(&result, text, sizeof text);
    assert_string_equal(text, "could not be started: No such file or directory");
}

static void not_executable(void **state)
{
    (void)state;
    char *argv[] = {(char *)(uintptr_t)scratch_write("plain", "data", 0644), NULL};
    char *envp[] = {NULL};
    const struct ioat_spawn spawn = {.argv = argv, .envp = envp, .deadline_ms = PROMPT_MS};
    const struct ioat_spawn_result result = ioat_spawn_run(&spawn, output, 16);
    assert_int_equal(result.outcome, IOAT_NOT_STARTED);
    assert_int_equal(result.code, EACCES);
}

// Promise: a job hangs, or waits longer than the deadline
static void hangs(void **state)
{
    (void)state;
    // With a child of its own, and deaf to gentler signals.
    const struct ioat_spawn_result result = run("trap '' TERM INT HUP\necho before\nsleep 60", 200);
    assert_int_equal(result.outcome, IOAT_TIMED_OUT);
    assert_true(took_ms >= 200);
    assert_true(took_ms < PROMPT_MS);
    assert_string_equal(output, "before\n");
}

// Promise: a job hangs, or waits longer than the deadline
static void the_group_is_killed(void **state)
{
    (void)state;
    char body[256];
    // The grandchild says that it lives, and then holds a lock on a FIFO's reading end.
    assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
    snprintf(body, sizeof body, "sleep 60 > '%s' &\nsleep 60", scratch_path("fifo"));
    const int fifo = open(scratch_path("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fifo >= 0);
    assert_int_equal(run(body, 300).outcome, IOAT_TIMED_OUT);
    // The end of file comes when the last writer is gone: both sleeps were killed.
    char byte;
    fcntl(fifo, F_SETFL, 0);
    assert_int_equal(read(fifo, &byte, 1), 0);
    close(fifo);
}

static void closes_stdout_and_lingers(void **state)
{
    (void)state;
    const struct ioat_spawn_result result = run("echo done; exec >&- 2>&-; sleep 60", 200);
    assert_int_equal(result.outcome, IOAT_TIMED_OUT);
    assert_true(took_ms >= 200 && took_ms < PROMPT_MS);
}

static void closes_stdout_and_ends_in_time(void **state)
{
    (void)state;
    const struct ioat_spawn_result result =
        run("echo done; exec >&- 2>&-; sleep 0.2; exit 4", PROMPT_MS);
    assert_int_equal(result.outcome, IOAT_EXITED);
    assert_int_equal(result.code, 4);
    assert_string_equal(output, "done\n");
}

static void floods(void **state)
{
    (void)state;
    const struct ioat_spawn_result result = run("exec yes flood", 300);
    assert_int_equal(result.outcome, IOAT_TIMED_OUT);
    assert_true(took_ms < PROMPT_MS);
    assert_int_equal(result.length, sizeof output - 1);
}

static void floods_and_ends(void **state)
{
    (void)state;
    // More than a pipe holds: it must be read to its end for the child to end at all.
    const struct ioat_spawn_result result =
        run("head -c 1000000 /dev/zero | tr '\\0' x; exit 5", PROMPT_MS);
    assert_int_equal(result.outcome, IOAT_EXITED);
    assert_int_equal(result.code, 5);
    assert_int_equal(result.length, sizeof output - 1);
}

static void a_daemon_holds_the_pipe(void **state)
{
    (void)state;
    char body[512];
    snprintf(body, sizeof body,
             "setsid sh -c 'echo $$ > \"%s\"; exec sleep 60' &\n"
             "while [ ! -s '%s' ]; do sleep 0.01; done\necho parent; exit 6",
             scratch_path("pid"), scratch_path("pid"));
    const struct ioat_spawn_result result = run(body, PROMPT_MS);
    const pid_t daemon_pid = (pid_t)atoi(scratch_read("pid"));
    assert_true(daemon_pid > 1);
    // It left the group, so it lives; what matters is that nobody waited for it.
    assert_int_equal(kill(daemon_pid, SIGKILL), 0);
    assert_int_equal(result.outcome, IOAT_EXITED);
    assert_int_equal(result.code, 6);
    assert_string_equal(output, "parent\n");
    assert_true(took_ms < PROMPT_MS);
}

static void sigchld_ignored(void **state)
{
    (void)state;
    signal(SIGCHLD, SIG_IGN);
    struct ioat_spawn_result result = run("echo out; exit 2", PROMPT_MS);
    assert_int_equal(result.outcome, IOAT_LOST);
    assert_string_equal(output, "out\n");
    assert_true(took_ms < PROMPT_MS);
    result = run("sleep 60", 200);
    assert_int_equal(result.outcome, IOAT_TIMED_OUT);
    assert_true(took_ms < PROMPT_MS);
    signal(SIGCHLD, SIG_DFL);
}

static void interrupted(int signal_number)
{
    (void)signal_number;
}

static void signals_do_not_shorten_the_wait(void **state)
{
    (void)state;
    const struct sigaction action = {.sa_handler = interrupted};
    struct sigaction before;
    sigaction(SIGUSR1, &action, &before);
    char body[128];
    snprintf(body, sizeof body, "for i in 1 2 3; do kill -USR1 %ld; sleep 0.05; done; exit 7",
             (long)getpid());
    const struct ioat_spawn_result result = run(body, PROMPT_MS);
    sigaction(SIGUSR1, &before, NULL);
    assert_int_equal(result.outcome, IOAT_EXITED);
    assert_int_equal(result.code, 7);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
#define OLD_KERNEL(function)                                                                       \
    {                                                                                              \
#function " without pidfd", function, setup_without_pidfd, teardown, NULL                  \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(output_and_status),
        CASE(the_input_is_read_to_its_end),
        CASE(the_input_comes_where_standard_descriptors_are_closed),
        CASE(stderr_can_be_dropped),
        CASE(a_signal),
        CASE(clean_start),
        CASE(closed_standard_descriptors),
        CASE(missing),
        CASE(not_executable),
        CASE(hangs),
        CASE(the_group_is_killed),
        CASE(closes_stdout_and_lingers),
        CASE(closes_stdout_and_ends_in_time),
        CASE(floods),
        CASE(floods_and_ends),
        CASE(a_daemon_holds_the_pipe),
        CASE(sigchld_ignored),
        CASE(signals_do_not_shorten_the_wait),
        OLD_KERNEL(output_and_status),
        OLD_KERNEL(hangs),
        OLD_KERNEL(closes_stdout_and_lingers),
        OLD_KERNEL(closes_stdout_and_ends_in_time),
        OLD_KERNEL(floods),
        OLD_KERNEL(a_daemon_holds_the_pipe),
        OLD_KERNEL(sigchld_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

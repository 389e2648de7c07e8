// The prolog and the epilog. The helper is a script.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "cmocka_all.h"
#include "fake_spank.h"
#include "scratch.h"

static char helper_word[4200];
static char *argument_words[] = {helper_word, "config=/etc/c.toml", "run_dir=/run/r",
                                 "spool_dir=/var/s", "job_deadline_ms=5000"};

static void use_helper(const char *body)
{
    char script[2048];
    snprintf(script, sizeof script, "echo \"$@\" > '%s'\nenv | sort > '%s'\n%s",
             scratch_path("call"), scratch_path("env"), body);
    snprintf(helper_word, sizeof helper_word, "helper=%s", scratch_script("helper", script));
}

static void prolog(void)
{
    assert_int_equal(slurm_spank_job_prolog(fake_handle(), 5, argument_words), 0);
}

static int setup(void **state)
{
    (void)state;
    clearenv();
    setenv("SPANK_IO_AUTOTUNE", "app=ocean,mode=tune", 1);
    setenv("SLURM_JOB_ID", "999", 1);
    fake_reset(S_CTX_JOB_SCRIPT);
    fake.job_id = 1234;
    fake.uid = 1000;
    fake.gid = 1001;
    argument_words[4] = "job_deadline_ms=5000";
    scratch_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fake_reset(S_CTX_JOB_SCRIPT);
    scratch_remove();
    return 0;
}

static void a_plain_job_costs_nothing(void **state)
{
    (void)state;
    unsetenv("SPANK_IO_AUTOTUNE");
    use_helper("echo never");
    prolog();
    assert_int_equal(slurm_spank_job_epilog(fake_handle(), 5, argument_words), 0);
    assert_false(scratch_exists("call"));
    assert_int_equal(fake_logged(FAKE_INFO, "") + fake_logged(FAKE_ERROR, ""), 0);
}

static void any_jobs_hook_puts_back_what_another_left_changed(void **state)
{
    (void)state;
    char spool_word[4200], directory[4200];
    unsetenv("SPANK_IO_AUTOTUNE");
    setenv("SLURM_CLUSTER_NAME", "dev", 1);
    setenv("SLURMD_NODENAME", "n1", 1);
    use_helper("exit 0");
    snprintf(spool_word, sizeof spool_word, "spool_dir=%s", scratch_path("spool"));
    argument_words[3] = spool_word;
    prolog();
    assert_false(scratch_exists("call"));
    for (const char *const *part =
             (const char *const[]){"", "/saved", "/saved/dev", "/saved/dev/n1", NULL};
         *part != NULL; part++) {
        snprintf(directory, sizeof directory, "%s%s", scratch_path("spool"), *part);
        assert_int_equal(mkdir(directory, 0700), 0);
    }
    prolog();
    assert_non_null(strstr(scratch_read("call"), "restore --config /etc/c.toml"));
    assert_null(strstr(scratch_read("env"), "SPANK_IO_AUTOTUNE"));
    assert_non_null(strstr(scratch_read("env"), "SLURMD_NODENAME=n1"));
    // Another node's are its own, and a name that is none leads nowhere.
    use_helper("echo never");
    for (const char *const *name = (const char *const[]){"n2", "..", "../n1", "", NULL};
         *name != NULL; name++) {
        setenv("SLURMD_NODENAME", *name, 1);
        remove(scratch_path("call"));
        prolog();
        assert_false(scratch_exists("call"));
    }
    argument_words[3] = "spool_dir=/var/s";
}

// Attack (environment): The environment has LD_PRELOAD, SLURM_*, sockets of MUNGE and SACK, or
// programs called like ours.
// Outcome: The job is tuned as its option says.
static void the_helper_is_called_with_a_clean_environment(void **state)
{
    (void)state;
    setenv("LD_PRELOAD", "/evil.so", 1);
    setenv("SECRET", "leaked", 1);
    setenv("SLURM_JOB_USER", "alice", 1);
    setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
    setenv("SLURM_JOB_NUM_NODES", "2", 1);
    setenv("SLURM_JOB_EXIT_CODE2", "0:9", 1);
    setenv("SLURM_JOB_SLUID", "sBR1JB8J1YM400", 1);
    use_helper("echo applied; echo warned >&2");
    prolog();
    assert_string_equal(scratch_read("call"),
                        "start --config /etc/c.toml --run-dir /run/r --spool-dir /var/s "
                        "--deadline-ms 5000\n");
    char environment[4096], expected[4096];
    snprintf(environment, sizeof environment, "%s", scratch_read("env"));
    snprintf(expected, sizeof expected,
             "PATH=/usr/bin:/bin:/usr/sbin:/sbin\n%s"
             "SLURM_JOB_EXIT_CODE2=0:9\nSLURM_JOB_GID=1001\nSLURM_JOB_ID=1234\n"
             "SLURM_JOB_NODELIST=n[1-2]\nSLURM_JOB_NUM_NODES=2\nSLURM_JOB_SLUID=sBR1JB8J1YM400\n"
             "SLURM_JOB_UID=1000\nSLURM_JOB_USER=alice\nSPANK_IO_AUTOTUNE=app=ocean,mode=tune\n",
             strstr(environment, "PWD=") == NULL ? "" : "PWD=");
    // The shell adds PWD by itself.
    char *pwd = strstr(environment, "PWD=");
    if (pwd != NULL) {
        char *end = strchr(pwd, '\n');
        memmove(pwd + 4, end + 1, strlen(end + 1) + 1);
    }
    assert_string_equal(environment, expected);
    assert_int_equal(fake_logged(FAKE_INFO, "applied"), 1);
    assert_int_equal(fake_logged(FAKE_INFO, "warned"), 1);
    assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
}

static void the_epilog_says_finish(void **state)
{
    (void)state;
    use_helper("");
    assert_int_equal(slurm_spank_job_epilog(fake_handle(), 5, argument_words), 0);
    assert_int_equal(strncmp(scratch_read("call"), "finish ", 7), 0);
}

static void ids_come_from_the_environment_at_need(void **state)
{
    (void)state;
    fake.no_items = true;
    use_helper("");
    setenv("SLURM_JOB_UID", "1000", 1);
    prolog();
    // Without a gid there is no call.
    assert_false(scratch_exists("call"));
    assert_int_equal(fake_logged(FAKE_ERROR, "the job goes on untuned"), 1);
    setenv("SLURM_JOB_GID", "1000; rm -rf /", 1);
    prolog();
    assert_false(scratch_exists("call"));
    setenv("SLURM_JOB_GID", "1001", 1);
    prolog();
    assert_non_null(strstr(scratch_read("env"), "SLURM_JOB_ID=999\n"));
}

static void strange_values_are_left_out(void **state)
{
    (void)state;
    setenv("SLURM_JOB_NUM_NODES", "two", 1);
    setenv("SLURM_JOB_USER", "al\nice", 1);
    use_helper("");
    prolog();
    assert_null(strstr(scratch_read("env"), "NUM_NODES"));
    assert_null(strstr(scratch_read("env"), "JOB_USER"));
    assert_int_equal(fake_logged(FAKE_ERROR, "is left out"), 2);
}

// Attack (environment): A user forges the record `IO_AUTOTUNE_SET`, or another plugin the request
// at submission.
// Outcome: The step gets its own hints or none, and keeps the user's variables.
static void a_forged_request_is_not_passed_on(void **state)
{
    (void)state;
    char huge[4000];
    memset(huge, 'x', sizeof huge);
    huge[sizeof huge - 1] = '\0';
    const char *const forged[] = {huge, "app=a\nPATH=/tmp", "\xff\xfe", "app=\x1b[31m"};
    use_helper("");
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        setenv("SPANK_IO_AUTOTUNE", forged[i], 1);
        prolog();
        assert_false(scratch_exists("call"));
        assert_int_equal(fake_logged(FAKE_ERROR, "no request of ours"), i + 1);
    }
}

static void a_failing_helper_is_logged_and_harmless(void **state)
{
    (void)state;
    use_helper("echo 'the service is down'; exit 1");
    prolog();
    assert_int_equal(fake_logged(FAKE_ERROR, "the service is down"), 1);
    assert_int_equal(fake_logged(FAKE_ERROR, "ended with exit status 1; the job goes on"), 1);
    use_helper("kill -SEGV $$");
    prolog();
    assert_int_equal(fake_logged(FAKE_ERROR, "was ended by signal 11"), 1);
    snprintf(helper_word, sizeof helper_word, "helper=/nonexistent/helper");
    prolog();
    assert_int_equal(fake_logged(FAKE_ERROR, "could not be started"), 1);
}

static void epilog(void)
{
    assert_int_equal(slurm_spank_job_epilog(fake_handle(), 5, argument_words), 0);
}

static void an_epilogs_helper_that_somebody_kills_runs_once_more(void **state)
{
    (void)state;
    char body[8400];
    // Killed the first time, and good the second.
    snprintf(body, sizeof body, "if mkdir '%s' 2>/dev/null; then kill -KILL $$; fi\necho reported",
             scratch_path("first"));
    use_helper(body);
    epilog();
    assert_int_equal(fake_logged(FAKE_ERROR, "was ended by signal 9"), 1);
    assert_int_equal(fake_logged(FAKE_INFO, "reported"), 1);
    const char *deadline = strstr(scratch_read("call"), "--deadline-ms ");
    assert_non_null(deadline);
    const int left = atoi(deadline + strlen("--deadline-ms "));
    assert_true(left > 0 && left < 5000);

    // Not a third time, not without time, and not in the prolog.
    use_helper("kill -KILL $$");
    epilog();
    assert_int_equal(fake_logged(FAKE_ERROR, "was ended by signal 9"), 3);
    prolog();
    assert_int_equal(fake_logged(FAKE_ERROR, "was ended by signal 9"), 4);
    argument_words[4] = "job_deadline_ms=50";
    epilog();
    // On a busy machine the deadline is over before the helper has begun: one run all the same.
    assert_int_equal(fake_logged(FAKE_ERROR, "was ended by signal 9") +
                         fake_logged(FAKE_ERROR, "was killed at its deadline"),
                     5);
}

static void a_hanging_helper_is_killed(void **state)
{
    (void)state;
    argument_words[4] = "job_deadline_ms=200";
    use_helper("echo before; sleep 60");
    const int64_t begin_ns = ioat_now_ns();
    prolog();
    const int64_t took_ms = (ioat_now_ns() - begin_ns) / IOAT_NS_PER_MS;
    assert_true(took_ms >= 300 && took_ms < 5000);
    assert_int_equal(fake_logged(FAKE_ERROR, "before"), 1);
    assert_int_equal(fake_logged(FAKE_ERROR, "was killed at its deadline; the job goes on"), 1);
    assert_non_null(strstr(scratch_read("call"), "--deadline-ms 200\n"));
}

static void a_talkative_helper_is_cut_short(void **state)
{
    (void)state;
    use_helper("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo $i; done");
    prolog();
    assert_int_equal(fake_logged(FAKE_INFO, ""), 16);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_plain_job_costs_nothing),
        CASE(any_jobs_hook_puts_back_what_another_left_changed),
        CASE(the_helper_is_called_with_a_clean_environment),
        CASE(the_epilog_says_finish),
        CASE(ids_come_from_the_environment_at_need),
        CASE(strange_values_are_left_out),
        CASE(a_forged_request_is_not_passed_on),
        CASE(a_failing_helper_is_logged_and_harmless),
        CASE(an_epilogs_helper_that_somebody_kills_runs_once_more),
        CASE(a_hanging_helper_is_killed),
        CASE(a_talkative_helper_is_cut_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

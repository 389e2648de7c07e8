// sbatch, salloc and srun: the option, the request, the preview. The helper is a script.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "cmocka_all.h"
#include "fake_spank.h"
#include "scratch.h"

#define OPTION "_SLURM_SPANK_OPTION_io_autotune_io_autotune"
#define INHERITED_OPTION "SLURM_SPANK_" OPTION
#define INHERITED_REQUEST "SLURM_SPANK_IO_AUTOTUNE"

static char words[3][4200];
static char *argument_words[] = {words[0], words[1], words[2]};

// Starts the plugin in `context` with a helper that does `body` after noting how it was called.
static void begin(spank_context_t context, const char *body)
{
    char script[2048];
    fake_reset(context);
    snprintf(script, sizeof script, "echo \"$@\" >> '%s'\nenv > '%s'\ncat > '%s'\n%s",
             scratch_path("calls"), scratch_path("env"), scratch_path("input"), body);
    snprintf(words[0], sizeof words[0], "helper=%s", scratch_script("helper", script));
    snprintf(words[1], sizeof words[1], "config=/etc/c.toml");
    snprintf(words[2], sizeof words[2], "submit_deadline_ms=5000");
    assert_int_equal(slurm_spank_init(fake_handle(), 3, argument_words), 0);
}

static int option(const char *value)
{
    return fake.option.cb(fake.option.val, value, 0);
}

static void post_opt(void)
{
    assert_int_equal(slurm_spank_init_post_opt(fake_handle(), 3, argument_words), 0);
}

static void assert_travels(const char *expected)
{
    const char *found = fake_control_value("IO_AUTOTUNE");
    if (expected == NULL)
        assert_null(found);
    else
        assert_string_equal(found, expected);
}

// The option is given, and then this travels; NULL: nothing.
static void assert_asked(const char *value, const char *expected)
{
    assert_int_equal(option(value), 0);
    post_opt();
    assert_travels(expected);
}

static int setup(void **state)
{
    (void)state;
    // Tests' stderr is no terminal.
    setenv("IO_AUTOTUNE_VERBOSE", "1", 1);
    static const char *const unset[] = {"SLURM_JOB_ID",    "SLURM_JOBID",    "SLURM_JOB_NAME",
                                        INHERITED_REQUEST, INHERITED_OPTION, OPTION,
                                        "SLURM_CONF",      "IO_AUTOTUNE"};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
        unsetenv(unset[i]);
    scratch_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(slurm_spank_exit(fake_handle(), 0, NULL), 0);
    fake_reset(S_CTX_ALLOCATOR);
    scratch_remove();
    return 0;
}

static void registration(void **state)
{
    (void)state;
    const spank_context_t with[] = {S_CTX_ALLOCATOR, S_CTX_LOCAL, S_CTX_REMOTE};
    for (size_t i = 0; i < 3; i++) {
        begin(with[i], "");
        assert_true(fake.registered);
        assert_string_equal(fake.option.name, "io-autotune");
        assert_int_equal(fake.option.has_arg, 2);
        assert_non_null(strstr(fake.option.usage, "mode=observe"));
    }
    begin(S_CTX_SLURMD, "");
    assert_false(fake.registered);
}

static void an_administrators_typo_is_not_the_users(void **state)
{
    (void)state;
    char *typo[] = {"colour=green"};
    fake_reset(S_CTX_SLURMD);
    slurm_spank_init(fake_handle(), 1, typo);
    assert_int_equal(fake_logged(FAKE_ERROR, "colour=green"), 1);
    fake_reset(S_CTX_ALLOCATOR);
    assert_int_equal(slurm_spank_init(fake_handle(), 1, typo), 0);
    assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
    assert_int_equal(fake_logged(FAKE_INFO, ""), 0);
}

static void bad_spec_is_refused(void **state)
{
    (void)state;
    const spank_context_t where[] = {S_CTX_ALLOCATOR, S_CTX_LOCAL};
    for (size_t i = 0; i < 2; i++) {
        begin(where[i], "");
        assert_int_equal(option("colour=green"), -1);
        assert_int_equal(fake_logged(FAKE_ERROR, "\"colour=green\": there is no such key"), 1);
        assert_int_equal(fake_logged(FAKE_ERROR, "mode=tune|observe|off"), 1);
    }
    begin(S_CTX_REMOTE, "");
    assert_int_equal(fake.option.cb(0, "colour=green", 1), 0);
    assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
    assert_false(scratch_exists("calls"));
}

// Attack (environment): Another user reads all command lines in /proc during a submission.
// Outcome: None has a job's name, comment or accelerator.
static void no_command_line_has_what_the_user_says(void **state)
{
    (void)state;
    begin(S_CTX_ALLOCATOR, "");
    fake.options = true;
    fake.job_name = "secret-name";
    fake.comment = "secret-comment";
    assert_asked(
        "secret-accelerator",
        "name=secret-name,comment=secret-comment,accelerator=secret-accelerator,mode=tune");
    assert_string_equal(
        scratch_read("input"),
        "name=secret-name,comment=secret-comment,accelerator=secret-accelerator,mode=tune");
    assert_null(strstr(scratch_read("calls"), "secret"));
    assert_null(strstr(scratch_read("env"), "secret"));
}

static void the_request_travels_and_the_preview_is_shown(void **state)
{
    (void)state;
    setenv("SLURM_JOB_NAME", "ocean", 1);
    setenv("SECRET", "leaked", 1);
    setenv("SLURM_CONF", "/etc/other.conf", 1);
    begin(S_CTX_ALLOCATOR, "echo 'ocean on romio: nothing known yet'; echo noise >&2");
    assert_asked(NULL, "name=ocean,mode=tune");
    assert_int_equal(fake_logged(FAKE_INFO, "ocean on romio: nothing known yet"), 1);
    assert_int_equal(fake_logged(FAKE_INFO, ""), 1);
    const char *calls = scratch_read("calls");
    assert_int_equal(strncmp(calls, "submit --config /etc/c.toml --deadline-ms ", 42), 0);
    assert_null(strstr(calls, "ocean"));
    assert_string_equal(scratch_read("input"), "name=ocean,mode=tune");
    const char *environment = scratch_read("env");
    assert_null(strstr(environment, "SECRET"));
    assert_non_null(strstr(environment, "SLURM_CONF=/etc/other.conf"));
    assert_non_null(strstr(environment, "PATH=/usr/bin:/bin:/usr/sbin:/sbin"));
}

static void the_last_option_wins(void **state)
{
    (void)state;
    begin(S_CTX_ALLOCATOR, "");
    assert_int_equal(option("app=first,mode=observe"), 0);
    assert_asked("app=second", "app=second,mode=tune");
}

static void a_job_that_did_not_ask_costs_nothing(void **state)
{
    (void)state;
    setenv("SLURM_JOB_NAME", "ocean", 1);
    begin(S_CTX_ALLOCATOR, "echo never");
    fake_control("IO_AUTOTUNE", "app=inherited,mode=tune");
    post_opt();
    assert_null(fake_control_value("IO_AUTOTUNE"));
    assert_false(scratch_exists("calls"));
    assert_int_equal(fake_logged(FAKE_INFO, ""), 0);
}

static void mode_off(void **state)
{
    (void)state;
    begin(S_CTX_ALLOCATOR, "exit 2");
    fake_control("IO_AUTOTUNE", "app=inherited,mode=tune");
    assert_asked("romio,mode=off", NULL);
    assert_false(scratch_exists("calls"));
}

static void default_on(void **state)
{
    (void)state;
    char *on[] = {"default=on", words[0]};
    setenv("SLURM_JOB_NAME", "ocean", 1);
    begin(S_CTX_ALLOCATOR, "echo line");
    assert_int_equal(slurm_spank_init(fake_handle(), 2, on), 0);
    post_opt();
    assert_string_equal(fake_control_value("IO_AUTOTUNE"), "name=ocean,mode=tune");
    begin(S_CTX_ALLOCATOR, "echo line");
    assert_int_equal(slurm_spank_init(fake_handle(), 2, on), 0);
    assert_asked("mode=off", NULL);
}

static void the_job_is_named_as_squeue_will_show_it(void **state)
{
    (void)state;
    char *const real = program_invocation_short_name;
    char sbatch[] = "sbatch";
    // What the environment says is the outer job's.
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_JOB_NAME", "outer", 1);
    begin(S_CTX_ALLOCATOR, "");
    fake.options = true;
    fake.job_name = "nf-MAP_(a, b)";
    fake.comment = "rule_map";
    assert_asked("romio",
                 "name=nf-MAP_%28a%2C%20b%29,comment=rule_map,accelerator=romio,mode=tune");
    // A script from standard input has no name.
    begin(S_CTX_ALLOCATOR, "");
    fake.options = true;
    assert_int_equal(option(NULL), 0);
    program_invocation_short_name = sbatch;
    post_opt();
    program_invocation_short_name = real;
    assert_string_equal(fake_control_value("IO_AUTOTUNE"), "name=sbatch,mode=tune");
}

static void a_name_that_cannot_be_asked_for_is_no_outer_jobs(void **state)
{
    (void)state;
    setenv("SLURM_JOB_NAME", "ocean", 1);
    begin(S_CTX_ALLOCATOR, "");
    assert_asked("", "name=ocean,mode=tune");
    setenv("SLURM_JOB_ID", "7", 1);
    begin(S_CTX_ALLOCATOR, "");
    assert_asked("", "mode=tune");
}

static void the_environment_weighs_less_than_the_option(void **state)
{
    (void)state;
    char *on[] = {"default=on", words[0]};
    // The environment, the option, whether inside a job, the site's default, and what travels.
    const struct {
        const char *environment, *option;
        bool inside, on;
        const char *expected;
    } cases[] = {
        {"app=env,romio", NULL, false, false, "app=env,accelerator=romio,mode=tune"},
        {"app=env,romio", "app=own", false, false, "app=own,mode=tune"},
        {"off", NULL, false, true, NULL},
        {"off", "app=own", false, true, "app=own,mode=tune"},
        {"", NULL, false, false, "mode=tune"},
        {NULL, NULL, false, true, "mode=tune"},
        // The outer job's submission may have had it too.
        {"app=env,romio", NULL, true, false, "accelerator=romio,mode=tune"},
        // What cannot be understood cannot be obeyed, nor may it stop a job.
        {"colour=blue", NULL, false, true, NULL},
        {"colour=blue", "app=own", false, true, "app=own,mode=tune"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(S_CTX_ALLOCATOR, "");
        unsetenv("IO_AUTOTUNE");
        unsetenv("SLURM_JOB_ID");
        if (cases[i].environment != NULL)
            setenv("IO_AUTOTUNE", cases[i].environment, 1);
        if (cases[i].inside)
            setenv("SLURM_JOB_ID", "7", 1);
        if (cases[i].on)
            assert_int_equal(slurm_spank_init(fake_handle(), 2, on), 0);
        if (cases[i].option != NULL)
            assert_int_equal(option(cases[i].option), 0);
        post_opt();
        assert_travels(cases[i].expected);
        const bool wrong = cases[i].option == NULL && cases[i].environment != NULL &&
                           strcmp(cases[i].environment, "colour=blue") == 0;
        assert_int_equal(fake_logged(FAKE_ERROR, "IO_AUTOTUNE: \"colour=blue\": there is no"),
                         wrong);
    }
}

static void the_environment_outweighs_the_outer_jobs_option(void **state)
{
    (void)state;
    setenv("SLURM_JOB_ID", "7", 1);
    setenv(INHERITED_OPTION, "app=outer,romio", 1);
    setenv("IO_AUTOTUNE", "off", 1);
    begin(S_CTX_ALLOCATOR, "");
    assert_asked("app=outer,romio", NULL);
    // The script's own option outweighs both.
    begin(S_CTX_ALLOCATOR, "");
    setenv(INHERITED_OPTION, "app=outer,romio", 1);
    assert_int_equal(option("app=own"), 0);
    assert_asked("app=outer,romio", "app=own,mode=tune");
}

static void nothing_is_said_where_no_person_reads(void **state)
{
    (void)state;
    // What was given, and whether the preview is shown: tests' stderr is no terminal.
    const struct {
        const char *spec, *variable;
        bool said;
    } cases[] = {
        {"app=ocean", NULL, false},
        {"app=ocean", "0", false},
        {"app=ocean", "1", true},
        {"app=ocean,verbose", NULL, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsetenv("IO_AUTOTUNE_VERBOSE");
        if (cases[i].variable != NULL)
            setenv("IO_AUTOTUNE_VERBOSE", cases[i].variable, 1);
        begin(S_CTX_ALLOCATOR, "echo line");
        assert_int_equal(option(cases[i].spec), 0);
        post_opt();
        assert_string_equal(fake_control_value("IO_AUTOTUNE"), "app=ocean,mode=tune");
        assert_int_equal(fake_logged(FAKE_INFO, "line"), cases[i].said);
        // Nor is it asked for.
        assert_int_equal(scratch_exists("calls"), cases[i].said);
        scratch_remove();
        scratch_make();
    }
    // An error is always shown.
    unsetenv("IO_AUTOTUNE_VERBOSE");
    begin(S_CTX_ALLOCATOR, "");
    assert_int_equal(option("colour=green"), -1);
    assert_int_equal(fake_logged(FAKE_ERROR, "there is no such key"), 1);
}

// Attack (environment): A tuned job submits others that ask for nothing, with any of Slurm's
// variables unset, three deep, and as an array.
// Outcome: None is a run of its application.
static void an_inherited_option_asks_for_nothing(void **state)
{
    (void)state;
    // What the environment has, what comes by in the nested sbatch, and what travels.
    const struct {
        const char *outer, *calls[3], *expected;
    } cases[] = {
        {"app=outer,romio", {"app=outer,romio"}, NULL},
        {"app=outer", {"app=own", "app=outer"}, "app=own,mode=tune"},
        {"app=outer", {"app=outer", "app=own"}, "app=own,mode=tune"},
        // Somebody wrote it again: in the script, or on the command line.
        {"app=outer", {"app=outer", "app=outer"}, "app=outer,mode=tune"},
        {"app=outer", {"app=own", "app=outer", "app=outer"}, "app=outer,mode=tune"},
        {"app=outer", {"app=outer", "app=outer", "app=own"}, "app=own,mode=tune"},
        {"", {""}, NULL},
        {"", {"app=own", ""}, "app=own,mode=tune"},
        {"(null)", {"(null)"}, NULL},
        {"(null)", {"app=own", "(null)"}, "app=own,mode=tune"},
        {"mode=off", {"mode=off"}, NULL},
        {"mode=off", {"mode=off", "app=own"}, "app=own,mode=tune"},
        // Another release may have taken it, or an accelerator may be gone.
        {"colour=green", {"colour=green"}, NULL},
        {"colour=green", {"colour=green", "app=own"}, "app=own,mode=tune"},
    };
    static const char *const inside[][2] = {{"SLURM_JOB_ID", "SLURM_JOBID"},
                                            {"SLURM_JOB_ID", NULL},
                                            {"SLURM_JOBID", NULL},
                                            {NULL, NULL}};
    const spank_context_t where[] = {S_CTX_ALLOCATOR, S_CTX_LOCAL};
    for (size_t left = 0; left < sizeof inside / sizeof *inside; left++)
        for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
            const size_t which = i / 2;
            begin(where[i % 2], "exit 2");
            unsetenv("SLURM_JOB_ID");
            unsetenv("SLURM_JOBID");
            // An srun that makes an allocation of its own: its SLURM_JOB_ID, if any, is not set.
            for (size_t j = 0; j < 2; j++)
                if (inside[left][j] != NULL &&
                    (i % 2 == 0 || strcmp(inside[left][j], "SLURM_JOB_ID") != 0))
                    setenv(inside[left][j], "7", 1);
            fake.options = true;
            fake.job_name = "inner";
            setenv(INHERITED_OPTION, cases[which].outer, 1);
            for (size_t j = 0; j < 3 && cases[which].calls[j] != NULL; j++)
                assert_int_equal(option(cases[which].calls[j]), 0);
            post_opt();
            assert_travels(cases[which].expected);
            assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
        }
}

// Outside of a job somebody may have set it as Slurm's own documentation has it.
static void who_sets_the_inherited_option_is_told_what_asks(void **state)
{
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        begin(S_CTX_ALLOCATOR, "");
        if (inside == 1)
            setenv("SLURM_JOB_ID", "7", 1);
        setenv(INHERITED_OPTION, "app=mine", 1);
        assert_asked("app=mine", NULL);
        assert_int_equal(fake_logged(FAKE_INFO, "asks for nothing"), inside == 0);
    }
}

// Attack (environment): A tuned job submits others that ask for nothing, with any of Slurm's
// variables unset, three deep, and as an array.
// Outcome: None is a run of its application.
static void a_job_does_not_inherit_what_was_asked_for_it(void **state)
{
    (void)state;
    // The user's IO_AUTOTUNE before and after.
    static const char *const variables[][2] = {
        {"app=ocean", ""},
        {"romio,app=ocean,verbose", "romio,verbose"},
        {"app=ocean,romio", "romio"},
        {"romio", "romio"},
        {"colour=blue,app=ocean", "colour=blue,app=ocean"},
        {NULL, NULL},
    };
    const spank_context_t where[] = {S_CTX_ALLOCATOR, S_CTX_LOCAL};
    for (size_t i = 0; i < 2 * sizeof variables / sizeof *variables; i++) {
        const char *const *variable = variables[i / 2];
        begin(where[i % 2], "");
        if (variable[0] != NULL)
            setenv("IO_AUTOTUNE", variable[0], 1);
        else
            unsetenv("IO_AUTOTUNE");
        assert_int_equal(option("app=mine"), 0);
        // As Slurm does before it calls the plugin.
        setenv(OPTION, "app=mine", 1);
        setenv(INHERITED_OPTION, "app=outer", 1);
        fake_control(OPTION, "app=mine");
        post_opt();
        assert_travels("app=mine,mode=tune");
        assert_null(fake_control_value(OPTION));
        assert_null(getenv(OPTION));
        assert_null(getenv(INHERITED_OPTION));
        if (variable[1] == NULL)
            assert_null(getenv("IO_AUTOTUNE"));
        else
            assert_string_equal(getenv("IO_AUTOTUNE"), variable[1]);
    }
}

static void an_outer_request_does_not_leak_into_a_job_that_is_off(void **state)
{
    (void)state;
    setenv("SLURM_JOB_ID", "7", 1);
    setenv(INHERITED_REQUEST, "app=outer,mode=tune", 1);
    begin(S_CTX_ALLOCATOR, "");
    assert_int_equal(option("mode=off"), 0);
    post_opt();
    assert_null(getenv(INHERITED_REQUEST));
}

static void direct_srun(void **state)
{
    (void)state;
    begin(S_CTX_LOCAL, "echo line");
    assert_asked("app=ocean", "app=ocean,mode=tune");
    assert_int_equal(fake_logged(FAKE_INFO, "line"), 1);
}

static void srun_inside_a_tuned_job_says_what_it_does_not_change(void **state)
{
    (void)state;
    setenv("SLURM_JOB_ID", "7", 1);
    setenv(INHERITED_REQUEST, "app=ocean,mode=tune", 1);
    // What the step asks for, if it does; whether its job has that.
    const struct {
        const char *option;
        bool has;
    } cases[] = {
        {NULL, true},
        {"", true},
        {"app=ocean", true},
        {"mode=tune,app=ocean", true},
        {"app=other", false},
        {"app=ocea", false},
        {"romio", false},
        {"mode=off", false},
        {"app=ocean,observe", false},
        {"tell", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(S_CTX_LOCAL, "echo line");
        if (cases[i].option != NULL)
            assert_int_equal(option(cases[i].option), 0);
        post_opt();
        // The prolog of a node where this step is the job's first is told what the job asked for.
        assert_travels("app=ocean,mode=tune");
        assert_false(scratch_exists("calls"));
        assert_int_equal(fake_logged(FAKE_INFO, "this step changes nothing"), !cases[i].has);
        assert_int_equal(fake_logged(FAKE_INFO, ""), !cases[i].has);
    }
}

// Attack (environment): srun --jobid joins another allocation with the option, or from a tuned job.
// Outcome: The step says that the option changes nothing; nothing counts.
static void a_step_of_another_allocation_neither_asks_nor_promises(void **state)
{
    (void)state;
    // What the environment says of the job it is of, and what --jobid says.
    static const char *const cases[][3] = {
        {NULL, NULL, "8"}, {"7", "7", "8"}, {"8", "7", "8"}, {"7", "8", "8"}, {NULL, "7", "8"}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const char *const *ids = cases[i / 2];
        begin(S_CTX_LOCAL, "echo line");
        unsetenv("SLURM_JOB_ID");
        unsetenv("SLURM_JOBID");
        if (ids[0] != NULL)
            setenv("SLURM_JOB_ID", ids[0], 1);
        if (ids[1] != NULL)
            setenv("SLURM_JOBID", ids[1], 1);
        fake.options = true;
        fake.allocation = ids[2];
        if (i % 2 == 1) {
            setenv(INHERITED_REQUEST, "app=outer,mode=tune", 1);
            fake_control("IO_AUTOTUNE", "app=outer,mode=tune");
        }
        assert_asked("app=half,romio", NULL);
        // srun reads it again later.
        assert_null(getenv(INHERITED_REQUEST));
        assert_false(scratch_exists("calls"));
        assert_int_equal(fake_logged(FAKE_INFO, "this step changes nothing"), 1);
        assert_int_equal(fake_logged(FAKE_INFO, ""), 1);
    }
}

static void an_srun_in_its_own_job_is_known_by_slurms_own_option(void **state)
{
    (void)state;
    begin(S_CTX_LOCAL, "");
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_JOBID", "7", 1);
    setenv(INHERITED_REQUEST, "app=ocean,mode=tune", 1);
    fake.options = true;
    fake.allocation = "7";
    post_opt();
    assert_travels("app=ocean,mode=tune");
    // Without SLURM_JOB_ID it makes an allocation of its own, which asked for nothing.
    begin(S_CTX_LOCAL, "");
    unsetenv("SLURM_JOB_ID");
    fake.options = true;
    fake_control("IO_AUTOTUNE", "app=ocean,mode=tune");
    post_opt();
    assert_travels(NULL);
    assert_null(getenv(INHERITED_REQUEST));
}

static void srun_inside_a_plain_job_says_why_not(void **state)
{
    (void)state;
    setenv("SLURM_JOB_ID", "7", 1);
    begin(S_CTX_LOCAL, "echo line");
    assert_asked("app=ocean", NULL);
    assert_false(scratch_exists("calls"));
    assert_int_equal(fake_logged(FAKE_INFO, "half a job is never tuned"), 1);
    // Without the option, or with mode=off, there is nothing to explain.
    begin(S_CTX_LOCAL, "echo line");
    post_opt();
    assert_int_equal(option("mode=off"), 0);
    post_opt();
    assert_int_equal(fake_logged(FAKE_INFO, ""), 0);
}

// Attack (files): The output of sbatch, or of a job that asks to be told, is full, closed, or not
// read.
// Outcome: The words are lost; the job is submitted, and its run counts.
static void a_line_that_nobody_reads_ends_no_submission(void **state)
{
    (void)state;
    int ends[2];
    begin(S_CTX_ALLOCATOR, "echo 'nothing known yet'");
    fake.options = true;
    fake.quiet = true;
    assert_int_equal(pipe(ends), 0);
    const int kept = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    const int accepted = option("app=ocean");
    post_opt();
    dup2(kept, STDERR_FILENO);
    close(kept);
    assert_int_equal(accepted, 0);
    assert_travels("app=ocean,mode=tune");
}

static void an_unknown_accelerator_is_refused_once(void **state)
{
    (void)state;
    begin(S_CTX_ALLOCATOR, "echo 'no accelerator \"romoi\"; choose romio, page-cache'; exit 2");
    for (int i = 0; i < 3; i++)
        assert_int_equal(option("romoi"), -1);
    assert_string_equal(strchr(scratch_read("calls"), '\n'), "\n");
    assert_int_equal(strncmp(scratch_read("calls"), "check --config /etc/c.toml ", 27), 0);
    assert_null(strstr(scratch_read("calls"), "romoi"));
    assert_string_equal(scratch_read("input"), "romoi");
    assert_int_equal(fake_logged(FAKE_ERROR, "choose romio, page-cache"), 1);
}

// While packages are replaced the helper may be older than the plugin, and not know its input.
static void a_refusal_without_words_is_none(void **state)
{
    (void)state;
    begin(S_CTX_ALLOCATOR, "echo 'error: unexpected argument' >&2; exit 2");
    assert_int_equal(option("romio"), 0);
    assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
}

static void only_exit_status_2_refuses(void **state)
{
    (void)state;
    const char *const bodies[] = {"exit 0", "exit 1", "echo down; exit 3", "kill -9 $$"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        begin(S_CTX_ALLOCATOR, bodies[i]);
        assert_int_equal(option("romio"), 0);
        assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
        assert_int_equal(fake_logged(FAKE_INFO, ""), 0);
    }
    begin(S_CTX_ALLOCATOR, "");
    char *gone[] = {"helper=/nonexistent/io-autotune-node"};
    assert_int_equal(slurm_spank_init(fake_handle(), 1, gone), 0);
    assert_int_equal(option("romio"), 0);
    post_opt();
    assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
    assert_int_equal(fake_logged(FAKE_INFO, ""), 0);
    assert_string_equal(fake_control_value("IO_AUTOTUNE"), "accelerator=romio,mode=tune");
}

static void nothing_is_checked_inside_a_job(void **state)
{
    (void)state;
    setenv("SLURM_JOB_ID", "7", 1);
    begin(S_CTX_LOCAL, "exit 2");
    assert_int_equal(option("romoi"), 0);
    assert_false(scratch_exists("calls"));
    // A nested sbatch submits a job like any other.
    begin(S_CTX_ALLOCATOR, "echo 'no such accelerator'; exit 2");
    assert_int_equal(option("romoi"), -1);
}

static void a_failed_preview_shows_nothing(void **state)
{
    (void)state;
    begin(S_CTX_ALLOCATOR, "echo half a line; exit 1");
    assert_int_equal(option("app=ocean"), 0);
    post_opt();
    assert_int_equal(fake_logged(FAKE_INFO, ""), 0);
    assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
    assert_string_equal(fake_control_value("IO_AUTOTUNE"), "app=ocean,mode=tune");
}

static void the_preview_is_clean_and_short(void **state)
{
    (void)state;
    begin(S_CTX_ALLOCATOR, "printf 'one\\033[31m\\ntwo\\nthree\\nfour\\n'");
    assert_int_equal(option("app=ocean"), 0);
    post_opt();
    assert_int_equal(fake_logged(FAKE_INFO, ""), 3);
    assert_int_equal(fake_logged(FAKE_INFO, "one?[31m"), 1);
    assert_int_equal(fake_logged(FAKE_INFO, "four"), 0);
}

// Submits with this as standard error, and a preview or a refusal to say.
static void submit_with_stderr(int to, bool quiet)
{
    const int before = dup(STDERR_FILENO);
    begin(S_CTX_ALLOCATOR, "echo line; test \"$1\" = submit || exit 2");
    fake.options = true;
    fake.quiet = quiet;
    fake.writes = true;
    assert_true(dup2(to, STDERR_FILENO) >= 0);
    alarm(10);
    const int refused = option("accelerator=none");
    const int taken = option("app=ocean");
    post_opt();
    alarm(0);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    assert_int_equal(refused, -1);
    assert_int_equal(taken, 0);
    assert_travels("app=ocean,mode=tune");
}

static void assert_no_signal_is_left(void)
{
    sigset_t pending, blocked;
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    const int signals[] = {SIGPIPE, SIGXFSZ};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        assert_int_equal(sigismember(&pending, signals[i]), 0);
        assert_int_equal(sigismember(&blocked, signals[i]), 0);
    }
}

// Attack (files): The output of sbatch, or of a job that asks to be told, is full, closed, or not
// read.
// Outcome: The words are lost; the job is submitted, and its run counts.
static void what_cannot_be_said_ends_no_submission(void **state)
{
    (void)state;
    for (int quiet = 0; quiet < 2; quiet++) {
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        close(ends[0]);
        submit_with_stderr(ends[1], quiet);
        close(ends[1]);
        assert_no_signal_is_left();

        const int file = memfd_create("limited", MFD_CLOEXEC);
        struct rlimit before;
        assert_int_equal(lseek(file, 1 << 20, SEEK_SET), 1 << 20);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        // The helper's script and its notes are smaller.
        const struct rlimit low = {.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
        submit_with_stderr(file, quiet);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        close(file);
        assert_no_signal_is_left();
    }
}

// A signal of that kind which somebody else holds stays his.
static void what_was_pending_before_stays(void **state)
{
    (void)state;
    sigset_t signals, mask, pending;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &signals, &mask), 0);
    raise(SIGPIPE);
    begin(S_CTX_ALLOCATOR, "echo line");
    assert_asked("app=ocean", "app=ocean,mode=tune");
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 1);
    const struct timespec at_once = {0};
    assert_int_equal(sigtimedwait(&signals, NULL, &at_once), SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &mask, NULL), 0);
}

// Attack (files): The output of sbatch, or of a job that asks to be told, is full, closed, or not
// read.
// Outcome: The words are lost; the job is submitted, and its run counts.
static void a_reader_that_does_not_read_is_not_waited_for(void **state)
{
    (void)state;
    char full[4096] = {0};
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(ends[1], full, sizeof full) > 0) {
    }
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    const int before = dup(STDERR_FILENO);
    begin(S_CTX_ALLOCATOR, "echo line");
    fake.writes = true;
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    alarm(10);
    const int taken = option("app=ocean");
    post_opt();
    alarm(0);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(taken, 0);
    assert_travels("app=ocean,mode=tune");
    assert_int_equal(fake_logged(FAKE_INFO, ""), 0);
}

static void each_component_carries_the_first_ones_request(void **state)
{
    (void)state;
    // What is given for the components, what travels with both, and what is said beside the
    // preview.
    const struct {
        const char *first, *second, *expected, *said;
    } cases[] = {
        {"app=ocean", NULL, "app=ocean,mode=tune", NULL},
        {"app=ocean", "app=ocean", "app=ocean,mode=tune", NULL},
        {"app=ocean", "mode=off", "app=ocean,mode=tune", NULL},
        {"app=ocean", "app=atmosphere", "app=ocean,mode=tune", "a later one is not used"},
        {NULL, "app=ocean", NULL, "give it for the first"},
        {"mode=off", "app=ocean", NULL, "give it for the first"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(S_CTX_ALLOCATOR, "echo line");
        if (cases[i].first != NULL)
            assert_int_equal(option(cases[i].first), 0);
        post_opt();
        // The second component, and a third like it: each has a job-control environment of its own.
        for (int component = 0; component < 2; component++) {
            fake_control("IO_AUTOTUNE", "app=left,mode=tune");
            if (cases[i].second != NULL)
                assert_int_equal(option(cases[i].second), 0);
            post_opt();
            if (cases[i].expected == NULL)
                assert_null(fake_control_value("IO_AUTOTUNE"));
            else
                assert_string_equal(fake_control_value("IO_AUTOTUNE"), cases[i].expected);
        }
        assert_int_equal(fake_logged(FAKE_INFO, "line"), cases[i].expected != NULL);
        assert_int_equal(fake_logged(FAKE_INFO, "component"), cases[i].said != NULL);
        if (cases[i].said != NULL)
            assert_int_equal(fake_logged(FAKE_INFO, cases[i].said), 1);
    }
}

static void a_step_of_several_components_is_explained_once(void **state)
{
    (void)state;
    setenv("SLURM_JOB_ID", "7", 1);
    begin(S_CTX_LOCAL, "");
    for (int component = 0; component < 3; component++) {
        assert_int_equal(option("app=ocean"), 0);
        post_opt();
    }
    assert_int_equal(fake_logged(FAKE_INFO, "half a job is never tuned"), 1);
}

static void the_deadline_is_for_all_calls_together(void **state)
{
    (void)state;
    begin(S_CTX_ALLOCATOR, "sleep 60");
    snprintf(words[2], sizeof words[2], "submit_deadline_ms=300");
    assert_int_equal(slurm_spank_init(fake_handle(), 3, argument_words), 0);
    const int64_t begin_ns = ioat_now_ns();
    assert_int_equal(option("romio,app=ocean"), 0);
    assert_int_equal(option("lustre,app=ocean"), 0);
    post_opt();
    const int64_t took_ms = (ioat_now_ns() - begin_ns) / IOAT_NS_PER_MS;
    assert_true(took_ms >= 300);
    assert_true(took_ms < 5000);
    // The first call spent it all; the others were not even started.
    assert_string_equal(strchr(scratch_read("calls"), '\n'), "\n");
    assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
    assert_int_equal(fake_logged(FAKE_INFO, ""), 0);
    assert_string_equal(fake_control_value("IO_AUTOTUNE"),
                        "app=ocean,accelerator=lustre,mode=tune");
}

static void a_request_that_cannot_travel_is_not_previewed(void **state)
{
    (void)state;
    begin(S_CTX_ALLOCATOR, "echo line");
    assert_int_equal(option("app=ocean"), 0);
    fake.setenv_fails = true;
    post_opt();
    assert_false(scratch_exists("calls"));
    assert_int_equal(fake_logged(FAKE_ERROR, "stays untuned"), 1);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(registration),
        CASE(an_administrators_typo_is_not_the_users),
        CASE(bad_spec_is_refused),
        CASE(the_request_travels_and_the_preview_is_shown),
        CASE(no_command_line_has_what_the_user_says),
        CASE(the_last_option_wins),
        CASE(a_job_that_did_not_ask_costs_nothing),
        CASE(mode_off),
        CASE(default_on),
        CASE(the_job_is_named_as_squeue_will_show_it),
        CASE(a_name_that_cannot_be_asked_for_is_no_outer_jobs),
        CASE(the_environment_weighs_less_than_the_option),
        CASE(the_environment_outweighs_the_outer_jobs_option),
        CASE(nothing_is_said_where_no_person_reads),
        CASE(an_inherited_option_asks_for_nothing),
        CASE(who_sets_the_inherited_option_is_told_what_asks),
        CASE(a_job_does_not_inherit_what_was_asked_for_it),
        CASE(an_outer_request_does_not_leak_into_a_job_that_is_off),
        CASE(direct_srun),
        CASE(srun_inside_a_tuned_job_says_what_it_does_not_change),
        CASE(srun_inside_a_plain_job_says_why_not),
        CASE(a_step_of_another_allocation_neither_asks_nor_promises),
        CASE(an_srun_in_its_own_job_is_known_by_slurms_own_option),
        CASE(a_line_that_nobody_reads_ends_no_submission),
        CASE(an_unknown_accelerator_is_refused_once),
        CASE(a_refusal_without_words_is_none),
        CASE(only_exit_status_2_refuses),
        CASE(nothing_is_checked_inside_a_job),
        CASE(a_failed_preview_shows_nothing),
        CASE(the_preview_is_clean_and_short),
        CASE(what_cannot_be_said_ends_no_submission),
        CASE(what_was_pending_before_stays),
        CASE(a_reader_that_does_not_read_is_not_waited_for),
        CASE(each_component_carries_the_first_ones_request),
        CASE(a_step_of_several_components_is_explained_once),
        CASE(the_deadline_is_for_all_calls_together),
        CASE(a_request_that_cannot_travel_is_not_previewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// slurmstepd: the job's directory, the rules for variables, the stamps.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "cmocka_all.h"
#include "fake_spank.h"
#include "job_dir.h"
#include "scratch.h"
#include "step.h"
#include "tell.h"

#define HINTS "/run/io-autotune/cluster/n1/1234/romio_hints"
#define TUNED HEAD "set ROMIO_HINTS=" HINTS "\n"
#define RECORD "1234:ROMIO_HINTS=" HINTS
#define BATCH UINT32_C(4294967291)
#define STAMP DIR_NAME "/step-4294967291.stamp"

static int setup(void **state)
{
    (void)state;
    step_begins(BATCH);
    return 0;
}

static int tuned(void **state)
{
    setup(state);
    job_file(TUNED);
    return 0;
}

static void task_exit(int wait_status)
{
    fake.exit_status = wait_status;
    assert_int_equal(slurm_spank_task_exit(fake_handle(), 1, argument_words), 0);
}

// The number behind a key of the stamp, or -1.
static int64_t stamped(const char *key)
{
    char line[64];
    snprintf(line, sizeof line, "\n%s ", key);
    const char *found = strstr(scratch_read(STAMP), line);
    return found == NULL ? -1 : strtoll(found + strlen(line), NULL, 10);
}

static void assert_status(const char *status)
{
    char line[64];
    snprintf(line, sizeof line, "\nvariable ROMIO_HINTS %s\n", status);
    if (strstr(scratch_read(STAMP), line) == NULL)
        fail_msg("not %s: %s", status, scratch_read(STAMP));
}

static void assert_env(const char *name, const char *value)
{
    const char *found = fake_env_value(name);
    if (value == NULL)
        assert_null(found);
    else
        assert_string_equal(found == NULL ? "(absent)" : found, value);
}

// --- where the file is found, and when it is believed ---

static void assert_untuned(void)
{
    start();
    task_exit(0);
    assert_env("ROMIO_HINTS", NULL);
    assert_env("IO_AUTOTUNE_SET", NULL);
    assert_false(scratch_exists(STAMP));
}

static void a_tuned_step(void **state)
{
    (void)state;
    start();
    assert_env("ROMIO_HINTS", HINTS);
    assert_env("IO_AUTOTUNE_SET", RECORD);
    assert_status("set");
    assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
}

static void a_plain_job(void **state)
{
    (void)state;
    assert_untuned();
    assert_int_equal(fake_logged(FAKE_ERROR, "") + fake_logged(FAKE_INFO, ""), 0);
}

static void no_run_directory_at_all(void **state)
{
    (void)state;
    char *nowhere[] = {"run_dir=/nonexistent/io-autotune"};
    assert_int_equal(slurm_spank_init(fake_handle(), 1, nowhere), 0);
    assert_untuned();
    assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
}

static void a_directory_without_a_file(void **state)
{
    (void)state;
    scratch_mkdir(DIR_NAME, 0711);
    assert_untuned();
    assert_int_equal(fake_logged(FAKE_ERROR, ""), 0);
}

static void another_jobs_directory(void **state)
{
    (void)state;
    fake.job_id = 1235;
    assert_untuned();
}

static void the_extern_step(void **state)
{
    (void)state;
    fake.step_id = UINT32_C(0xfffffffc);
    fake_env("IO_AUTOTUNE_SET", "7:ROMIO_HINTS=/old");
    assert_int_equal(slurm_spank_init_post_opt(fake_handle(), 1, argument_words), 0);
    assert_int_equal(slurm_spank_user_init(fake_handle(), 1, argument_words), 0);
    assert_int_equal(slurm_spank_task_post_fork(fake_handle(), 1, argument_words), 0);
    task_exit(0);
    close_step();
    assert_env("ROMIO_HINTS", NULL);
    assert_env("IO_AUTOTUNE_SET", "7:ROMIO_HINTS=/old");
    assert_false(scratch_exists(DIR_NAME "/step-4294967292.stamp"));
}

static void the_interactive_step(void **state)
{
    (void)state;
    fake.step_id = UINT32_C(0xfffffffa);
    start();
    assert_env("ROMIO_HINTS", HINTS);
    assert_true(scratch_exists(DIR_NAME "/step-4294967290.stamp"));
}

static void forged_cluster_names(void **state)
{
    (void)state;
    const char *const names[] = {"../../x", "..", ".", "", "/etc", "a/b", "other", "a\nb"};
    // The forger's directory, where a forged name must not lead.
    scratch_mkdir("x/n1/1234", 0711);
    scratch_write("x/n1/1234/job.env", HEAD "set EVIL=1\n", 0440);
    snprintf(run_word, sizeof run_word, "run_dir=%s", scratch_path("deep/run"));
    scratch_mkdir("deep/run/cluster/n1/1234", 0711);
    scratch_write("deep/run/cluster/n1/1234/job.env", TUNED, 0440);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(slurm_spank_init(fake_handle(), 1, argument_words), 0);
        fake_env("SLURM_CLUSTER_NAME", names[i]);
        fake_env("ROMIO_HINTS", NULL);
        fake_env("IO_AUTOTUNE_SET", NULL);
        start();
        assert_env("EVIL", NULL);
        assert_env("ROMIO_HINTS", HINTS);
        close_step();
    }
}

static void without_a_cluster_name(void **state)
{
    (void)state;
    fake_env("SLURM_CLUSTER_NAME", NULL);
    scratch_mkdir("other/n1/1", 0711);
    scratch_mkdir("other/n2/1234", 0711);
    start();
    assert_env("ROMIO_HINTS", HINTS);
}

static void two_clusters_with_the_same_job(void **state)
{
    (void)state;
    scratch_mkdir("other/n1/1234", 0711);
    scratch_write("other/n1/1234/job.env", HEAD "set OTHER=1\n", 0440);
    fake_env("SLURM_CLUSTER_NAME", NULL);
    assert_untuned();
    assert_int_equal(fake_logged(FAKE_INFO, "several clusters"), 1);
    close_step();
    // The name decides.
    fake_env("SLURM_CLUSTER_NAME", "cluster");
    start();
    assert_env("ROMIO_HINTS", HINTS);
    assert_env("OTHER", NULL);
}

static void node_names(void **state)
{
    (void)state;
    char host[256];
    assert_int_equal(gethostname(host, sizeof host), 0);
    host[strcspn(host, ".")] = '\0';
    unsetenv("SLURMD_NODENAME");
    char path[512];
    snprintf(path, sizeof path, "cluster/%s/1234", host);
    scratch_mkdir(path, 0711);
    strcat(path, "/job.env");
    scratch_write(path, TUNED, 0440);
    start();
    assert_env("ROMIO_HINTS", HINTS);
    close_step();
    fake_env("ROMIO_HINTS", NULL);
    fake_env("IO_AUTOTUNE_SET", NULL);
    setenv("SLURMD_NODENAME", "../cluster/n1", 1);
    assert_untuned();
}

// Attack (files): A file that root reads, or its directory, is a link, a FIFO, too long, or
// writable by others.
static void links_are_not_followed(void **state)
{
    (void)state;
    const char *const links[] = {"cluster", "cluster/n1", DIR_NAME};
    const char *const targets[] = {"real", "real/n1", "real/n1/1234"};
    scratch_mkdir("real/n1/1234", 0711);
    scratch_write("real/n1/1234/job.env", TUNED, 0440);
    for (size_t i = 0; i < 3; i++) {
        if (i == 1)
            scratch_mkdir("cluster", 0755);
        if (i == 2)
            scratch_mkdir("cluster/n1", 0755);
        assert_int_equal(symlink(scratch_path(targets[i]), scratch_path(links[i])), 0);
        const int fd = ioat_job_dir_open(scratch_path(""), "cluster", "n1", 1234);
        // Found by the search below "real", never through the link.
        assert_true(fd >= 0);
        close(fd);
        // Now only the link leads there: the search does not look into hidden directories.
        assert_int_equal(rename(scratch_path("real"), scratch_path(".hidden")), 0);
        assert_int_equal(unlink(scratch_path(links[i])), 0);
        char hidden[64];
        snprintf(hidden, sizeof hidden, ".hidden%s", targets[i] + strlen("real"));
        assert_int_equal(symlink(scratch_path(hidden), scratch_path(links[i])), 0);
        assert_untuned();
        assert_int_equal(fake_logged(FAKE_INFO, "not owned by root"), i + 1);
        close_step();
        assert_int_equal(unlink(scratch_path(links[i])), 0);
        assert_int_equal(rename(scratch_path(".hidden"), scratch_path("real")), 0);
    }
}

// Attack (files): A file that root reads, or its directory, is a link, a FIFO, too long, or
// writable by others.
static void a_linked_file(void **state)
{
    (void)state;
    scratch_mkdir(DIR_NAME, 0711);
    scratch_write("elsewhere", TUNED, 0440);
    assert_int_equal(symlink(scratch_path("elsewhere"), scratch_path(DIR_NAME "/job.env")), 0);
    assert_untuned();
    assert_int_equal(fake_logged(FAKE_INFO, "not owned by root"), 1);
}

// Attack (files): A file that root reads, or its directory, is a link, a FIFO, too long, or
// writable by others.
static void a_fifo_does_not_hang(void **state)
{
    (void)state;
    scratch_mkdir(DIR_NAME, 0711);
    assert_int_equal(mkfifo(scratch_path(DIR_NAME "/job.env"), 0440), 0);
    assert_untuned();
    assert_int_equal(fake_logged(FAKE_INFO, "wrong type"), 1);
}

static void wrong_owner(void **state)
{
    (void)state;
    ioat_trusted_uid = geteuid() + 1;
    assert_untuned();
    assert_int_equal(fake_logged(FAKE_INFO, "not owned by root"), 1);
}

// Attack (files): A file that root reads, or its directory, is a link, a FIFO, too long, or
// writable by others.
static void writable_by_others(void **state)
{
    (void)state;
    const struct {
        const char *name;
        mode_t bad, good;
    } cases[] = {
        {DIR_NAME "/job.env", 0460, 0440},
        {DIR_NAME, 0733, 0711},
        {"cluster/n1", 0775, 0755},
        {"cluster", 0777, 0755},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(chmod(scratch_path(cases[i].name), cases[i].bad), 0);
        assert_untuned();
        assert_int_equal(fake_logged(FAKE_INFO, "writable by others"), i + 1);
        close_step();
        assert_int_equal(chmod(scratch_path(cases[i].name), cases[i].good), 0);
    }
    start();
    assert_env("ROMIO_HINTS", HINTS);
}

static void another_users_or_jobs_file(void **state)
{
    (void)state;
    fake.uid = 1001;
    assert_untuned();
    assert_int_equal(fake_logged(FAKE_INFO, "another user's"), 1);
    fake.uid = 1000;
    close_step();
    assert_int_equal(unlink(scratch_path(DIR_NAME "/job.env")), 0);
    scratch_write(DIR_NAME "/job.env", "io-autotune 1\njob 1233\nuid 1000\nset A=1\n", 0440);
    assert_untuned();
    assert_int_equal(fake_logged(FAKE_INFO, "another job's"), 2);
}

static void a_malformed_file(void **state)
{
    (void)state;
    job_file(HEAD "set LD_PRELOAD=/evil.so\n");
    assert_untuned();
    assert_env("LD_PRELOAD", NULL);
    assert_int_equal(fake_logged(FAKE_INFO, "malformed or not allowed"), 1);
}

// Attack (files): A file that root reads, or its directory, is a link, a FIFO, too long, or
// writable by others.
static void a_huge_file(void **state)
{
    (void)state;
    char *text = malloc(40001);
    assert_non_null(text);
    memset(text, 'x', 40000);
    text[40000] = '\0';
    job_file(text);
    free(text);
    assert_untuned();
    assert_int_equal(fake_logged(FAKE_INFO, "larger than 32768"), 1);
}

// --- the rules for variables ---

static void rule_1_another_jobs_variable_goes(void **state)
{
    (void)state;
    fake_env("ROMIO_HINTS", "/old");
    fake_env("IO_AUTOTUNE_SET", "7:ROMIO_HINTS=/old");
    start();
    // Tuned or not: this job is not.
    assert_env("ROMIO_HINTS", NULL);
    assert_env("IO_AUTOTUNE_SET", NULL);
}

static void rule_1_then_ours_is_set(void **state)
{
    (void)state;
    fake_env("ROMIO_HINTS", "/old");
    fake_env("IO_AUTOTUNE_SET", "7:ROMIO_HINTS=/old");
    start();
    assert_env("ROMIO_HINTS", HINTS);
    assert_env("IO_AUTOTUNE_SET", RECORD);
    assert_status("set");
}

static void rule_1_a_changed_variable_stays(void **state)
{
    (void)state;
    fake_env("ROMIO_HINTS", "/changed/by/the/user");
    fake_env("IO_AUTOTUNE_SET", "7:ROMIO_HINTS=/old\n8:GONE=x");
    start();
    assert_env("ROMIO_HINTS", "/changed/by/the/user");
    assert_env("IO_AUTOTUNE_SET", NULL);
    assert_status("user");
}

static void rule_1_leaves_this_jobs_lines(void **state)
{
    (void)state;
    fake_env("A", "1");
    fake_env("B", "2");
    fake_env("IO_AUTOTUNE_SET", "7:A=1\n1234:B=2\n8:C=3");
    start();
    assert_env("A", NULL);
    assert_env("B", "2");
    assert_env("IO_AUTOTUNE_SET", "1234:B=2");
}

static void rule_3_ours_already(void **state)
{
    (void)state;
    fake_env("ROMIO_HINTS", HINTS);
    fake_env("IO_AUTOTUNE_SET", RECORD);
    start();
    assert_env("ROMIO_HINTS", HINTS);
    assert_env("IO_AUTOTUNE_SET", RECORD);
    assert_status("set");
}

static void rule_3_the_users_value(void **state)
{
    (void)state;
    const struct {
        const char *value, *record;
    } cases[] = {
        {"/my/hints", NULL},
        {"", NULL},
        // The same value, but not by us.
        {HINTS, NULL},
        // Ours once, and changed since.
        {"/my/hints", RECORD},
        {HINTS "x", RECORD},
        // A record that does not fit what we set.
        {HINTS, "1234:ROMIO_HINTS=/other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_env("ROMIO_HINTS", cases[i].value);
        fake_env("IO_AUTOTUNE_SET", cases[i].record);
        start();
        assert_env("ROMIO_HINTS", cases[i].value);
        assert_env("IO_AUTOTUNE_SET", cases[i].record);
        assert_status("user");
        close_step();
    }
}

static void rule_3_removed_by_the_user(void **state)
{
    (void)state;
    fake_env("IO_AUTOTUNE_SET", RECORD);
    start();
    assert_env("ROMIO_HINTS", NULL);
    assert_env("IO_AUTOTUNE_SET", RECORD);
    assert_status("user");
}

static void rule_2_a_node_without_a_value_keeps_no_path_of_another(void **state)
{
    (void)state;
    char there[4200], here[4200], longer[4200], record[9000];
    snprintf(there, sizeof there, "%s", scratch_path("cluster/n2/1234/romio_hints"));
    snprintf(here, sizeof here, "%s", scratch_path("cluster/n1/1234/romio_hints"));
    snprintf(longer, sizeof longer, "%s", scratch_path("cluster/n11/1234/x"));
    const struct {
        const char *recorded, *found, *left, *status;
    } cases[] = {
        {there, there, NULL, "absent"},
        {longer, longer, NULL, "absent"},
        // This node's own file, a value that is no file of ours: both hold, so that all ranks
        // agree.
        {here, here, here, "set"},
        {"4096", "4096", "4096", "set"},
        // The user has changed it since.
        {there, "/my/hints", "/my/hints", "user"},
        {there, NULL, NULL, "absent"},
    };
    scratch_mkdir(DIR_NAME, 0711);
    // The start had no answer; or the helper got nowhere.
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const size_t n = i / 2;
        const bool answered = i % 2 == 0;
        if (answered)
            scratch_write(DIR_NAME "/job.env", HEAD "watch ROMIO_HINTS\n", 0440);
        snprintf(record, sizeof record, "1234:ROMIO_HINTS=%s", cases[n].recorded);
        fake_env("ROMIO_HINTS", cases[n].found);
        fake_env("IO_AUTOTUNE_SET", record);
        start();
        assert_env("ROMIO_HINTS", cases[n].left);
        const bool gone = cases[n].left == NULL && cases[n].found != NULL;
        assert_env("IO_AUTOTUNE_SET", gone ? NULL : record);
        if (answered) {
            assert_status(cases[n].status);
            assert_int_equal(unlink(scratch_path(DIR_NAME "/job.env")), 0);
        }
        close_step();
    }
}

static void rule_3_another_nodes_value_gives_way(void **state)
{
    (void)state;
    fake_env("ROMIO_HINTS", "/run/io-autotune/cluster/n2/1234/romio_hints");
    fake_env("IO_AUTOTUNE_SET", "1234:ROMIO_HINTS=/run/io-autotune/cluster/n2/1234/romio_hints");
    start();
    assert_env("ROMIO_HINTS", HINTS);
    assert_env("IO_AUTOTUNE_SET", RECORD);
    assert_status("set");
    // And a step launched from here, back to the other node, inherits a record that fits.
    close_step();
    start();
    assert_status("set");
}

static void a_later_component_is_the_same_job(void **state)
{
    (void)state;
    const struct {
        const char *leader, *size, *left;
    } cases[] = {
        // Slurm tells the first component's number and the size; components are numbered in a row.
        {"1234", "2", "4096"},
        {"1233", "3", "4096"},
        // A job that was submitted from inside such a job inherits the size, but is none of them.
        {"1235", "2", NULL},
        {"1200", "2", NULL},
        {"1234", NULL, NULL},
        {"1234", "-1", NULL},
        {"1234", "99999999999999999999", NULL},
        {"1236", "2", NULL},
        {NULL, "2", NULL},
    };
    fake.job_id = 1235;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char record[64];
        snprintf(record, sizeof record, "%s:A=4096",
                 cases[i].leader == NULL ? "1234" : cases[i].leader);
        fake_env("SLURM_JOB_ID", cases[i].leader);
        fake_env("SLURM_HET_SIZE", cases[i].size);
        fake_env("A", "4096");
        fake_env("IO_AUTOTUNE_SET", strcmp(record, "1235:A=4096") == 0 ? "1234:A=4096" : record);
        start();
        assert_env("A", cases[i].left);
        close_step();
    }
}

static void rule_4_watched_only(void **state)
{
    (void)state;
    const struct {
        const char *value, *record, *status;
    } cases[] = {
        {NULL, NULL, "absent"},
        {"/my/hints", NULL, "user"},
        {"", NULL, "user"},
        // Set by an outer step, and come here with the job's environment.
        {HINTS, RECORD, "set"},
        {"/my/hints", RECORD, "user"},
        {NULL, RECORD, "absent"},
    };
    job_file(HEAD "watch ROMIO_HINTS\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_env("ROMIO_HINTS", cases[i].value);
        fake_env("IO_AUTOTUNE_SET", cases[i].record);
        start();
        assert_env("ROMIO_HINTS", cases[i].value);
        assert_env("IO_AUTOTUNE_SET", cases[i].record);
        assert_status(cases[i].status);
        close_step();
    }
}

static void several_variables(void **state)
{
    (void)state;
    job_file(HEAD "set A=1\nset B=x=y\nset C=3\nwatch D\n");
    fake_env("B", "mine");
    start();
    assert_env("A", "1");
    assert_env("B", "mine");
    assert_env("C", "3");
    assert_env("IO_AUTOTUNE_SET", "1234:A=1\n1234:C=3");
    assert_non_null(strstr(scratch_read(STAMP),
                           "variable A set\nvariable B user\nvariable C set\nvariable D absent\n"));
    // An inner step inherits all that.
    close_step();
    start();
    assert_env("IO_AUTOTUNE_SET", "1234:A=1\n1234:C=3");
    assert_non_null(strstr(scratch_read(STAMP),
                           "variable A set\nvariable B user\nvariable C set\nvariable D absent\n"));
}

// Attack (environment): A user forges the record `IO_AUTOTUNE_SET`, or another plugin the request
// at submission.
// Outcome: The step gets its own hints or none, and keeps the user's variables.
static void forged_records(void **state)
{
    (void)state;
    const char *const records[] = {
        "x",
        ":",
        "=",
        "\n\n\n",
        "1234:",
        "1234:=",
        "1234:ROMIO_HINTS",
        "99999999999:ROMIO_HINTS=" HINTS,
        "-1:ROMIO_HINTS=" HINTS,
        "01234:ROMIO_HINTS=" HINTS,
        "1234:PATH=/usr/bin",
        "7:PATH=/usr/bin",
        "7:SLURM_CLUSTER_NAME=cluster",
        "7:IO_AUTOTUNE_SET=x",
        "7:A B=c",
        "\x1b\xff:\xfe=\x01",
    };
    fake_env("PATH", "/usr/bin");
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        fake_env("ROMIO_HINTS", NULL);
        fake_env("IO_AUTOTUNE_SET", records[i]);
        start();
        assert_env("PATH", "/usr/bin");
        assert_env("SLURM_CLUSTER_NAME", "cluster");
        assert_env("ROMIO_HINTS", HINTS);
        assert_env("IO_AUTOTUNE_SET", RECORD);
        assert_status("set");
        close_step();
    }
}

static void a_huge_record(void **state)
{
    (void)state;
    char *text = malloc(100001);
    assert_non_null(text);
    memset(text, 'x', 100000);
    text[100000] = '\0';
    memcpy(text, "1234:A=", 7);
    fake_env("IO_AUTOTUNE_SET", text);
    start();
    assert_env("IO_AUTOTUNE_SET", NULL);
    close_step();
    // Many lines of this job: as many stay as one file can name.
    size_t length = 0;
    for (int i = 0; i < 1000; i++)
        length += (size_t)sprintf(text + length, "%s1234:V%d=x", i > 0 ? "\n" : "", i);
    fake_env("IO_AUTOTUNE_SET", text);
    free(text);
    start();
    assert_non_null(strstr(fake_env_value("IO_AUTOTUNE_SET"), "1234:V63=x"));
    assert_null(strstr(fake_env_value("IO_AUTOTUNE_SET"), "1234:V64=x"));
}

static void a_variable_that_cannot_be_set(void **state)
{
    (void)state;
    fake.setenv_fails = true;
    start();
    assert_status("absent");
    assert_int_equal(fake_logged(FAKE_INFO, "ROMIO_HINTS cannot be set"), 1);
}

// --- the stamps ---

static void a_stamp_from_start_to_end(void **state)
{
    (void)state;
    fake.local_tasks = 2;
    const int64_t before = ioat_now_ns();
    start();
    assert_int_equal(strncmp(scratch_read(STAMP), "io-autotune-stamp 1\nstep 4294967291\n", 36), 0);
    assert_true(stamped("start_ns") >= before && stamped("start_ns") <= ioat_now_ns());
    assert_int_equal(stamped("end_ns"), -1);
    assert_int_equal(stamped("tasks"), 2);
    assert_int_equal(stamped("exited"), 0);
    // The first of two: nothing is written yet.
    task_exit(0);
    assert_int_equal(stamped("exited"), 0);
    const int64_t last = ioat_now_ns();
    task_exit(0x0300);
    assert_true(stamped("end_ns") >= last && stamped("end_ns") <= ioat_now_ns());
    assert_int_equal(stamped("exited"), 2);
    assert_int_equal(stamped("wait_status"), 0x0300);
    struct stat status;
    assert_int_equal(stat(scratch_path(STAMP), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0400);
    // The end of slurmstepd adds nothing.
    char text[4096];
    snprintf(text, sizeof text, "%s", scratch_read(STAMP));
    close_step();
    assert_string_equal(scratch_read(STAMP), text);
}

static void a_stamp_tells_the_steps_nodes(void **state)
{
    (void)state;
    // The batch step, where Slurm leaves it at 0.
    start();
    assert_int_equal(stamped("nodes"), 1);
    close_step();
    fake.nodes = 3;
    start();
    assert_int_equal(stamped("nodes"), 3);
}

static void the_users_mask_does_not_matter(void **state)
{
    (void)state;
    struct stat status;
    const mode_t before = umask(0777);
    start();
    umask(before);
    assert_int_equal(stat(scratch_path(STAMP), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0400);
}

static void the_first_bad_wait_status_counts(void **state)
{
    (void)state;
    fake.local_tasks = 4;
    start();
    task_exit(0);
    task_exit(9);
    task_exit(0x0100);
    task_exit(0);
    assert_int_equal(stamped("wait_status"), 9);
}

static void tasks_that_nobody_told_of(void **state)
{
    (void)state;
    fake.local_tasks = 3;
    start();
    task_exit(0);
    const int64_t before = ioat_now_ns();
    close_step();
    assert_int_equal(stamped("tasks"), 3);
    assert_int_equal(stamped("exited"), 1);
    assert_true(stamped("end_ns") >= before);
}

static void a_step_that_never_started_leaves_no_stamp(void **state)
{
    (void)state;
    assert_int_equal(slurm_spank_init_post_opt(fake_handle(), 1, argument_words), 0);
    close_step();
    assert_false(scratch_exists(STAMP));
}

static void steps_have_stamps_of_their_own(void **state)
{
    (void)state;
    for (fake.step_id = 0; fake.step_id < 3; fake.step_id++) {
        start();
        task_exit(0);
        close_step();
    }
    assert_true(scratch_exists(DIR_NAME "/step-0.stamp"));
    assert_true(scratch_exists(DIR_NAME "/step-1.stamp"));
    assert_true(scratch_exists(DIR_NAME "/step-2.stamp"));
}

static void a_file_without_variables_is_stamped_too(void **state)
{
    (void)state;
    job_file(HEAD);
    start();
    task_exit(0);
    assert_int_equal(stamped("exited"), 1);
    assert_null(strstr(scratch_read(STAMP), "variable"));
    assert_env("IO_AUTOTUNE_SET", NULL);
}

// Attack (files): A file that root reads, or its directory, is a link, a FIFO, too long, or
// writable by others.
static void a_draft_of_a_dead_process_is_replaced(void **state)
{
    (void)state;
    char draft[128];
    snprintf(draft, sizeof draft, DIR_NAME "/.step-4294967291.stamp.%ld", (long)getpid());
    scratch_write("precious", "precious", 0600);
    assert_int_equal(symlink(scratch_path("precious"), scratch_path(draft)), 0);
    start();
    assert_status("set");
    assert_false(scratch_exists(draft));
    assert_string_equal(scratch_read("precious"), "precious");
}

static void a_stamp_that_cannot_be_written(void **state)
{
    (void)state;
    scratch_mkdir(STAMP, 0755);
    scratch_write(STAMP "/x", "", 0600);
    start();
    task_exit(0);
    close_step();
    assert_true(fake_logged(FAKE_INFO, "cannot be written") > 0);
    // And no draft is left behind.
    char draft[128];
    snprintf(draft, sizeof draft, DIR_NAME "/.step-4294967291.stamp.%ld", (long)getpid());
    assert_false(scratch_exists(draft));
    assert_env("ROMIO_HINTS", HINTS);
}

static void descriptors_are_given_back(void **state)
{
    (void)state;
    const int before = dup(0);
    close(before);
    for (int i = 0; i < 10; i++) {
        start();
        task_exit(0);
        close_step();
    }
    const int after = dup(0);
    close(after);
    assert_int_equal(after, before);
}

// --- what a job that asked is told ---

#define TELLING TUNED "tell job 1234 runs\n"
#define LINE "io-autotune: job 1234 runs\n"

// What a task that is started now has in its stderr.
static const char *told(void)
{
    static char text[4096];
    const int real = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(real >= 0 && file >= 0);
    dup2(file, STDERR_FILENO);
    const int rc = slurm_spank_task_init(fake_handle(), 1, argument_words);
    dup2(real, STDERR_FILENO);
    close(real);
    assert_int_equal(rc, 0);
    const ssize_t length = pread(file, text, sizeof text - 1, 0);
    close(file);
    assert_true(length >= 0);
    text[length] = '\0';
    return text;
}

static const char *told_in(uint32_t step_id)
{
    close_step();
    fake.step_id = step_id;
    start();
    return told();
}

static void the_first_task_of_the_batch_step_tells(void **state)
{
    (void)state;
    job_file(TELLING);
    start();
    assert_string_equal(told(), LINE);
    fake.task = 1;
    assert_string_equal(told(), "");
}

static void a_job_that_did_not_ask_is_told_nothing(void **state)
{
    (void)state;
    assert_string_equal(told_in(BATCH), "");
    assert_string_equal(told_in(BATCH), "");
}

static void steps_behind_the_first_tell_nothing(void **state)
{
    (void)state;
    job_file(TELLING);
    assert_string_equal(told_in(1), "");
    assert_string_equal(told_in(0), LINE);
    assert_string_equal(told_in(BATCH), LINE);
    assert_string_equal(told_in(0), "");
}

static void a_variable_of_the_jobs_own_is_not_called_ours(void **state)
{
    (void)state;
    job_file(TELLING);
    fake_env("ROMIO_HINTS", "mine");
    start();
    assert_non_null(strstr(told(), "ROMIO_HINTS is this job's own"));
}

static void a_long_line_is_cut(void **state)
{
    static char text[4096];
    (void)state;
    const int head = snprintf(text, sizeof text, "%stell ", HEAD);
    memset(text + head, 'x', 3000);
    strcpy(text + head + 3000, "\n");
    job_file(text);
    start();
    const char *line = told();
    assert_int_equal(strlen(line), 1023);
    assert_int_equal(line[1022], '\n');
}

// A reader that does not read, one that is gone, and a limit on what files may grow to.
//
// Attack (files): The output of sbatch, or of a job that asks to be told, is full, closed, or not
// read.
// Outcome: The words are lost; the job is submitted, and its run counts.
static void what_cannot_be_written_costs_nothing(void **state)
{
    (void)state;
    int ends[2];
    char full[4096] = {0};
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(ends[1], full, sizeof full) > 0) {
    }
    fcntl(ends[1], F_SETFL, 0);
    alarm(10);
    ioat_tell(ends[1], "x", NULL);
    close(ends[0]);
    ioat_tell(ends[1], "x", NULL);
    close(ends[1]);
    const int file = memfd_create("limited", MFD_CLOEXEC);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    ioat_tell(file, "x", NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    ioat_tell(-1, "x", NULL);
    alarm(0);
    assert_int_equal(lseek(file, 0, SEEK_END), 0);
    close(file);
    struct sigaction now;
    assert_int_equal(sigaction(SIGXFSZ, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_DFL);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
#define TUNED_CASE(function) cmocka_unit_test_setup_teardown(function, tuned, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TUNED_CASE(a_tuned_step),
        CASE(a_plain_job),
        CASE(no_run_directory_at_all),
        CASE(a_directory_without_a_file),
        TUNED_CASE(another_jobs_directory),
        TUNED_CASE(the_extern_step),
        TUNED_CASE(the_interactive_step),
        TUNED_CASE(forged_cluster_names),
        TUNED_CASE(without_a_cluster_name),
        TUNED_CASE(two_clusters_with_the_same_job),
        CASE(node_names),
        CASE(links_are_not_followed),
        CASE(a_linked_file),
        CASE(a_fifo_does_not_hang),
        TUNED_CASE(wrong_owner),
        TUNED_CASE(writable_by_others),
        TUNED_CASE(another_users_or_jobs_file),
        CASE(a_malformed_file),
        CASE(a_huge_file),
        CASE(rule_1_another_jobs_variable_goes),
        TUNED_CASE(rule_1_then_ours_is_set),
        TUNED_CASE(rule_1_a_changed_variable_stays),
        CASE(rule_1_leaves_this_jobs_lines),
        TUNED_CASE(rule_3_ours_already),
        TUNED_CASE(rule_3_the_users_value),
        TUNED_CASE(rule_3_removed_by_the_user),
        CASE(rule_2_a_node_without_a_value_keeps_no_path_of_another),
        TUNED_CASE(rule_3_another_nodes_value_gives_way),
        CASE(a_later_component_is_the_same_job),
        CASE(rule_4_watched_only),
        CASE(several_variables),
        TUNED_CASE(forged_records),
        CASE(a_huge_record),
        TUNED_CASE(a_variable_that_cannot_be_set),
        TUNED_CASE(a_stamp_from_start_to_end),
        TUNED_CASE(a_stamp_tells_the_steps_nodes),
        TUNED_CASE(the_users_mask_does_not_matter),
        TUNED_CASE(the_first_bad_wait_status_counts),
        TUNED_CASE(tasks_that_nobody_told_of),
        TUNED_CASE(a_step_that_never_started_leaves_no_stamp),
        TUNED_CASE(steps_have_stamps_of_their_own),
        CASE(a_file_without_variables_is_stamped_too),
        TUNED_CASE(a_draft_of_a_dead_process_is_replaced),
        TUNED_CASE(a_stamp_that_cannot_be_written),
        TUNED_CASE(descriptors_are_given_back),
        CASE(the_first_task_of_the_batch_step_tells),
        TUNED_CASE(a_job_that_did_not_ask_is_told_nothing),
        CASE(steps_behind_the_first_tell_nothing),
        CASE(a_variable_of_the_jobs_own_is_not_called_ours),
        CASE(a_long_line_is_cut),
        CASE(what_cannot_be_written_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// What a step's I/O came to: the kernel's text, the difference, the record.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "fake_spank.h"
#include "job_dir.h"
#include "measures.h"
#include "scratch.h"
#include "step.h"

#define STAMP DIR_NAME "/step-7.stamp"
#define RECORD DIR_NAME "/step-7.measures"
#define MEBIBYTE (1024 * 1024)
#define IO                                                                                         \
    "rchar: 1\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 18446744073709551615\n"  \
    "cancelled_write_bytes: 7\n"

static int setup(void **state)
{
    (void)state;
    step_begins(7);
    job_file(HEAD);
    return 0;
}

static void task_exit(void)
{
    assert_int_equal(slurm_spank_task_exit(fake_handle(), 1, argument_words), 0);
}

static void write_mebibytes(const char *name, int count)
{
    static const char block[MEBIBYTE];
    const int fd = open(scratch_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(write(fd, block, sizeof block), MEBIBYTE);
    close(fd);
}

// A task whose child's child does it, as a batch script's program does.
static void task_that_writes(int count)
{
    const pid_t task = fork();
    assert_true(task >= 0);
    if (task == 0) {
        const pid_t inner = fork();
        if (inner == 0)
            write_mebibytes("written", count);
        else
            waitpid(inner, NULL, 0);
        _exit(0);
    }
    assert_int_equal(waitpid(task, NULL, 0), task);
}

// The number behind a name in the record, or -1.
static int64_t measured(const char *name)
{
    char line[64];
    snprintf(line, sizeof line, "\n%s ", name);
    const char *found = strstr(scratch_read(RECORD), line);
    return found == NULL ? -1 : strtoll(found + strlen(line), NULL, 10);
}

static void the_kernels_text(void **state)
{
    (void)state;
    const uint64_t expected[] = {1, 20, 3, 4, 5, UINT64_MAX, 7};
    struct ioat_measures measures = {0};
    assert_true(ioat_measures_parse_io(IO, &measures));
    assert_memory_equal(measures.values, expected, sizeof expected);
    // A later kernel may tell more, anywhere.
    assert_true(ioat_measures_parse_io("a_rchar: 9\nmore: x\n" IO "rest", &measures));
    assert_memory_equal(measures.values, expected, sizeof expected);
}

static void what_is_no_such_text(void **state)
{
    (void)state;
    const char *const texts[] = {
        "",
        "\n",
        "rchar",
        "rchar: 1\n",
        "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n",
        // Cut short, so that the last number may be another.
        "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"
        "cancelled_write_bytes: 7",
        "rchar: -1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"
        "cancelled_write_bytes: 7\n",
        "rchar: 18446744073709551616\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\n"
        "write_bytes: 6\ncancelled_write_bytes: 7\n",
        "rchar:  1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"
        "cancelled_write_bytes: 7\n",
        "rchar: x\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"
        "cancelled_write_bytes: 7\n",
    };
    struct ioat_measures measures;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (ioat_measures_parse_io(texts[i], &measures))
            fail_msg("%zu: %s", i, texts[i]);
}

static void a_record_holds_the_largest_numbers(void **state)
{
    (void)state;
    char text[IOAT_MEASURES_TEXT_SIZE] = "", name[IOAT_MEASURES_NAME_SIZE];
    struct ioat_measures measures = {0}, before = {.values = {2}};
    memset(measures.values, 0xff, sizeof measures.values);
    measures.stalled_us = UINT64_MAX;
    ioat_measures_format(&measures, UINT32_MAX, text);
    assert_null(strstr(text, "io_stalled_us"));
    measures.has_stalled = true;
    const size_t length = ioat_measures_format(&measures, UINT32_MAX, text);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "\ninvoluntary_switches 18446744073709551615\n"));
    assert_non_null(strstr(text, "\nio_stalled_us 18446744073709551615\n"));
    ioat_measures_name(UINT32_MAX, name);
    assert_string_equal(name, "step-4294967295.measures");
    ioat_measures_subtract(&measures, &before);
    assert_int_equal(measures.values[0], UINT64_MAX - 2);
    // What cannot be, and would be a huge number.
    measures.values[0] = 1;
    ioat_measures_subtract(&measures, &before);
    assert_int_equal(measures.values[0], 0);
}

static void what_tasks_write_counts_and_what_came_before_does_not(void **state)
{
    (void)state;
    struct stat status;
    write_mebibytes("before", 4);
    task_that_writes(3);
    start();
    assert_false(scratch_exists(RECORD));
    task_that_writes(2);
    task_exit();
    assert_int_equal(strncmp(scratch_read(RECORD), "io-autotune-measures 1\nstep 7\n", 30), 0);
    assert_in_range(measured("wchar"), 2 * MEBIBYTE, 2 * MEBIBYTE + 65536);
    assert_in_range(measured("syscw"), 2, 20);
    assert_in_range(measured("user_us") + measured("system_us"), 1, 60 * 1000 * 1000);
    assert_int_equal(stat(scratch_path(RECORD), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0400);
    // The end of slurmstepd adds nothing.
    char text[IOAT_MEASURES_TEXT_SIZE];
    snprintf(text, sizeof text, "%s", scratch_read(RECORD));
    task_that_writes(1);
    close_step();
    assert_string_equal(scratch_read(RECORD), text);
}

static void only_the_last_of_several_tasks_writes_the_record(void **state)
{
    (void)state;
    fake.local_tasks = 2;
    start();
    task_that_writes(1);
    task_exit();
    assert_false(scratch_exists(RECORD));
    task_that_writes(1);
    task_exit();
    assert_in_range(measured("wchar"), 2 * MEBIBYTE, 2 * MEBIBYTE + 65536);
}

static void tasks_that_nobody_told_of(void **state)
{
    (void)state;
    start();
    task_that_writes(1);
    close_step();
    assert_in_range(measured("wchar"), MEBIBYTE, MEBIBYTE + 65536);
}

static void a_job_that_takes_no_part_has_no_record(void **state)
{
    (void)state;
    assert_int_equal(unlink(scratch_path(DIR_NAME "/job.env")), 0);
    start();
    task_exit();
    close_step();
    assert_false(scratch_exists(RECORD));
}

static void a_step_that_never_started_has_no_record(void **state)
{
    (void)state;
    assert_int_equal(slurm_spank_init_post_opt(fake_handle(), 1, argument_words), 0);
    assert_int_equal(slurm_spank_user_init(fake_handle(), 1, argument_words), 0);
    close_step();
    // It is stamped: it did start for Slurm. But nobody knows what was there before its tasks.
    assert_true(scratch_exists(STAMP));
    assert_false(scratch_exists(RECORD));
}

static void a_record_that_cannot_be_written_costs_no_stamp(void **state)
{
    (void)state;
    char with[4096];
    start();
    scratch_mkdir(RECORD "/x", 0755);
    task_exit();
    close_step();
    snprintf(with, sizeof with, "%s", scratch_read(STAMP));
    assert_non_null(strstr(with, "\nexited 1\n"));
    assert_int_equal(fake_logged(FAKE_ERROR, "") + fake_logged(FAKE_INFO, ""), 0);
    assert_int_equal(fake_logged(FAKE_DEBUG, "step-7.measures cannot be written"), 1);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernels_text),
        cmocka_unit_test(what_is_no_such_text),
        cmocka_unit_test(a_record_holds_the_largest_numbers),
        CASE(what_tasks_write_counts_and_what_came_before_does_not),
        CASE(only_the_last_of_several_tasks_writes_the_record),
        CASE(tasks_that_nobody_told_of),
        CASE(a_job_that_takes_no_part_has_no_record),
        CASE(a_step_that_never_started_has_no_record),
        CASE(a_record_that_cannot_be_written_costs_no_stamp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

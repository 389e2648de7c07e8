// How long a step stood still for I/O: the kernel's texts, as recorded, and the kernel itself.
#include "pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "scratch.h"

#define STEP "/system.slice/slurmstepd.scope/job_7/step_0"
#define FULL "full avg10=0.18 avg60=0.16 avg300=0.21 total=303732770\n"
#define BLOCK (4 * 1024 * 1024)

static void the_group_of_a_step_is_above_slurmstepds(void **state)
{
    (void)state;
    char step[PATH_MAX];
    assert_true(ioat_pressure_parse_cgroup("0::" STEP "/slurm\n", step));
    assert_string_equal(step, STEP);
    assert_true(ioat_pressure_parse_cgroup("1:cpu:/\n0::/step_batch/slurm\n", step));
    assert_string_equal(step, "/step_batch");
}

static void no_other_group_is_taken_for_a_steps(void **state)
{
    (void)state;
    char step[PATH_MAX], much[2 * PATH_MAX] = "0::/step_0";
    static const char *const texts[] = {
        "",
        "0::/\n",
        "0::/slurm\n",
        "0::/system.slice/slurm\n",
        "0::" STEP "/user/task_0\n",
        "0::" STEP "\n",
        "1:name=systemd:" STEP "/slurm\n",
        "0::" STEP "/slurm (deleted)\n",
        "0::slurm",
        "0:",
        "0::/step_0/slurmd\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (ioat_pressure_parse_cgroup(texts[i], step))
            fail_msg("%zu: %s", i, texts[i]);
    memset(much + strlen(much), 'x', sizeof much - strlen(much) - 10);
    strcat(much, "/slurm\n");
    assert_false(ioat_pressure_parse_cgroup(much, step));
}

static void the_kernels_text(void **state)
{
    (void)state;
    uint64_t stalled = 0;
    assert_true(ioat_pressure_parse(
        "some avg10=0.19 avg60=0.20 avg300=0.45 total=1293199782\n" FULL, &stalled));
    assert_int_equal(stalled, 1293199782);
    static const char *const texts[] = {
        "",
        FULL,
        "some avg10=0.19 avg60=0.20 avg300=0.45\n" FULL,
        "some avg10=0.19 total=\n" FULL,
        "some avg10=0.19 total=-1\n" FULL,
        "some avg10=0.19 total=12x\n" FULL,
        "some avg10=0.19 total=18446744073709551616\n" FULL,
        "some avg10=0.19 total=12",
        "some total",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (ioat_pressure_parse(texts[i], &stalled))
            fail_msg("%zu: %s", i, texts[i]);
}

static void enter(const char *group)
{
    const int fd = open(group, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        _exit(2);
    close(fd);
}

static void write_through(const char *path)
{
    static const char block[BLOCK];
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_SYNC | O_CLOEXEC, 0600);
    for (int i = 0; fd >= 0 && i < 8; i++)
        if (write(fd, block, sizeof block) != BLOCK)
            _exit(3);
    close(fd);
}

// In the place of slurmstepd, in the step's group: what its tasks waited for is told.
static int as_slurmstepd(const char *hierarchy, const char *written)
{
    enter("slurm/cgroup.procs");
    const pid_t task = fork();
    if (task == 0) {
        enter("user/cgroup.procs");
        write_through(written);
        _exit(0);
    }
    int status = 0;
    if (waitpid(task, &status, 0) != task || status != 0)
        return 4;
    uint64_t stalled = 0, told = 0;
    if (!ioat_pressure_read(hierarchy, &stalled))
        return 5;
    char text[512];
    const int fd = open("io.pressure", O_RDONLY | O_CLOEXEC);
    const ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length < 0)
        return 6;
    text[length] = '\0';
    if (!ioat_pressure_parse(text, &told))
        return 7;
    struct statfs of_written;
    if (statfs(written, &of_written) != 0)
        return 8;
    // Nobody waits for memory.
    const bool waits = of_written.f_type != TMPFS_MAGIC;
    return (stalled > 0 || !waits) && told >= stalled ? 0 : 9;
}

// In a mount namespace of this process alone; 77: control groups cannot be had.
static int with_control_groups(const char *hierarchy, const char *written)
{
    static const char *const groups[] = {"step_0", "step_0/slurm", "step_0/user"};
    char own[64];
    snprintf(own, sizeof own, "io-autotune-test-%d", (int)getpid());
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", hierarchy, "cgroup2", 0, NULL) != 0 || chdir(hierarchy) != 0 ||
        access("io.pressure", R_OK) != 0 || mkdir(own, 0755) != 0)
        return 77;
    int status = chdir(own);
    for (size_t i = 0; i < 3; i++)
        status |= mkdir(groups[i], 0755);
    const pid_t stepd = fork();
    if (stepd == 0)
        _exit(status == 0 && chdir(groups[0]) == 0 ? as_slurmstepd(hierarchy, written) : 1);
    waitpid(stepd, &status, 0);
    for (size_t i = 3; i-- > 0;)
        status |= rmdir(groups[i]);
    status |= chdir("..") | rmdir(own);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void what_tasks_waited_for_is_told(void **state)
{
    (void)state;
    const char *const hierarchy = scratch_mkdir("cgroup", 0755);
    const char *const written = scratch_path("written");
    const pid_t child = fork();
    if (child == 0)
        _exit(with_control_groups(hierarchy, written));
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("no control groups of version 2 with io.pressure can be mounted here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_process_of_no_step_tells_nothing(void **state)
{
    (void)state;
    uint64_t stalled = 0;
    assert_false(ioat_pressure_read("/sys/fs/cgroup", &stalled));
    assert_false(ioat_pressure_read("/nonexistent", &stalled));
}

static int setup(void **state)
{
    (void)state;
    scratch_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_group_of_a_step_is_above_slurmstepds),
        cmocka_unit_test(no_other_group_is_taken_for_a_steps),
        cmocka_unit_test(the_kernels_text),
        cmocka_unit_test(a_process_of_no_step_tells_nothing),
        cmocka_unit_test_setup_teardown(what_tasks_waited_for_is_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

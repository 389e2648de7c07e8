#include "step.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "fake_spank.h"
#include "job_dir.h"
#include "scratch.h"

char run_word[4200];
char *argument_words[] = {run_word};

void step_begins(unsigned step_id)
{
    fake_reset(S_CTX_REMOTE);
    fake.job_id = 1234;
    fake.step_id = step_id;
    fake.uid = 1000;
    fake.gid = 1000;
    fake.local_tasks = 1;
    fake_env("SLURM_CLUSTER_NAME", "cluster");
    setenv("SLURMD_NODENAME", "n1", 1);
    ioat_trusted_uid = geteuid();
    snprintf(run_word, sizeof run_word, "run_dir=%s", scratch_make());
    assert_int_equal(slurm_spank_init(fake_handle(), 1, argument_words), 0);
}

void job_file(const char *text)
{
    scratch_mkdir(DIR_NAME, 0711);
    scratch_write(DIR_NAME "/job.env", text, 0440);
}

void start(void)
{
    assert_int_equal(slurm_spank_init_post_opt(fake_handle(), 1, argument_words), 0);
    assert_int_equal(slurm_spank_user_init(fake_handle(), 1, argument_words), 0);
    assert_int_equal(slurm_spank_task_post_fork(fake_handle(), 1, argument_words), 0);
}

void close_step(void)
{
    assert_int_equal(slurm_spank_exit(fake_handle(), 0, NULL), 0);
}

int teardown(void **state)
{
    (void)state;
    close_step();
    fake_reset(S_CTX_REMOTE);
    scratch_remove();
    ioat_trusted_uid = 0;
    return 0;
}

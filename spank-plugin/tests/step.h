// A step of job 1234 on node n1 of a cluster, and its directory below the scratch directory.
#ifndef IO_AUTOTUNE_TEST_STEP_H
#define IO_AUTOTUNE_TEST_STEP_H

#define DIR_NAME "cluster/n1/1234"
#define HEAD "io-autotune 1\njob 1234\nuid 1000\n"

// run_dir=..., which a test may change.
extern char run_word[4200];
extern char *argument_words[];

void step_begins(unsigned step_id);
void job_file(const char *text);
// As far as the start of its tasks.
void start(void);
void close_step(void);
int teardown(void **state);

#endif

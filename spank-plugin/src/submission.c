#include "submission.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "environment.h"
#include "log.h"
#include "spawn.h"

#define OUTPUT_MAX 4096
#define PREVIEW_LINES 3
#define REFUSAL_LINES 8
// The helper gives up this much before it would be killed, so that it can still say why.
#define MARGIN_MS 20

// Inside a job, whose request was settled when the job was submitted.
static bool is_inside_job(void)
{
    return getenv("SLURM_JOB_ID") != NULL || getenv("SLURM_JOBID") != NULL;
}

// What Slurm hands down to a job with the prefix SLURM_SPANK_ (src/common/plugstack.c,
// src/sbatch/opt.c): its request, and the option as it was given for it.
#define INHERITED_REQUEST "SLURM_SPANK_IO_AUTOTUNE"
#define INHERITED_OPTION "SLURM_SPANK__SLURM_SPANK_OPTION_io_autotune_io_autotune"

// An srun inside a job; a nested sbatch or salloc asks for a job of its own.
static bool is_part_of_job(void)
{
    return spank_context() == S_CTX_LOCAL && is_inside_job();
}

// Runs the helper's COMMAND with one more option within what is left of the deadline. False when
// nothing is left of it.
static bool run_helper(struct ioat_submission *submission, const struct ioat_arguments *arguments,
                       const char *command, const char *option, const char *value,
                       struct ioat_spawn_result *result, char *output, size_t size)
{
    static const char *const kept[] = {"HOME", "USER", "LANG", "SLURM_CONF"};
    const int64_t left_ms = arguments->submit_deadline_ms - submission->spent_ns / IOAT_NS_PER_MS;
    if (left_ms <= 0)
        return false;
    char deadline[16];
    snprintf(deadline, sizeof deadline, "%d",
             (int)(left_ms > 2 * MARGIN_MS ? left_ms - MARGIN_MS : left_ms));
    const char *argv[] = {arguments->helper,
                          command,
                          "--config",
                          arguments->config,
                          "--deadline-ms",
                          deadline,
                          option,
                          value,
                          NULL};
    struct ioat_environment environment = {0};
    bool complete = ioat_environment_add(&environment, "PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        complete = complete && ioat_environment_copy(&environment, kept[i]);
    if (complete) {
        const int64_t begin_ns = ioat_now_ns();
        // execve takes char *const[] for history's sake and changes nothing.
        const struct ioat_spawn spawn = {
            .argv = (char *const *)argv, .envp = environment.entries, .deadline_ms = (int)left_ms};
        *result = ioat_spawn_run(&spawn, output, size);
        submission->spent_ns += ioat_now_ns() - begin_ns;
    }
    ioat_environment_clear(&environment);
    return complete;
}

static void say(const char *line, void *data)
{
    (void)data;
    IOAT_INFO("%s", line);
}

static void complain(const char *line, void *data)
{
    (void)data;
    IOAT_ERROR("%s", line);
}

static void log_failure(const char *command, const struct ioat_spawn_result *result)
{
    char how[128];
    ioat_spawn_describe(result, how, sizeof how);
    IOAT_DEBUG("helper's %s %s", command, how);
}

// Whether the service refuses the accelerator `name`: the helper's exit status 2, and nothing else.
static bool is_refused(struct ioat_submission *submission, const struct ioat_arguments *arguments,
                       const char *name)
{
    char output[OUTPUT_MAX + 1];
    struct ioat_spawn_result result;
    if (strcmp(submission->checked, name) == 0)
        return submission->refused;
    if (!run_helper(submission, arguments, "check", "--accelerator", name, &result, output,
                    OUTPUT_MAX))
        return false;
    snprintf(submission->checked, sizeof submission->checked, "%s", name);
    submission->refused = result.outcome == IOAT_EXITED && result.code == 2;
    if (submission->refused) {
        if (ioat_text_lines(output, result.length, REFUSAL_LINES, complain, NULL) == 0)
            IOAT_ERROR("there is no accelerator \"%s\" here", name);
    } else if (result.outcome != IOAT_EXITED || result.code != 0) {
        log_failure("check", &result);
    }
    return submission->refused;
}

// An option without an argument, in one of three ways.
static const char *without_null(const char *value)
{
    return value == NULL || strcmp(value, "(null)") == 0 ? "" : value;
}

// Takes a SPEC over. Inside a job Slurm replays the outer job's option, after #SBATCH and before
// the command line: it must neither outdo the script's own nor lend the outer job's name, because
// then two applications would share a history. One call with the inherited value is the replay; a
// second one means that somebody wrote it.
static void adopt(struct ioat_submission *submission, const char *value,
                  const struct ioat_spec *spec)
{
    const char *inherited = is_inside_job() ? getenv(INHERITED_OPTION) : NULL;
    const bool replay = inherited != NULL && !submission->replayed &&
                        strcmp(without_null(inherited), without_null(value)) == 0;
    submission->replayed = submission->replayed || replay;
    if (replay && submission->asked)
        return;
    submission->asked = true;
    submission->asked_here = true;
    submission->spec = *spec;
    if (replay)
        submission->spec.app[0] = '\0';
}

int ioat_submission_option(struct ioat_submission *submission,
                           const struct ioat_arguments *arguments, const char *value)
{
    char error[IOAT_SPEC_ERROR_SIZE];
    struct ioat_spec spec;
    if (ioat_spec_parse(value, &spec, error) != 0) {
        IOAT_ERROR("%s", error);
        return -1;
    }
    if (spec.accelerator[0] != '\0' && spec.mode != IOAT_MODE_OFF && !is_part_of_job() &&
        is_refused(submission, arguments, spec.accelerator))
        return -1;
    adopt(submission, value, &spec);
    return 0;
}

// The name of the job to be submitted, or NULL. sbatch puts it into its own environment before the
// options are processed; salloc does not, so that inside a job the name there is the outer job's.
static const char *job_name(void)
{
    if (spank_context() == S_CTX_ALLOCATOR && is_inside_job() &&
        strcmp(program_invocation_short_name, "salloc") == 0)
        return NULL;
    return getenv("SLURM_JOB_NAME");
}

static void preview(struct ioat_submission *submission, const struct ioat_arguments *arguments)
{
    char output[OUTPUT_MAX + 1];
    struct ioat_spawn_result result;
    if (!run_helper(submission, arguments, "submit", "--request", submission->request, &result,
                    output, OUTPUT_MAX))
        return;
    if (result.outcome == IOAT_EXITED && result.code == 0)
        ioat_text_lines(output, result.length, PREVIEW_LINES, say, NULL);
    else
        log_failure("submit", &result);
}

static bool is_same_spec(const struct ioat_spec *one, const struct ioat_spec *other)
{
    return one->mode == other->mode && strcmp(one->app, other->app) == 0 &&
           strcmp(one->accelerator, other->accelerator) == 0;
}

// Without PrologFlags=Alloc the prolog of a node runs before the job's first step there, and is
// told what that step's srun was, not what the job's submission was.
static void pass_on(const char *request, spank_t spank)
{
    const spank_err_t rc = spank_job_control_setenv(spank, "IO_AUTOTUNE", request, 1);
    if (rc != ESPANK_SUCCESS)
        IOAT_DEBUG("the job's request cannot be passed on: %s", spank_strerror(rc));
}

static void explain_step(struct ioat_submission *submission)
{
    if (submission->explained)
        return;
    submission->explained = true;
    IOAT_INFO("this step stays untuned: its job was submitted without --io-autotune or with "
              "mode=off, and half a job is never tuned; give the option to sbatch or salloc "
              "instead");
}

// What a later component of a heterogeneous job asks for has no effect.
static void explain_component(struct ioat_submission *submission)
{
    const bool carried = submission->request[0] != '\0';
    if (submission->explained ||
        (carried && is_same_spec(&submission->spec, &submission->first_spec)))
        return;
    submission->explained = true;
    if (carried)
        IOAT_INFO("the first component of this job carries its run; what --io-autotune says for a "
                  "later one is not used");
    else
        IOAT_INFO("this job stays untuned: the first component of a job carries its run, and "
                  "--io-autotune was given for a later one only; give it for the first");
}

// The request travels with every component, or with none. False when it does not.
static bool send(const struct ioat_submission *submission, spank_t spank)
{
    if (submission->request[0] == '\0') {
        // An outer job's request must reach neither this job's prolog nor, through the job's
        // environment, the steps inside it.
        spank_job_control_unsetenv(spank, "IO_AUTOTUNE");
        unsetenv(INHERITED_REQUEST);
        return false;
    }
    const spank_err_t rc = spank_job_control_setenv(spank, "IO_AUTOTUNE", submission->request, 1);
    if (rc != ESPANK_SUCCESS)
        IOAT_ERROR("the request cannot be sent with the job, which stays untuned: %s",
                   spank_strerror(rc));
    return rc == ESPANK_SUCCESS;
}

void ioat_submission_post_opt(struct ioat_submission *submission,
                              const struct ioat_arguments *arguments, spank_t spank)
{
    const bool on =
        submission->asked ? submission->spec.mode != IOAT_MODE_OFF : arguments->default_on;
    if (is_part_of_job()) {
        const char *request = getenv(INHERITED_REQUEST);
        if (request != NULL)
            pass_on(request, spank);
        else if (on && submission->asked)
            explain_step(submission);
        return;
    }
    const bool first = submission->components++ == 0;
    if (first) {
        submission->first_spec = submission->spec;
        if (on) {
            const struct ioat_request request = ioat_request_derive(&submission->spec, job_name());
            ioat_request_format(&request, submission->request);
        }
    } else if (on && submission->asked_here) {
        explain_component(submission);
    }
    submission->asked_here = false;
    if (send(submission, spank) && first)
        preview(submission, arguments);
}

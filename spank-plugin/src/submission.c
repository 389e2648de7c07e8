#include "submission.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "environment.h"
#include "launcher.h"
#include "log.h"
#include "spawn.h"
#include "tell.h"

#define OUTPUT_MAX 4096
#define PREVIEW_LINES 3
#define REFUSAL_LINES 8
// The helper's own deadline is earlier by this, so that it can still say why it failed.
#define MARGIN_MS 20

// What a job inherits (src/common/spank.c, src/sbatch/sbatch.c): the job-control environment with
// the prefix SLURM_SPANK_, in it our request and the option as it was given, and the option once
// more without the prefix.
#define INHERITED "SLURM_SPANK_"
#define OPTION "_SLURM_SPANK_OPTION_io_autotune_io_autotune"
#define INHERITED_REQUEST INHERITED "IO_AUTOTUNE"
#define INHERITED_OPTION INHERITED OPTION

// A user's own: a SPEC for what names none, and a wish to be told.
#define USERS_SPEC "IO_AUTOTUNE"
#define USERS_VERBOSE "IO_AUTOTUNE_VERBOSE"

// An srun in an allocation that is there already; a nested sbatch or salloc submits a job of its
// own.
static bool is_part_of_job(void)
{
    return spank_context() == S_CTX_LOCAL && ioat_launcher_allocation() != IOAT_ALLOCATION_NEW;
}

// `input` is the user's, and no argument: other users of this host can read those, a job's name and
// comment among them, though Slurm may keep them private.
static bool run_helper(struct ioat_submission *submission, const struct ioat_arguments *arguments,
                       const char *command, const char *input, struct ioat_spawn_result *result,
                       char *output, size_t size)
{
    static const char *const kept[] = {"HOME", "USER", "LANG", "SLURM_CONF"};
    const int64_t left_ms = arguments->submit_deadline_ms - submission->spent_ns / IOAT_NS_PER_MS;
    if (left_ms <= 0)
        return false;
    char deadline[16];
    snprintf(deadline, sizeof deadline, "%d",
             (int)(left_ms > 2 * MARGIN_MS ? left_ms - MARGIN_MS : left_ms));
    const char *argv[] = {arguments->helper, command,  "--config", arguments->config,
                          "--deadline-ms",   deadline, NULL};
    struct ioat_environment environment = {0};
    bool complete = ioat_environment_add(&environment, "PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        complete = complete && ioat_environment_copy(&environment, kept[i]);
    if (complete) {
        const int64_t begin_ns = ioat_now_ns();
        // execve takes char *const[] for historical reasons and changes nothing.
        const struct ioat_spawn spawn = {.argv = (char *const *)argv,
                                         .envp = environment.entries,
                                         .input = input,
                                         .deadline_ms = (int)left_ms};
        *result = ioat_spawn_run(&spawn, output, size);
        submission->spent_ns += ioat_now_ns() - begin_ns;
    }
    ioat_environment_clear(&environment);
    return complete;
}

// Programs that submit jobs read what sbatch prints, often with stderr merged into stdout.
static bool is_silent(const struct ioat_submission *submission)
{
    const char *verbose = getenv(USERS_VERBOSE);
    if (submission->spec.verbose || (verbose != NULL && strcmp(verbose, "1") == 0))
        return false;
    return ioat_launcher_is_quiet() || isatty(STDERR_FILENO) == 0;
}

// A submission neither ends nor waits by what is only said.
static void say(const char *line, void *data)
{
    (void)data;
    if (!ioat_can_be_told(STDERR_FILENO))
        return;
    if (!ioat_launcher_is_quiet()) {
        IOAT_INFO("%s", line);
        return;
    }
    // Slurm's log is below its level then.
    char text[OUTPUT_MAX + 128];
    const int length =
        snprintf(text, sizeof text, "%s: io-autotune: %s\n", program_invocation_short_name, line);
    if (length > 0 && (size_t)length < sizeof text)
        ioat_write_once(STDERR_FILENO, text, (size_t)length);
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

// Only the helper's exit status 2 refuses the accelerator, with the reason: a helper of another
// release that does not understand how it is called ends so as well, and prints none.
static bool is_refused(struct ioat_submission *submission, const struct ioat_arguments *arguments,
                       const char *name)
{
    char output[OUTPUT_MAX + 1];
    struct ioat_spawn_result result;
    if (strcmp(submission->checked, name) == 0)
        return submission->refused;
    if (!run_helper(submission, arguments, "check", name, &result, output, OUTPUT_MAX))
        return false;
    snprintf(submission->checked, sizeof submission->checked, "%s", name);
    submission->refused = result.outcome == IOAT_EXITED && result.code == 2 &&
                          ioat_text_lines(output, result.length, REFUSAL_LINES, complain, NULL) > 0;
    if (!submission->refused && (result.outcome != IOAT_EXITED || result.code != 0))
        log_failure("check", &result);
    return submission->refused;
}

// The value of an option without an argument is NULL, "" or "(null)".
static const char *without_null(const char *value)
{
    return value == NULL || strcmp(value, "(null)") == 0 ? "" : value;
}

// Slurm gives the option of the environment once for each component, after the script's and before
// the command line's. It cannot be told from what a job has inherited, for a job can unset whatever
// else says that it is one; so it never asks. Of calls with its value the first is taken for it,
// and a second is the user's.
static bool is_replay(struct ioat_submission *submission, const char *value)
{
    const char *inherited = getenv(INHERITED_OPTION);
    if (inherited == NULL || submission->replayed ||
        strcmp(without_null(inherited), without_null(value)) != 0)
        return false;
    submission->replayed = true;
    return true;
}

// Whether a SPEC can be used; says why not.
static bool read_spec(struct ioat_submission *submission, const struct ioat_arguments *arguments,
                      const char *value, const char *from, struct ioat_spec *spec)
{
    char error[IOAT_SPEC_ERROR_SIZE];
    if (ioat_spec_parse(value, from, spec, error) != 0) {
        IOAT_ERROR("%s", error);
        return false;
    }
    return spec->accelerator[0] == '\0' || spec->mode == IOAT_MODE_OFF || is_part_of_job() ||
           !is_refused(submission, arguments, spec->accelerator);
}

int ioat_submission_option(struct ioat_submission *submission,
                           const struct ioat_arguments *arguments, const char *value)
{
    struct ioat_spec spec;
    // Before it is read: what a job inherited must not refuse a submission either.
    if (is_replay(submission, value))
        return 0;
    if (!read_spec(submission, arguments, value, "--io-autotune", &spec))
        return -1;
    submission->asked = true;
    submission->asked_here = true;
    submission->spec = spec;
    return 0;
}

// Slurm gives the option's SPECs in the order of their weight; the environment's weighs less than
// any. A wrong one cannot refuse the job, which stays untuned.
static bool adopt_environment(struct ioat_submission *submission,
                              const struct ioat_arguments *arguments)
{
    const char *value = getenv(USERS_SPEC);
    struct ioat_spec spec;
    if (value == NULL)
        return arguments->default_on;
    if (!read_spec(submission, arguments, value, USERS_SPEC, &spec))
        return false;
    submission->spec = spec;
    // An outer job's submission may have had it, and may have been of an older plugin.
    if (ioat_launcher_is_inside_job())
        submission->spec.app[0] = '\0';
    return spec.mode != IOAT_MODE_OFF;
}

static void preview(struct ioat_submission *submission, const struct ioat_arguments *arguments)
{
    char output[OUTPUT_MAX + 1];
    struct ioat_spawn_result result;
    if (is_silent(submission))
        return;
    if (!run_helper(submission, arguments, "submit", submission->request, &result, output,
                    OUTPUT_MAX))
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

// Without PrologFlags=Alloc a node's prolog gets the environment of the job's first srun there.
static void pass_on(const char *request, spank_t spank)
{
    const spank_err_t rc = spank_job_control_setenv(spank, "IO_AUTOTUNE", request, 1);
    if (rc != ESPANK_SUCCESS)
        IOAT_DEBUG("the job's request cannot be passed on: %s", spank_strerror(rc));
}

// An outer job's request must reach neither the prolog nor the steps of another one.
static void forget_request(spank_t spank)
{
    spank_job_control_unsetenv(spank, "IO_AUTOTUNE");
    unsetenv(INHERITED_REQUEST);
}

// The request says all that a job needs. Were the option to stay in its environment, Slurm would
// hand it to each submission that the job makes; and the name in a user's IO_AUTOTUNE is of this
// job alone. Slurm has set the option before it calls slurm_spank_init_post_opt, and copies the
// environment afterwards.
static void forget_option(spank_t spank)
{
    const char *value = getenv(USERS_SPEC);
    char kept[IOAT_SPEC_MAX + 1], error[IOAT_SPEC_ERROR_SIZE];
    struct ioat_spec spec;
    spank_job_control_unsetenv(spank, OPTION);
    unsetenv(OPTION);
    unsetenv(INHERITED_OPTION);
    if (value != NULL && ioat_spec_parse(value, USERS_SPEC, &spec, error) == 0 &&
        ioat_spec_without_app(value, kept))
        setenv(USERS_SPEC, kept, 1);
}

static void explain_once(struct ioat_submission *submission, const char *line)
{
    if (submission->explained || is_silent(submission))
        return;
    submission->explained = true;
    say(line, NULL);
}

// A step of an allocation that is there already. Its prolog may have run, and of what another job
// asked for nothing is known here.
static void pass_step(struct ioat_submission *submission, spank_t spank)
{
    const bool own = ioat_launcher_allocation() == IOAT_ALLOCATION_OWN;
    const bool asked = submission->asked && submission->spec.mode != IOAT_MODE_OFF;
    const char *request = getenv(INHERITED_REQUEST);
    if (own && request != NULL) {
        pass_on(request, spank);
        if (submission->asked && !ioat_request_has(request, &submission->spec))
            explain_once(submission,
                         "this step changes nothing of what its job was submitted with; "
                         "--io-autotune is for an allocation: give it to sbatch, to salloc, or to "
                         "an srun that makes its own");
    } else if (own && asked) {
        explain_once(submission,
                     "this step stays untuned: its job was submitted without --io-autotune or "
                     "with mode=off, and half a job is never tuned; give the option to sbatch or "
                     "salloc instead");
    } else if (!own && submission->asked) {
        explain_once(submission,
                     "this step changes nothing of how its job is tuned, and nothing is applied or "
                     "counted for it alone; --io-autotune is for an allocation: give it to sbatch, "
                     "to salloc, or to an srun that makes its own");
    }
    if (!own)
        forget_request(spank);
}

// A later component's option has no effect.
static void explain_component(struct ioat_submission *submission)
{
    const bool carried = submission->request[0] != '\0';
    if (carried && is_same_spec(&submission->spec, &submission->first_spec))
        return;
    explain_once(submission,
                 carried
                     ? "the first component of this job carries its run; what --io-autotune says "
                       "for a later one is not used"
                     : "this job stays untuned: the first component of a job carries its run, and "
                       "--io-autotune was given for a later one only; give it for the first");
}

static bool send(const struct ioat_submission *submission, spank_t spank)
{
    if (submission->request[0] == '\0') {
        forget_request(spank);
        return false;
    }
    const spank_err_t rc = spank_job_control_setenv(spank, "IO_AUTOTUNE", submission->request, 1);
    if (rc != ESPANK_SUCCESS)
        IOAT_ERROR("the request cannot be sent with the job, which stays untuned: %s",
                   spank_strerror(rc));
    return rc == ESPANK_SUCCESS;
}

static void submit(struct ioat_submission *submission, const struct ioat_arguments *arguments,
                   spank_t spank)
{
    const bool asked = submission->asked && submission->spec.mode != IOAT_MODE_OFF;
    const bool first = submission->components++ == 0;
    if (first) {
        const bool on = submission->asked ? asked : adopt_environment(submission, arguments);
        submission->first_spec = submission->spec;
        if (on)
            ioat_request_format(&submission->spec, ioat_launcher_job_name(),
                                ioat_launcher_comment(), submission->request);
        else if (submission->replayed && !submission->asked && !ioat_launcher_is_inside_job())
            explain_once(submission, INHERITED_OPTION
                         " is what jobs inherit, and asks for nothing: give --io-autotune, or set "
                         "IO_AUTOTUNE=SPEC");
    } else if (asked && submission->asked_here) {
        explain_component(submission);
    }
    if (send(submission, spank) && first)
        preview(submission, arguments);
}

void ioat_submission_post_opt(struct ioat_submission *submission,
                              const struct ioat_arguments *arguments, spank_t spank)
{
    if (is_part_of_job())
        pass_step(submission, spank);
    else
        submit(submission, arguments, spank);
    submission->asked_here = false;
    submission->replayed = false;
    forget_option(spank);
}

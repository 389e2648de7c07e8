#include "job_hooks.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "clock.h"
#include "environment.h"
#include "log.h"
#include "spawn.h"
#include "text.h"

#define OUTPUT_MAX 4096
#define OUTPUT_LINES 16
// The helper keeps its deadline itself; this is the margin before it is killed.
#define KILL_AFTER_MS 100
// A killed helper is not run again with less time left.
#define AGAIN_MS 100
#define VALUE_MAX 65536
#define REQUEST_MAX 2048

enum kind { DIGITS, TEXT };

static const struct {
    const char *name;
    enum kind kind;
} COPIED[] = {
    {"SLURM_JOB_USER", TEXT},          {"SLURM_JOB_PARTITION", TEXT},
    {"SLURM_JOB_NUM_NODES", DIGITS},   {"SLURM_NNODES", DIGITS},
    {"SLURM_JOB_NODELIST", TEXT},      {"SLURM_NODELIST", TEXT},
    {"SLURM_JOB_CPUS_PER_NODE", TEXT}, {"SLURM_JOB_RESTART_COUNT", DIGITS},
    {"SLURM_RESTART_COUNT", DIGITS},   {"SLURM_JOB_SLUID", TEXT},
    {"SLURM_CLUSTER_NAME", TEXT},      {"SLURMD_NODENAME", TEXT},
    {"SLURM_JOB_START_TIME", DIGITS},  {"SLURM_JOB_END_TIME", DIGITS},
    {"SLURM_JOB_EXIT_CODE", TEXT},     {"SLURM_JOB_EXIT_CODE2", TEXT},
    {"SLURM_JOB_DERIVED_EC", TEXT},    {"SLURM_HET_JOB_ID", DIGITS},
    {"SLURM_HET_JOB_OFFSET", DIGITS},  {"SLURM_ARRAY_JOB_ID", DIGITS},
    {"SLURM_ARRAY_TASK_ID", DIGITS},   {"SLURM_CONF", TEXT},
};

static bool is_sane(const char *value, enum kind kind)
{
    const size_t length = strnlen(value, VALUE_MAX);
    if (length == VALUE_MAX)
        return false;
    return kind == DIGITS ? ioat_text_is_digits(value) : ioat_text_is_printable(value, length);
}

static bool add_id(struct ioat_environment *environment, const char *name, spank_err_t rc,
                   uint32_t id)
{
    char text[16];
    const char *value = getenv(name);
    snprintf(text, sizeof text, "%" PRIu32, id);
    if (rc == ESPANK_SUCCESS)
        value = text;
    return value != NULL && ioat_text_is_digits(value) && strlen(value) <= 10 &&
           ioat_environment_add(environment, name, value);
}

static bool is_component(const char *name)
{
    return name != NULL && name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
}

// Whether a job's changed settings still need restoring (a killed or missing helper):
// SPOOL/saved/CLUSTER/NODE exists.
static bool is_anything_saved(const struct ioat_arguments *arguments)
{
    const char *cluster = getenv("SLURM_CLUSTER_NAME"), *node = getenv("SLURMD_NODENAME");
    char path[4096];
    if (!is_component(cluster) || !is_component(node))
        return false;
    const int length =
        snprintf(path, sizeof path, "%s/saved/%s/%s", arguments->spool_dir, cluster, node);
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

// False when the job's identity is unknown or memory is short.
static bool fill(struct ioat_environment *environment, spank_t spank, const char *request)
{
    uint32_t job_id = 0;
    uid_t uid = 0;
    gid_t gid = 0;
    const spank_err_t job_rc = spank_get_item(spank, S_JOB_ID, &job_id);
    const spank_err_t uid_rc = spank_get_item(spank, S_JOB_UID, &uid);
    const spank_err_t gid_rc = spank_get_item(spank, S_JOB_GID, &gid);
    if (!ioat_environment_add(environment, "PATH", "/usr/bin:/bin:/usr/sbin:/sbin") ||
        (request != NULL && !ioat_environment_add(environment, "SPANK_IO_AUTOTUNE", request)) ||
        !add_id(environment, "SLURM_JOB_ID", job_rc, job_id) ||
        !add_id(environment, "SLURM_JOB_UID", uid_rc, (uint32_t)uid) ||
        !add_id(environment, "SLURM_JOB_GID", gid_rc, (uint32_t)gid))
        return false;
    for (size_t i = 0; i < sizeof COPIED / sizeof *COPIED; i++) {
        const char *value = getenv(COPIED[i].name);
        if (value == NULL)
            continue;
        if (!is_sane(value, COPIED[i].kind))
            IOAT_ERROR("%s is not what Slurm would put there and is left out", COPIED[i].name);
        else if (!ioat_environment_add(environment, COPIED[i].name, value))
            return false;
    }
    return true;
}

static void log_info(const char *line, void *data)
{
    (void)data;
    IOAT_INFO("%s", line);
}

static void log_error(const char *line, void *data)
{
    (void)data;
    IOAT_ERROR("%s", line);
}

static struct ioat_spawn_result run_once(const struct ioat_arguments *arguments,
                                         const char *command,
                                         const struct ioat_environment *environment,
                                         int deadline_ms)
{
    char deadline[16], output[OUTPUT_MAX + 1], how[128];
    snprintf(deadline, sizeof deadline, "%d", deadline_ms);
    const char *argv[] = {arguments->helper,
                          command,
                          "--config",
                          arguments->config,
                          "--run-dir",
                          arguments->run_dir,
                          "--spool-dir",
                          arguments->spool_dir,
                          "--deadline-ms",
                          deadline,
                          NULL};
    // execve takes char *const[] for historical reasons and changes nothing.
    const struct ioat_spawn spawn = {.argv = (char *const *)argv,
                                     .envp = environment->entries,
                                     .deadline_ms = deadline_ms + KILL_AFTER_MS,
                                     .with_stderr = true};
    const struct ioat_spawn_result result = ioat_spawn_run(&spawn, output, OUTPUT_MAX);
    const bool good = result.outcome == IOAT_EXITED && result.code == 0;
    ioat_text_lines(output, result.length, OUTPUT_LINES, good ? log_info : log_error, NULL);
    if (!good) {
        ioat_spawn_describe(&result, how, sizeof how);
        IOAT_ERROR("%s %s %s; the job goes on", arguments->helper, command, how);
    }
    return result;
}

// In the epilog runs a killed helper again if there is time: it can start over at any point, and an
// unwritten report is lost. A killed start only costs one job's tuning.
static void run(const struct ioat_arguments *arguments, const char *command,
                const struct ioat_environment *environment)
{
    const int64_t end_ns = ioat_now_ns() + arguments->job_deadline_ms * IOAT_NS_PER_MS;
    const struct ioat_spawn_result result =
        run_once(arguments, command, environment, arguments->job_deadline_ms);
    const int64_t left_ms = (end_ns - ioat_now_ns()) / IOAT_NS_PER_MS;
    if (strcmp(command, "finish") == 0 && result.outcome == IOAT_SIGNALLED &&
        result.code == SIGKILL && left_ms >= AGAIN_MS)
        run_once(arguments, command, environment, (int)left_ms);
}

void ioat_job_hook(const struct ioat_arguments *arguments, spank_t spank, const char *command)
{
    const char *request = getenv("SPANK_IO_AUTOTUNE");
    const size_t length = request == NULL ? 0 : strnlen(request, REQUEST_MAX);
    if (length == REQUEST_MAX || (request != NULL && !ioat_text_is_printable(request, length))) {
        IOAT_ERROR("SPANK_IO_AUTOTUNE is no request of ours; the job goes on untuned");
        request = NULL;
    }
    if (request == NULL) {
        if (!is_anything_saved(arguments))
            return;
        command = "restore";
    }
    struct ioat_environment environment = {0};
    if (fill(&environment, spank, request))
        run(arguments, command, &environment);
    else
        IOAT_ERROR("%s: the job's id, uid and gid are not known, or memory is short; the job goes "
                   "on untuned",
                   command);
    ioat_environment_clear(&environment);
}

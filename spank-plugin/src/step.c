#include "step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "job_dir.h"
#include "log.h"
#include "pressure.h"
#include "tell.h"
#include "text.h"
#include "variables.h"

// SLURM_EXTERN_CONT, SLURM_BATCH_SCRIPT and SLURM_INTERACTIVE_STEP of slurm.h. The extern step is
// no part of the run, so without variables and stamp.
#define EXTERN_STEP UINT32_C(0xfffffffc)
#define BATCH_STEP UINT32_C(0xfffffffb)
#define INTERACTIVE_STEP UINT32_C(0xfffffffa)
#define NAME_SIZE 256

// slurmd passes this node's name to slurmstepd in its environment, which no user reaches.
static const char *node_name(char *buffer, size_t size)
{
    const char *name = getenv("SLURMD_NODENAME");
    if (name != NULL)
        return name;
    if (gethostname(buffer, size) != 0)
        buffer[0] = '\0';
    buffer[size - 1] = '\0';
    buffer[strcspn(buffer, ".")] = '\0';
    return buffer;
}

static int open_dir(const struct ioat_place *place, spank_t spank)
{
    char cluster[NAME_SIZE];
    const bool named =
        spank_getenv(spank, "SLURM_CLUSTER_NAME", cluster, sizeof cluster) == ESPANK_SUCCESS;
    return ioat_job_dir_open(place->run_dir, named ? cluster : NULL, place->node, place->job_id);
}

static bool read_number(spank_t spank, const char *name, uint32_t *number)
{
    char text[16];
    return spank_getenv(spank, name, text, sizeof text) == ESPANK_SUCCESS &&
           ioat_text_parse_u32(text, strlen(text), number);
}

// The first component of a heterogeneous job. In a later component's step SLURM_JOB_ID is the first
// one's id; ids are consecutive. A job submitted inside such a job inherits SLURM_HET_SIZE, but its
// id is outside that range.
static uint32_t leader_of(spank_t spank, uint32_t job_id)
{
    uint32_t leader = 0, size = 0;
    if (read_number(spank, "SLURM_JOB_ID", &leader) &&
        read_number(spank, "SLURM_HET_SIZE", &size) && leader < job_id && job_id - leader < size)
        return leader;
    return job_id;
}

// Why the directory or file cannot be used; NULL when there is none.
static const char *explain(int error)
{
    switch (error) {
    case ENOENT:
        return NULL;
    case EPERM:
        return "not owned by root, writable by others, or of the wrong type";
    case EEXIST:
        return "several clusters on this host have a job with this id";
    case EFBIG:
        return "larger than 32768 bytes";
    default:
        return strerrordesc_np(error);
    }
}

static const char *read_file(struct ioat_step *step, uid_t uid)
{
    step->text = malloc(IOAT_JOB_ENV_MAX + 1);
    if (step->text == NULL)
        return "memory is short";
    const ssize_t length =
        ioat_job_dir_read(step->dir_fd, IOAT_JOB_ENV_NAME, step->text, IOAT_JOB_ENV_MAX);
    if (length < 0)
        return explain(errno);
    const char *wrong = ioat_job_env_parse(step->text, (size_t)length, &step->file);
    if (wrong != NULL)
        return wrong;
    if (step->file.job_id != step->place.job_id || step->file.uid != (uint32_t)uid)
        return "it is another job's or another user's";
    step->tuned = true;
    return NULL;
}

static bool has_run(const struct ioat_step *step, uint32_t step_id)
{
    const struct ioat_stamp other = {.step_id = step_id};
    char name[IOAT_STAMP_NAME_SIZE];
    ioat_stamp_name(&other, name);
    return faccessat(step->dir_fd, name, F_OK, 0) == 0;
}

// Of the steps of a job the batch or the interactive one comes first; an srun that is a job of its
// own has neither. Each is stamped before its task runs.
static bool is_first(const struct ioat_step *step)
{
    const uint32_t step_id = step->stamp.step_id;
    if (step_id == BATCH_STEP || step_id == INTERACTIVE_STEP)
        return true;
    return step_id == 0 && !has_run(step, BATCH_STEP) && !has_run(step, INTERACTIVE_STEP);
}

static void release(struct ioat_step *step)
{
    if (step->dir_fd >= 0)
        close(step->dir_fd);
    free(step->text);
    step->dir_fd = -1;
    step->text = NULL;
    step->tuned = false;
}

void ioat_step_open(struct ioat_step *step, const struct ioat_arguments *arguments, spank_t spank)
{
    uid_t uid = 0;
    *step = (struct ioat_step){.dir_fd = -1};
    if (spank_get_item(spank, S_JOB_ID, &step->place.job_id) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &step->stamp.step_id) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
        step->stamp.step_id == EXTERN_STEP)
        return;
    step->known = true;
    step->place.leader_id = leader_of(spank, step->place.job_id);
    step->place.run_dir = arguments->run_dir;
    step->place.node = node_name(step->host, sizeof step->host);
    const char *wrong = NULL;
    step->dir_fd = open_dir(&step->place, spank);
    if (step->dir_fd >= 0)
        wrong = read_file(step, uid);
    else
        wrong = explain(errno);
    step->first = step->tuned && step->file.tell != NULL && is_first(step);
    if (wrong != NULL)
        IOAT_STEP_ERROR("job %u: %s below %s is not used: %s", step->place.job_id,
                        IOAT_JOB_ENV_NAME, arguments->run_dir, wrong);
    if (!step->tuned)
        release(step);
}

void ioat_step_start(struct ioat_step *step, spank_t spank)
{
    if (!step->known)
        return;
    ioat_variables_apply(spank, &step->place, step->tuned ? &step->file : NULL,
                         step->stamp.statuses);
    if (!step->tuned)
        return;
    // Slurm leaves it at 0 in the batch step, which has one node.
    if (spank_get_item(spank, S_JOB_NNODES, &step->stamp.nodes) != ESPANK_SUCCESS ||
        step->stamp.nodes == 0)
        step->stamp.nodes = 1;
    if (spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &step->stamp.tasks) != ESPANK_SUCCESS)
        step->stamp.tasks = 1;
    step->stamp.start_ns = ioat_now_ns();
    step->started = true;
}

void ioat_step_tell(const struct ioat_step *step, spank_t spank)
{
    int task = 0;
    const char *kept = NULL;
    if (!step->started || !step->first ||
        spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS || task != 0)
        return;
    for (size_t i = 0; i < step->file.count && kept == NULL; i++)
        if (step->stamp.statuses[i] == IOAT_STATUS_USER)
            kept = step->file.variables[i].name;
    ioat_tell(STDERR_FILENO, step->file.tell, kept);
}

static void write_stamp(struct ioat_step *step)
{
    char name[IOAT_STAMP_NAME_SIZE];
    size_t length = 0;
    char *text = ioat_stamp_format(&step->stamp, &step->file, &length);
    ioat_stamp_name(&step->stamp, name);
    if (text == NULL || ioat_job_dir_write(step->dir_fd, name, text, length) != 0)
        IOAT_STEP_ERROR("job %u: %s cannot be written: %s", step->place.job_id, name,
                        text == NULL ? "memory is short" : strerrordesc_np(errno));
    free(text);
    step->stamped = true;
    step->finished = step->stamp.ended;
}

// Measures are never worth an error: without them a run counts as ever.
static void write_measures(struct ioat_step *step, const struct ioat_measures *measures)
{
    char name[IOAT_MEASURES_NAME_SIZE], text[IOAT_MEASURES_TEXT_SIZE];
    const size_t length = ioat_measures_format(measures, step->stamp.step_id, text);
    ioat_measures_name(step->stamp.step_id, name);
    if (ioat_job_dir_write(step->dir_fd, name, text, length) != 0)
        IOAT_DEBUG("job %u: %s cannot be written: %s", step->place.job_id, name,
                   strerrordesc_np(errno));
}

// Measured first: what writing the stamp takes is no task's.
static void finish(struct ioat_step *step)
{
    struct ioat_measures measures = {0};
    const bool measured = step->measured && ioat_measures_read(&measures);
    write_stamp(step);
    if (!measured)
        return;
    ioat_measures_subtract(&measures, &step->before);
    // Slurm finds the hierarchy there too, and refuses hosts with both versions.
    measures.has_stalled = ioat_pressure_read("/sys/fs/cgroup", &measures.stalled_us);
    write_measures(step, &measures);
}

void ioat_step_forked(struct ioat_step *step)
{
    if (!step->started || step->stamped)
        return;
    write_stamp(step);
    // No task counts before slurmstepd waits for it, which it does not yet.
    step->measured = ioat_measures_read(&step->before);
    if (!step->measured)
        IOAT_DEBUG("job %u: what its steps read and write is not told here", step->place.job_id);
}

void ioat_step_task_exit(struct ioat_step *step, spank_t spank)
{
    int wait_status = 0;
    if (!step->started || step->finished)
        return;
    if (spank_get_item(spank, S_TASK_EXIT_STATUS, &wait_status) != ESPANK_SUCCESS)
        return;
    ioat_stamp_exit(&step->stamp, ioat_now_ns(), wait_status);
    if (step->stamp.ended)
        finish(step);
}

void ioat_step_close(struct ioat_step *step)
{
    if (step->started && !step->finished) {
        // Every task is dead by now, even if slurmstepd did not report it.
        step->stamp.end_ns = ioat_now_ns();
        step->stamp.ended = true;
        finish(step);
    }
    if (step->known)
        release(step);
    *step = (struct ioat_step){.dir_fd = -1};
}

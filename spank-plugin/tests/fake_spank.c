#include "fake_spank.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "pidfd.h"

#define PREFIX "io-autotune: "
#define VARIABLES 256
#define LINES 256

struct spank_handle {
    uint32_t magic;
};

struct variables {
    char *entries[VARIABLES];
};

static struct spank_handle handle = {0x5a5a};
static struct variables job_env, control_env;
static struct {
    enum fake_level level;
    char *text;
} lines[LINES];
static size_t line_count;

struct fake fake;
bool fake_no_pidfd;

// Exported by the test's program, with the size that the plugin looks for.
char opt[1024];

static char *option_get(void *options, const char *name)
{
    assert_ptr_equal(options, opt);
    if (strcmp(name, "jobid") == 0)
        return (char *)(fake.allocation == NULL ? "unset" : fake.allocation);
    return (char *)(strcmp(name, "job-name") == 0 ? fake.job_name : fake.comment);
}

static bool option_isset(void *options, const char *name)
{
    assert_ptr_equal(options, opt);
    if (strcmp(name, "comment") == 0)
        return fake.comment != NULL;
    if (strcmp(name, "jobid") == 0)
        return fake.allocation != NULL;
    return strcmp(name, "quiet") == 0 ? fake.quiet : fake.parsable;
}

void *__wrap_dlsym(void *where, const char *name);

void *__wrap_dlsym(void *where, const char *name)
{
    assert_null(where);
    if (!fake.options)
        return NULL;
    if (strcmp(name, "opt") == 0)
        return opt;
    return strcmp(name, "slurm_option_get") == 0 ? (void *)option_get : (void *)option_isset;
}

int __real_ioat_pidfd_open(pid_t pid);
int __wrap_ioat_pidfd_open(pid_t pid);

int __wrap_ioat_pidfd_open(pid_t pid)
{
    if (!fake_no_pidfd)
        return __real_ioat_pidfd_open(pid);
    errno = ENOSYS;
    return -1;
}

spank_t fake_handle(void)
{
    return &handle;
}

static char **find(struct variables *variables, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < VARIABLES; i++) {
        char *entry = variables->entries[i];
        if (entry != NULL && strncmp(entry, name, length) == 0 && entry[length] == '=')
            return &variables->entries[i];
    }
    return NULL;
}

static void put(struct variables *variables, const char *name, const char *value)
{
    char **slot = find(variables, name);
    if (slot != NULL) {
        free(*slot);
        *slot = NULL;
    }
    if (value == NULL)
        return;
    for (size_t i = 0; i < VARIABLES; i++)
        if (variables->entries[i] == NULL) {
            assert_true(asprintf(&variables->entries[i], "%s=%s", name, value) > 0);
            return;
        }
    fail_msg("the fake environment is full");
}

static const char *get(struct variables *variables, const char *name)
{
    char **slot = find(variables, name);
    return slot == NULL ? NULL : *slot + strlen(name) + 1;
}

static void clear(struct variables *variables)
{
    for (size_t i = 0; i < VARIABLES; i++)
        free(variables->entries[i]);
    memset(variables, 0, sizeof *variables);
}

void fake_reset(spank_context_t context)
{
    clear(&job_env);
    clear(&control_env);
    for (size_t i = 0; i < line_count; i++)
        free(lines[i].text);
    line_count = 0;
    fake_no_pidfd = false;
    fake = (struct fake){.context = context};
}

void fake_env(const char *name, const char *value)
{
    put(&job_env, name, value);
}

const char *fake_env_value(const char *name)
{
    return get(&job_env, name);
}

void fake_control(const char *name, const char *value)
{
    put(&control_env, name, value);
}

const char *fake_control_value(const char *name)
{
    return get(&control_env, name);
}

size_t fake_logged(enum fake_level level, const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < line_count; i++)
        if (lines[i].level == level && strstr(lines[i].text, part) != NULL)
            count++;
    return count;
}

static void record(enum fake_level level, const char *format, va_list arguments)
{
    char *text = NULL;
    assert_true(line_count < LINES);
    assert_true(vasprintf(&text, format, arguments) >= 0);
    // The house rule of the plugin's log.
    assert_int_equal(strncmp(text, PREFIX, strlen(PREFIX)), 0);
    lines[line_count].level = level;
    lines[line_count++].text = text;
    // As in sbatch, salloc and srun, whose log it is.
    if (fake.writes && write(STDERR_FILENO, text, strlen(text)) < 0) {
        // The tests look at what comes of it.
    }
}

#define LOGGER(name, level)                                                                        \
    void name(const char *format, ...)                                                             \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        record(level, format, arguments);                                                          \
        va_end(arguments);                                                                         \
    }

LOGGER(slurm_error, FAKE_ERROR)
LOGGER(slurm_info, FAKE_INFO)
LOGGER(slurm_debug, FAKE_DEBUG)

spank_context_t spank_context(void)
{
    return fake.context;
}

const char *spank_strerror(spank_err_t error)
{
    return error == ESPANK_SUCCESS ? "Success" : "a SPANK error";
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
    assert_ptr_equal(spank, &handle);
    assert_non_null(option->usage);
    fake.option = *option;
    fake.registered = true;
    return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    spank_err_t rc = ESPANK_SUCCESS;
    va_list arguments;
    assert_ptr_equal(spank, &handle);
    if (fake.no_items)
        return ESPANK_NOT_AVAIL;
    va_start(arguments, item);
    if (item == S_JOB_ID)
        *va_arg(arguments, uint32_t *) = fake.job_id;
    else if (item == S_JOB_STEPID)
        *va_arg(arguments, uint32_t *) = fake.step_id;
    else if (item == S_JOB_UID)
        *va_arg(arguments, uid_t *) = fake.uid;
    else if (item == S_JOB_GID)
        *va_arg(arguments, gid_t *) = fake.gid;
    else if (item == S_JOB_NNODES)
        *va_arg(arguments, uint32_t *) = fake.nodes;
    else if (item == S_JOB_LOCAL_TASK_COUNT)
        *va_arg(arguments, uint32_t *) = fake.local_tasks;
    else if (item == S_TASK_ID)
        *va_arg(arguments, int *) = fake.task;
    else if (item == S_TASK_EXIT_STATUS)
        *va_arg(arguments, int *) = fake.exit_status;
    else
        rc = ESPANK_BAD_ARG;
    va_end(arguments);
    return rc;
}

spank_err_t spank_getenv(spank_t spank, const char *name, char *buffer, int size)
{
    const char *value = fake_env_value(name);
    assert_ptr_equal(spank, &handle);
    if (fake.context != S_CTX_REMOTE)
        return ESPANK_NOT_REMOTE;
    if (value == NULL)
        return ESPANK_ENV_NOEXIST;
    const int length = snprintf(buffer, (size_t)size, "%s", value);
    return length >= size ? ESPANK_NOSPACE : ESPANK_SUCCESS;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite)
{
    assert_ptr_equal(spank, &handle);
    if (fake.setenv_fails)
        return ESPANK_ERROR;
    if (overwrite == 0 && fake_env_value(name) != NULL)
        return ESPANK_ENV_EXISTS;
    fake_env(name, value);
    return ESPANK_SUCCESS;
}

spank_err_t spank_unsetenv(spank_t spank, const char *name)
{
    assert_ptr_equal(spank, &handle);
    fake_env(name, NULL);
    return ESPANK_SUCCESS;
}

spank_err_t spank_job_control_setenv(spank_t spank, const char *name, const char *value,
                                     int overwrite)
{
    assert_ptr_equal(spank, &handle);
    assert_int_equal(overwrite, 1);
    if (fake.setenv_fails)
        return ESPANK_ERROR;
    fake_control(name, value);
    return ESPANK_SUCCESS;
}

spank_err_t spank_job_control_unsetenv(spank_t spank, const char *name)
{
    assert_ptr_equal(spank, &handle);
    fake_control(name, NULL);
    return ESPANK_SUCCESS;
}

#include "job_env.h"

#include <string.h>

#include "text.h"

static const char HEADER[] = "io-autotune 1";

static bool starts_with(const char *name, size_t length, const char *prefix)
{
    return length >= strlen(prefix) && memcmp(name, prefix, strlen(prefix)) == 0;
}

bool ioat_job_env_allows(const char *name, size_t length)
{
    static const char *const names[] = {
        "BASH_ENV", "CDPATH", "ENV",       "GCONV_PATH",   "GLIBC_TUNABLES", "HDF5_PLUGIN_PATH",
        "HOME",     "IFS",    "LOGNAME",   "NODE_OPTIONS", "NLSPATH",        "PATH",
        "PS4",      "SHELL",  "SHELLOPTS", "TMPDIR",       "USER",
    };
    static const char *const prefixes[] = {
        "IO_AUTOTUNE", "LD_",  "OMPI_MCA_mca_", "OMPI_MCA_orte_", "OMPI_MCA_plm", "PERL",
        "PYTHON",      "RUBY", "SLURM",         "SPANK_",         "_SLURM",
    };
    if (!ioat_text_is_variable(name, length))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (length == strlen(names[i]) && memcmp(name, names[i], length) == 0)
            return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (starts_with(name, length, prefixes[i]))
            return false;
    return true;
}

static struct ioat_variable *find(struct ioat_job_env *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->variables[i].name, name) == 0)
            return &file->variables[i];
    return NULL;
}

// `value` is NULL when the variable is only watched.
static const char *take(struct ioat_job_env *file, char *name, char *value)
{
    if (!ioat_job_env_allows(name, strlen(name)))
        return "a variable's name is malformed or not allowed";
    if (value != NULL && !ioat_text_is_printable(value, strlen(value)))
        return "a variable's value is not printable";
    struct ioat_variable *known = find(file, name);
    if (known != NULL && known->value != NULL && value != NULL)
        return "a variable is set twice";
    if (known == NULL) {
        if (file->count == IOAT_JOB_ENV_VARIABLES)
            return "more than 64 variables";
        known = &file->variables[file->count++];
        *known = (struct ioat_variable){.name = name};
    }
    if (value != NULL)
        known->value = value;
    return NULL;
}

static const char *read_line(struct ioat_job_env *file, char *line, bool *job, bool *uid)
{
    if (strncmp(line, "job ", 4) == 0) {
        if (*job || !ioat_text_parse_u32(line + 4, strlen(line + 4), &file->job_id))
            return "the job's id is malformed or given twice";
        *job = true;
        return NULL;
    }
    if (strncmp(line, "uid ", 4) == 0) {
        if (*uid || !ioat_text_parse_u32(line + 4, strlen(line + 4), &file->uid))
            return "the uid is malformed or given twice";
        *uid = true;
        return NULL;
    }
    if (strncmp(line, "set ", 4) == 0) {
        char *sign = strchr(line + 4, '=');
        if (sign == NULL)
            return "a set line without \"=\"";
        *sign = '\0';
        return take(file, line + 4, sign + 1);
    }
    if (strncmp(line, "watch ", 6) == 0)
        return take(file, line + 6, NULL);
    if (strncmp(line, "tell ", 5) == 0) {
        if (file->tell != NULL || !ioat_text_is_printable(line + 5, strlen(line + 5)))
            return "what to tell is not printable or given twice";
        file->tell = line + 5;
        return NULL;
    }
    return "a line that is none of job, uid, set, watch and tell";
}

const char *ioat_job_env_parse(char *text, size_t length, struct ioat_job_env *file)
{
    bool job = false, uid = false, header = false;
    *file = (struct ioat_job_env){0};
    if (length > IOAT_JOB_ENV_MAX)
        return "larger than 32768 bytes";
    if (length == 0 || text[length - 1] != '\n')
        return "empty, or its last line is not complete";
    if (memchr(text, '\0', length) != NULL)
        return "a zero byte";
    text[length] = '\0';
    char *line = text, *end;
    while ((end = strchr(line, '\n')) != NULL) {
        if (end - line > IOAT_JOB_ENV_LINE_MAX)
            return "a line longer than 4096 bytes";
        *end = '\0';
        const char *wrong = NULL;
        if (header)
            wrong = read_line(file, line, &job, &uid);
        else if (strcmp(line, HEADER) != 0)
            wrong = "the first line is not \"io-autotune 1\"";
        if (wrong != NULL)
            return wrong;
        header = true;
        line = end + 1;
    }
    return job && uid ? NULL : "the job's id or the uid is missing";
}

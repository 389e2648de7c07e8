#include "stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void ioat_stamp_exit(struct ioat_stamp *stamp, int64_t now_ns, int wait_status)
{
    stamp->exited++;
    if (now_ns > stamp->end_ns)
        stamp->end_ns = now_ns;
    if (stamp->wait_status == 0)
        stamp->wait_status = wait_status;
    stamp->ended = stamp->exited >= stamp->tasks;
}

void ioat_stamp_name(const struct ioat_stamp *stamp, char name[IOAT_STAMP_NAME_SIZE])
{
    snprintf(name, IOAT_STAMP_NAME_SIZE, "step-%" PRIu32 ".stamp", stamp->step_id);
}

char *ioat_stamp_format(const struct ioat_stamp *stamp, const struct ioat_job_env *file,
                        size_t *length)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, length);
    if (stream == NULL)
        return NULL;
    fprintf(stream, "io-autotune-stamp 1\nstep %" PRIu32 "\nstart_ns %" PRId64 "\n", stamp->step_id,
            stamp->start_ns);
    if (stamp->ended)
        fprintf(stream, "end_ns %" PRId64 "\n", stamp->end_ns);
    fprintf(stream, "nodes %" PRIu32 "\ntasks %" PRIu32 "\nexited %" PRIu32 "\nwait_status %d\n",
            stamp->nodes, stamp->tasks, stamp->exited, stamp->wait_status);
    for (size_t i = 0; i < file->count; i++)
        fprintf(stream, "variable %s %s\n", file->variables[i].name,
                ioat_status_name(stamp->statuses[i]));
    if (fclose(stream) == 0)
        return text;
    free(text);
    return NULL;
}

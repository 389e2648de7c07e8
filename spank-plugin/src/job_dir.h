// Finds and reads the job's directory RUN/CLUSTER/NODE/JOBID, as root, trusting nothing on the way
// that root did not make.
#ifndef IOAT_JOB_DIR_H
#define IOAT_JOB_DIR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// Who must own everything below the run directory: root. Tests, which need not run as root, put
/// their own uid here.
extern uid_t ioat_trusted_uid;

/// Opens the job's directory. `cluster` may be NULL or forged: when it is no name, or there is no
/// such directory, every cluster's directory is searched. Returns a descriptor that is closed on
/// exec; or -1 with errno: ENOENT when the job has none, EEXIST when several clusters' directories
/// have one, EPERM when one on the way is a link, not a directory, or writable by others.
int ioat_job_dir_open(const char *run_dir, const char *cluster, const char *node, uint32_t job_id);

/// Reads a regular file of the directory into `text`, at most `size` bytes. Returns the length, or
/// -1 with errno: EPERM when its owner or mode is wrong or it is no regular file, EFBIG when it is
/// larger.
ssize_t ioat_job_dir_read(int dir_fd, const char *name, char *text, size_t size);

/// Creates or replaces a file, owned by root with mode 0400, by write and rename. Returns 0 or -1
/// with errno.
int ioat_job_dir_write(int dir_fd, const char *name, const char *text, size_t length);

#endif

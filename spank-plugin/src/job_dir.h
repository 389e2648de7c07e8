// Finds and reads the job's directory RUN/CLUSTER/NODE/JOBID as root; trusts only what root made.
#ifndef IOAT_JOB_DIR_H
#define IOAT_JOB_DIR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The owner of everything below the run directory: root, or in tests their own uid.
extern uid_t ioat_trusted_uid;

/// `cluster` may be NULL or forged: without a match every cluster's directory is searched. Returns
/// a close-on-exec descriptor, or -1 with errno: ENOENT without a directory, EEXIST when several
/// clusters have one, EPERM when a component is a link, no directory, or writable by others.
int ioat_job_dir_open(const char *run_dir, const char *cluster, const char *node, uint32_t job_id);

/// Returns the length, or -1 with errno: EPERM when owner, mode or type is wrong, EFBIG when the
/// file is larger than `size` bytes.
ssize_t ioat_job_dir_read(int dir_fd, const char *name, char *text, size_t size);

/// Writes a file of mode 0400 by write and rename. Returns 0, or -1 with errno.
int ioat_job_dir_write(int dir_fd, const char *name, const char *text, size_t length);

#endif

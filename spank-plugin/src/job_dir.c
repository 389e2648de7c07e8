#include "job_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

uid_t ioat_trusted_uid = 0;

// A host runs the slurmd of a few clusters; this bounds the search.
#define CLUSTERS_MAX 256

static int fail(int fd, int error)
{
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

static bool is_trusted(const struct stat *status, mode_t type)
{
    return (status->st_mode & S_IFMT) == type && status->st_uid == ioat_trusted_uid &&
           (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Closes `parent`.
static int descend(int parent, const char *name)
{
    struct stat status;
    if (parent < 0)
        return -1;
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int error = errno;
    close(parent);
    if (fd < 0)
        return fail(-1, error == ELOOP || error == ENOTDIR ? EPERM : error);
    if (fstat(fd, &status) != 0 || !is_trusted(&status, S_IFDIR))
        return fail(fd, EPERM);
    return fd;
}

static int open_below(int run_fd, const char *cluster, const char *node, const char *job)
{
    const int own = fcntl(run_fd, F_DUPFD_CLOEXEC, 0);
    return descend(descend(descend(own, cluster), node), job);
}

// Searches all clusters; ENOENT when none, EEXIST when several have the job.
static int search(int run_fd, const char *node, const char *job)
{
    int found = -1, failure = ENOENT;
    // Reading moves the position, so use another open file description.
    const int scan_fd = openat(run_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *scan = scan_fd < 0 ? NULL : fdopendir(scan_fd);
    if (scan == NULL)
        return fail(scan_fd, errno);
    const struct dirent *entry;
    for (int i = 0; i < CLUSTERS_MAX && (entry = readdir(scan)) != NULL; i++) {
        if (!ioat_text_is_component(entry->d_name))
            continue;
        const int fd = open_below(run_fd, entry->d_name, node, job);
        if (fd < 0) {
            if (errno != ENOENT)
                failure = errno;
        } else if (found >= 0) {
            close(fd);
            close(found);
            closedir(scan);
            return fail(-1, EEXIST);
        } else {
            found = fd;
        }
    }
    closedir(scan);
    return found >= 0 ? found : fail(-1, failure);
}

int ioat_job_dir_open(const char *run_dir, const char *cluster, const char *node, uint32_t job_id)
{
    char job[16];
    if (!ioat_text_is_component(node))
        return fail(-1, ENOENT);
    snprintf(job, sizeof job, "%" PRIu32, job_id);
    // The administrator may use a link here.
    const int run_fd = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run_fd < 0)
        return -1;
    int fd = -1;
    if (cluster != NULL && ioat_text_is_component(cluster))
        fd = open_below(run_fd, cluster, node, job);
    if (fd < 0)
        fd = search(run_fd, node, job);
    const int error = errno;
    close(run_fd);
    errno = error;
    return fd;
}

ssize_t ioat_job_dir_read(int dir_fd, const char *name, char *text, size_t size)
{
    struct stat status;
    size_t length = 0;
    // O_NONBLOCK: a FIFO must not block us.
    const int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail(-1, errno == ELOOP ? EPERM : errno);
    if (fstat(fd, &status) != 0 || !is_trusted(&status, S_IFREG))
        return fail(fd, EPERM);
    if (status.st_size > (off_t)size)
        return fail(fd, EFBIG);
    while (length < size) {
        const ssize_t got = read(fd, text + length, size - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(fd, errno);
        if (got == 0)
            break;
        length += (size_t)got;
    }
    close(fd);
    return (ssize_t)length;
}

static int write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        const ssize_t put = write(fd, text, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        text += put;
        length -= (size_t)put;
    }
    // slurmstepd has the user's umask by now.
    return fchmod(fd, S_IRUSR);
}

int ioat_job_dir_write(int dir_fd, const char *name, const char *text, size_t length)
{
    char draft[NAME_MAX + 1];
    const int needed = snprintf(draft, sizeof draft, ".%s.%ld", name, (long)getpid());
    if (needed < 0 || (size_t)needed >= sizeof draft)
        return fail(-1, ENAMETOOLONG);
    // An earlier process with this pid may have been killed before its rename.
    if (unlinkat(dir_fd, draft, 0) != 0 && errno != ENOENT)
        return -1;
    const int fd =
        openat(dir_fd, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR);
    if (fd < 0)
        return -1;
    int rc = write_all(fd, text, length);
    int error = errno;
    if (close(fd) != 0 && rc == 0) {
        rc = -1;
        error = errno;
    }
    if (rc == 0 && renameat(dir_fd, draft, dir_fd, name) != 0) {
        rc = -1;
        error = errno;
    }
    if (rc != 0) {
        unlinkat(dir_fd, draft, 0);
        errno = error;
    }
    return rc;
}

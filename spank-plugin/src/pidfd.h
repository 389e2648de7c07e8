// In its own file so that tests can replace it.
#ifndef IOAT_PIDFD_H
#define IOAT_PIDFD_H

#include <sys/types.h>

/// A close-on-exec descriptor that becomes readable when `pid` ends, or -1 with errno (ENOSYS
/// before Linux 5.3, EPERM in some sandboxes).
int ioat_pidfd_open(pid_t pid);

#endif

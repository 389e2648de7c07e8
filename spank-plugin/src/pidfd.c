#include "pidfd.h"

#include <sys/syscall.h>
#include <unistd.h>

int ioat_pidfd_open(pid_t pid)
{
    // glibc wraps it only since 2.36.
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

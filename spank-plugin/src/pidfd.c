#include "pidfd.h"

#include <sys/syscall.h>
#include <unistd.h>

int ioat_pidfd_open(pid_t pid)
{
    // glibc wraps it from 2.36 only.
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

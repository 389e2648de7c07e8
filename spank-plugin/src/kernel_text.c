#include "kernel_text.h"

#include <fcntl.h>
#include <unistd.h>

bool ioat_kernel_text(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t length = read(fd, text, size - 1);
    close(fd);
    if (length < 0)
        return false;
    text[length] = '\0';
    return true;
}

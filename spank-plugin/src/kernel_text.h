// Short texts that the kernel makes, of /proc and control groups.
#ifndef IOAT_KERNEL_TEXT_H
#define IOAT_KERNEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/// Reads a text, zero-terminated; what is longer is cut. Returns false where there is none to read.
bool ioat_kernel_text(const char *path, char *text, size_t size);

#endif

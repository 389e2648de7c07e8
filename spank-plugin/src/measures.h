// What a step's I/O came to: the text of step-STEPID.measures. The kernel adds what a process read,
// wrote and computed to its parent's when the parent waits for it, so that slurmstepd's own numbers
// hold those of all its tasks and their descendants. The value from before the tasks is taken away.
//
//     io-autotune-measures 1
//     step 4294967291
//     rchar 83900653            (of proc_pid_io(5): seven numbers)
//     ...
//     user_us 188000            (of getrusage(2): five numbers)
//     ...
//     io_stalled_us 91000       (of io.pressure, where the step has one: pressure.h)
#ifndef IOAT_MEASURES_H
#define IOAT_MEASURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IOAT_MEASURES_NAME_SIZE 32
#define IOAT_MEASURES_TEXT_SIZE 512

enum { IOAT_MEASURES_IO = 7, IOAT_MEASURES_COUNT = 12 };

/// In the order of the text's lines.
struct ioat_measures {
    uint64_t values[IOAT_MEASURES_COUNT];
    /// Of the whole step; a line more if it is known.
    bool has_stalled;
    uint64_t stalled_us;
};

/// Reads this process's numbers, as root: a false effective uid opens no /proc/self/io. Returns
/// false where the kernel does not tell them.
bool ioat_measures_read(struct ioat_measures *measures);

/// The seven numbers of /proc/PID/io. Pure; false where one is missing or is no number.
bool ioat_measures_parse_io(const char *text, struct ioat_measures *measures);

/// Takes away what was there before; never less than nothing.
void ioat_measures_subtract(struct ioat_measures *measures, const struct ioat_measures *before);

void ioat_measures_name(uint32_t step_id, char name[IOAT_MEASURES_NAME_SIZE]);

/// Returns the length.
size_t ioat_measures_format(const struct ioat_measures *measures, uint32_t step_id,
                            char text[IOAT_MEASURES_TEXT_SIZE]);

#endif

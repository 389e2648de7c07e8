// How long a step's tasks stood still for I/O: its control group's io.pressure, where there is one
// (the kernel's Documentation/accounting/psi.rst). Slurm's cgroup/v2 makes a group of each step,
// with slurmstepd in "slurm" below it and the tasks in "user" (src/plugins/cgroup/v2/cgroup_v2.c).
#ifndef IOAT_PRESSURE_H
#define IOAT_PRESSURE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/// The microseconds since the step began in which at least one of its processes waited for I/O.
/// hierarchy: where control groups of version 2 are mounted. Returns false where Slurm has
/// made none of this process's step, or the kernel does not tell.
bool ioat_pressure_read(const char *hierarchy, uint64_t *stalled_us);

/// The step's group, of the text of /proc/PID/cgroup of its slurmstepd. Pure; false for any other
/// process, and where the path is too long.
bool ioat_pressure_parse_cgroup(const char *text, char step[PATH_MAX]);

/// The number of the text of an io.pressure. Pure; false where it is missing or is no number.
bool ioat_pressure_parse(const char *text, uint64_t *stalled_us);

#endif

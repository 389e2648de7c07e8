"""On which processor a root's mount namespace is to be made.

Slurm's job_container/tmpfs binds a job's mount namespace, which the kernel refuses unless its
number is above that of the namespace in which it is bound (mnt_ns_loop of fs/namespace.c). Linux
6.18 numbers namespaces by processor, so that a later one may have a lower number: seen as "ns base
mount failed: Invalid argument" for about half of the jobs.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

NS_GET_MNTNS_ID = 0x8008B705
"""Its number, of linux/nsfs.h; 64 bits."""


def lowest() -> int | None:
    """Return the processor whose mount namespaces have the lowest numbers; none if not known."""
    numbers = {}
    for processor in os.sched_getaffinity(0):
        argv = ["taskset", "--cpu-list", str(processor), "unshare", "--mount"]
        argv += ["sh", "-c", "echo made; read -r _"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as made:
            assert made.stdout is not None
            made.stdout.readline()
            with Path(f"/proc/{made.pid}/ns/mnt").open("rb") as namespace:
                try:
                    number = fcntl.ioctl(namespace, NS_GET_MNTNS_ID, bytes(8))
                except OSError:
                    return None
            numbers[processor] = int.from_bytes(number, "little")
    return min(numbers, key=lambda processor: numbers[processor])

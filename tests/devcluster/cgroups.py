"""Control groups: whether jobs can be held to their memory, and what slurmd leaves of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

MOUNTPOINT = Path("/sys/fs/cgroup")
"""Where control groups of version 1 are mounted."""

_CONTROLLERS = ("freezer", "memory")
"""Used by proctrack/cgroup, and by task/cgroup with ``ConstrainRAMSpace``."""


def memory_problem(mountpoint: Path = MOUNTPOINT) -> str | None:
    """Return why jobs cannot be held to their memory on this host, or None if they can.

    A sentence for people: a test that needs it is skipped with it.
    """
    for controller in _CONTROLLERS:
        directory = mountpoint / controller
        if not (directory / "tasks").is_file():
            return f"no control groups of version 1 with '{controller}' in {mountpoint}"
        if not os.access(directory, os.W_OK):
            return f"{directory} cannot be written to"
    return None


def remove_leftovers(nodes: Iterable[str], mountpoint: Path = MOUNTPOINT) -> None:
    """Remove the groups that these nodes' slurmds have left; such as still hold a process stay."""
    for node in nodes:
        for group in mountpoint.glob(f"*/slurm_{node}"):
            # Children first; a group's files go with its directory.
            for directory, _names, _files in os.walk(group, topdown=False):
                try:
                    Path(directory).rmdir()
                except OSError:
                    continue

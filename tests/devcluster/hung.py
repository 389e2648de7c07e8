"""What a command that runs out of its time is doing, looked at before it is killed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from devcluster import process
from devcluster.errors import tail

_PROC = Path("/proc")
LOG_LINES = 40
"""How many of a log's last lines are shown."""


def doing(pid: int) -> str:
    """Return what a process and those below it do: thread by thread, as far as this user may see.

    Each with its state, what it waits for in the kernel, and its stack there.
    """
    return "\n".join(text for one in (pid, *process.descendants([pid])) for text in _process(one))


def tails(logs: Iterable[Path]) -> str:
    """Return the last lines of those logs that have any."""
    said = ((log, tail(log, LOG_LINES)) for log in logs)
    return "\n".join(
        line for log, lines in said if lines for line in (f"the last lines of {log}:", *lines)
    )


def _process(pid: int) -> list[str]:
    directory = _PROC / str(pid)
    line = _read(directory / "cmdline").replace("\0", " ").strip() or _read(directory / "comm")
    status = _read(directory / "status")
    parent = next((one.split()[1] for one in status.splitlines() if one.startswith("PPid:")), "?")
    said = [f"process {pid} below {parent}: {line}"]
    try:
        tasks = sorted((directory / "task").iterdir(), key=lambda task: int(task.name))
    except OSError:
        return [f"process {pid} has ended"]
    for task in tasks:
        # After the name, which can hold anything, the state is the first field.
        state = _read(task / "stat").rpartition(")")[2].split()[:1]
        waits = _read(task / "wchan") or "?"
        said.append(f"  thread {task.name}: state {''.join(state) or '?'}, waits in {waits}")
        said += [f"    {frame}" for frame in _read(task / "stack").splitlines()]
    return said


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace").strip()
    except OSError:
        return ""

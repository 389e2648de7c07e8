"""Errors of the development cluster: what was asked, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

LOG_LINES = 15
"""How many of a log's last lines an error shows."""


class ClusterError(Exception):
    """The cluster cannot do what was asked; the message is for people."""


class PartFailed(ClusterError):
    """A part of the cluster did not start, or died."""

    def __init__(self, part: str, problem: str, log: Path) -> None:
        """Name the ``part``, its ``problem``, and the ``log`` whose last lines are shown."""
        self.part = part
        self.log = log
        lines = tail(log)
        shown = "".join(f"  {line}\n" for line in lines) if lines else "  (the log is empty)\n"
        super().__init__(f"{part} {problem}. The last lines of {log}:\n{shown.rstrip()}")


class CommandFailed(ClusterError):
    """A command ended with an exit status other than zero, or not in time."""

    def __init__(
        self,
        argv: Sequence[str],
        status: int | None,
        stdout: str = "",
        stderr: str = "",
        doing: str = "",
    ) -> None:
        """Keep the command, its exit ``status`` (None: it ran out of time) and its output.

        ``doing`` is what it did when its time was over.
        """
        self.argv = list(argv)
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        how = "ran out of time" if status is None else f"ended with exit status {status}"
        output = (stderr.strip() or stdout.strip() or "(no output)")[-4000:]
        self.doing = doing
        super().__init__(f"'{' '.join(argv)}' {how}: {output}" + (doing and f"\n{doing}"))


def tail(path: Path, lines: int = LOG_LINES) -> list[str]:
    """Return the last ``lines`` lines of a file, or none if it cannot be read."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - 64 * 1024))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()[-lines:]

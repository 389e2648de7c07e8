"""What slurmd's log tells of how long jobs took to start and to end. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(r"\[(?P<at>[0-9T:.-]+)\] (?:\[(?P<step>[0-9]+)\.batch\] )?(?P<text>.*)")
_ASKED = "debug2: Start processing RPC: REQUEST_LAUNCH_PROLOG"
_STARTED = re.compile(r"task 0 \([0-9]+\) started")
_EXITED = re.compile(r"task 0 \([0-9]+\) exited")
_EPILOG = re.compile(r"debug: +completed epilog for jobid ([0-9]+)")


@dataclass
class Moments:
    """When things of one job happened, seconds; None where the log does not tell."""

    asked: float | None = None
    """slurmctld asks for the prolog."""
    started: float | None = None
    """The batch script runs."""
    exited: float | None = None
    """It has ended."""
    epilog: float | None = None
    """The epilog is over."""

    def start(self) -> float | None:
        """Return the milliseconds until the script starts."""
        return _milliseconds(self.asked, self.started)

    def end(self) -> float | None:
        """Return the milliseconds from the script's end to that of the epilog."""
        return _milliseconds(self.exited, self.epilog)


def _milliseconds(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else (end - begin) * 1e3


def read(lines: Iterable[str]) -> dict[int, Moments]:
    """Return the moments of each job of a slurmd at debug2 whose jobs run one after the other."""
    jobs: dict[int, Moments] = {}
    asked: float | None = None
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue
        at = datetime.datetime.fromisoformat(found["at"]).timestamp()
        text, step = found["text"], found["step"]
        if text.startswith(_ASKED):
            # The job that starts next tells whose it is.
            asked = at
        elif epilog := _EPILOG.match(text):
            jobs.setdefault(int(epilog[1]), Moments()).epilog = at
        elif step is not None and _STARTED.match(text):
            moments = jobs.setdefault(int(step), Moments())
            moments.asked, moments.started = asked, at
            asked = None
        elif step is not None and _EXITED.match(text):
            jobs.setdefault(int(step), Moments()).exited = at
    return jobs

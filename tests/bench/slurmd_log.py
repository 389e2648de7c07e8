"""What slurmd's log tells of how long jobs took to start and to end. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(r"\[(?P<at>[0-9T:.-]+)\] (?:\[(?P<step>[0-9]+)\.batch\] )?(?P<text>.*)")
_PROLOG = re.compile(r"debug: +Running spank/prolog for jobid \[([0-9]+)\]")
_CALLS = "calling /usr/sbin/slurmstepd spank prolog"
_STARTED = re.compile(r"task 0 \([0-9]+\) started")
_EXITED = re.compile(r"task 0 \([0-9]+\) exited")
_EPILOG = re.compile(r"debug: +completed epilog for jobid ([0-9]+)")


@dataclass
class Moments:
    """When things of one job happened, seconds; None where the log does not tell."""

    prolog: float | None = None
    """slurmd calls what runs SPANK's prolog."""
    started: float | None = None
    """The batch script runs."""
    exited: float | None = None
    """It has ended."""
    epilog: float | None = None
    """The epilog is over."""

    def start(self) -> float | None:
        """Return the milliseconds from the prolog to the script's start."""
        return _milliseconds(self.prolog, self.started)

    def end(self) -> float | None:
        """Return the milliseconds from the script's end to that of the epilog."""
        return _milliseconds(self.exited, self.epilog)


def _milliseconds(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else (end - begin) * 1e3


def read(lines: Iterable[str]) -> dict[int, Moments]:
    """Return the moments of each job of a slurmd at debug2 whose jobs run one after the other."""
    jobs: dict[int, Moments] = {}
    called: float | None = None
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue
        at = datetime.datetime.fromisoformat(found["at"]).timestamp()
        text, step = found["text"], found["step"]
        if _CALLS in text:
            # The next line of a prolog's own tells whose it is.
            called = at
        elif prolog := _PROLOG.match(text):
            jobs.setdefault(int(prolog[1]), Moments()).prolog = called
        elif epilog := _EPILOG.match(text):
            jobs.setdefault(int(epilog[1]), Moments()).epilog = at
        elif step is not None and _STARTED.match(text):
            jobs.setdefault(int(step), Moments()).started = at
        elif step is not None and _EXITED.match(text):
            jobs.setdefault(int(step), Moments()).exited = at
    return jobs

"""Measures one application: its study, then blocks of what is compared."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Any

from field_trial.jobs import Jobs
from field_trial.listing import Application, Setting, texts
from field_trial.records import Record, Run, Said, name_of


class TooManyFailures(Exception):
    """The first runs of a study all failed: the application does not run here."""


FIRST = 4
"""So many first runs must not all fail."""


def study(
    jobs: Jobs,
    application: Application,
    record: Record,
    runs: int,
    seconds: float,
    say: Callable[[str], None],
) -> None:
    """Submit the job again and again, and keep each run and what the study says after it."""
    deadline = time.monotonic() + seconds
    while len(record.study) < runs and time.monotonic() < deadline:
        run = jobs.run(application.accelerator)
        record.study.append(run)
        told = jobs.status(f"{application.name}.sh")
        record.said.append(said(len(record.study), told))
        say(_line(len(record.study), run))
        if len(record.study) == FIRST and not any(run.counted for run in record.study):
            raise TooManyFailures(run.verdict)


def blocks(
    jobs: Jobs,
    application: Application,
    record: Record,
    count: int,
    seconds: float,
    say: Callable[[str], None],
) -> None:
    """Run each of what is compared once in each block, in an order that is drawn.

    The product itself delivers it: the runs belong to an application of another name, which is
    pinned before each.
    """
    other = f"{application.name}-compared"
    option = f"{application.accelerator},app={other}"
    # The study has to be there before it can be pinned; a run that warms up is worth nothing else.
    jobs.run(option)
    settings = compared(application, record)
    draw = random.Random(application.name)
    deadline = time.monotonic() + seconds
    while len(record.blocks) < count and time.monotonic() < deadline:
        block: dict[str, Run] = {}
        for setting in draw.sample(settings, len(settings)):
            jobs.pin(other, setting)
            block[name_of(setting)] = jobs.run(option)
        record.blocks.append(block)
        times = ", ".join(f"{name} {run.elapsed or 0:.2f} s" for name, run in block.items())
        say(f"  block {len(record.blocks)}: {times}")


def compared(application: Application, record: Record) -> list[Setting]:
    """Return the default, the grid, and what the study has chosen."""
    settings: list[Setting] = [{}, *application.grid]
    chosen = record.said[-1].chosen if record.said else {}
    return settings if chosen in settings else [*settings, chosen]


def said(runs: int, told: dict[str, Any]) -> Said:
    """Return what ``io-autotune status --json`` says of a study."""
    gain = (told.get("assessment") or {}).get("gain") or {}
    return Said(
        runs=runs,
        phase=told["phase"],
        why=str(told["why"]),
        verdict=gain.get("verdict", "undecided"),
        low=gain.get("low"),
        high=gain.get("high"),
        chosen=texts(told["differs"] or {}),
        next=json.dumps(told.get("next")),
    )


def _line(number: int, run: Run) -> str:
    elapsed = "-" if run.elapsed is None else f"{run.elapsed:.2f} s"
    what = name_of(run.setting) if run.counted else f"does not count: {run.verdict}"
    return f"  {number:3} {run.role:10} {elapsed:>8}  {what}"

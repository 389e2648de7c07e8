"""Submits a user's job again and again, as the user would, and follows its runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from devcluster import Cluster

Run = dict[str, Any]
"""One run as ``io-autotune history --json`` has it."""

LOOK_SECONDS = 1.0
"""How often the display looks for news; the jobs themselves follow one another without it."""


@dataclass(frozen=True)
class Goal:
    """When the campaign is over.

    Fixed before the first run: stopping when the gain looks good would make it look better than
    it is.
    """

    tuned: int
    """Runs made after the choice."""
    controls: int
    """Control runs interleaved with them."""
    seconds: float
    """No job is submitted later than this after the start."""
    of_one_choice: bool = False
    """Only runs since the latest change of what was chosen are enough: those that are compared."""
    claim: bool = False
    """A claim ends it too: that holds at all looks together, so whoever waits for it makes nothing
    look better."""


class Campaign:
    """One user's job on one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        user: str,
        script: Path,
        say: Callable[[str], None],
        option: str = "--io-autotune",
    ) -> None:
        """``script`` is the job script; its name is the application's name."""
        self._cluster = cluster
        self._user = user
        self._script = script
        self._application = script.name
        self._say = say
        self._option = option
        self._epoch: int | None = None
        self.claimed: int | None = None
        """After so many runs a gain or a loss was claimed first."""

    def start_afresh(self) -> None:
        """Leave what a demo that ran before has made: its study is reset, and teaches nobody."""
        self._epoch = self._fresh_epoch()

    def run(self, goal: Goal) -> list[Run]:
        """Submit until the goal is reached or the time is over; return the campaign's runs."""
        began = time.monotonic()
        if self._epoch is None:
            self.start_afresh()
        shown = 0
        while True:
            queued = self._queued()
            claimed = self.claimed is None and shown > 0 and self._claims()
            runs = self._runs()
            shown = self._show(runs, shown)
            if claimed:
                self.claimed = shown
                self._say(f"{shown:4}  a difference is claimed: it can be told from noise")
            over = reached(goal, runs) or (goal.claim and self.claimed is not None)
            if over or time.monotonic() - began > goal.seconds:
                if queued == 0 and shown == len(runs):
                    return runs
            else:
                # One runs and one waits behind it: jobs of one name, one after the other.
                for _ in range(2 - queued):
                    self._user_runs(
                        "sbatch", "--dependency=singleton", self._option, self._script.name
                    )
            time.sleep(LOOK_SECONDS)

    def _fresh_epoch(self) -> int:
        studies = json.loads(self._user_runs("io-autotune", "status", self._application, "--json"))
        if not studies:
            return 1
        self._say(f"{self._application} was tuned before; its study starts afresh in a new epoch")
        study = json.loads(
            self._user_runs(
                "io-autotune", "reset", str(studies[0]["study_id"]), "--why", "a new demo", "--json"
            )
        )
        return int(study["epoch"])

    def _claims(self) -> bool:
        text = self._user_runs("io-autotune", "status", self._application, "--json")
        return any(study["gain"] and study["gain"]["resolved"] for study in json.loads(text))

    def _runs(self) -> list[Run]:
        text = self._user_runs(
            "io-autotune", "history", self._application, "--limit", "1000", "--json"
        )
        return [run for run in json.loads(text) if run["epoch"] == self._epoch]

    def _queued(self) -> int:
        return len(self._user_runs("squeue", "--noheader", "--me", "--format=%i").split())

    def _show(self, runs: list[Run], shown: int) -> int:
        """Print the runs that have their verdict since the last look, in order."""
        for number, run in enumerate(runs[shown:], start=shown + 1):
            if run["state"] == "in_flight":
                return number - 1
            self._say(line(number, run))
        return len(runs)

    def _user_runs(self, *argv: str) -> str:
        return self._cluster.run_as(self._user, list(argv)).stdout


def found(runs: list[Run]) -> int | None:
    """Return after how many runs one took at most a tenth more than the mean of what is chosen.

    None before anything is chosen.
    """
    tuned = [run for run in runs if run["role"] == "settled"]
    if not tuned:
        return None
    chosen = tuned[-1]["parametrization"]
    times = [run["elapsed"] for run in runs if run["parametrization"] == chosen and run["elapsed"]]
    near = 1.1 * fmean(times)
    quick = (n for n, run in enumerate(runs, start=1) if run["elapsed"] and run["elapsed"] <= near)
    return next(quick)


def reached(goal: Goal, runs: list[Run]) -> bool:
    """Whether the runs that were started are enough, provided they count."""
    settled = [run for run in runs if run["phase"] == "settled" and run["state"] != "not_counted"]
    if goal.of_one_choice:
        settled = settled[_latest_choice(settled) :]
    tuned = sum(run["role"] == "settled" for run in settled)
    controls = sum(run["role"] == "control" for run in settled)
    return tuned >= goal.tuned and controls >= goal.controls


def _latest_choice(settled: list[Run]) -> int:
    """Return the place of the first run of what was chosen last."""
    tuned = [place for place, run in enumerate(settled) if run["role"] == "settled"]
    first = len(settled)
    for place in reversed(tuned):
        if settled[place]["parametrization"] != settled[tuned[-1]]["parametrization"]:
            break
        first = place
    return first


def line(number: int, run: Run) -> str:
    """Return one run as a line of progress."""
    elapsed = f"{run['elapsed']:7.3f} s" if run["elapsed"] is not None else "        -"
    differs = " ".join(f"{name}={value}" for name, value in run["differs"].items())
    what = differs or "the default"
    if run["state"] == "not_counted":
        what = f"does not count: {run['verdict']}"
    return f"{number:4}  {run['phase']:8}  {run['role']:10} {elapsed}  {what}"

"""Makes the runs through sbatch, plugin, helper and service, with all that elapsed then includes.

Each parametrization is an application of its own with a pinned study. So a block's jobs can all
wait in Slurm's queue and follow one another undisturbed, and the service delivers each
parametrization, checks that it was applied in every step, and judges the run.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from devcluster import Cluster, ClusterError

from measure.journal import Journal, Measured
from measure.plan import Plan, Planned, Point, Value

USER = "io-alice"
ADMIN = "root"
PARTITION = "main"
SCRIPT = "measure.sh"
OUTPUT = "measure.out"

LOOK_SECONDS = 5.0
"""How often the campaign looks for news; the jobs follow one another without it. Each look costs
some hundredths of a second of one core."""
FEW = 40
"""How many runs such a look usually asks for; in five seconds fewer end."""
PATIENCE_SECONDS = 180.0
"""How long there may be no news from jobs that are queued."""
LIMIT_MINUTES = 2
"""The jobs' time limit: a run that hangs ends, and does not count."""
ATTEMPTS = 3
"""How often a run is made that does not count."""

Run = dict[str, Any]
"""One run as ``io-autotune history --json`` has it."""


class Campaign:
    """A plan on a cluster that is up."""

    def __init__(
        self, cluster: Cluster, plan: Plan, journal: Journal, say: Callable[[str], None]
    ) -> None:
        """``say`` gets a line at each step."""
        self._cluster = cluster
        self._plan = plan
        self._points: Sequence[Point] = plan.points
        self._journal = journal
        self._say = say

    def run(self) -> None:
        """Makes the missing runs by block; ClusterError if one never counts or jobs do not end."""
        self._clear()
        self._prepare()
        for number in range(self._plan.blocks):
            self._block(number)

    def _block(self, number: int) -> None:
        reasons: Mapping[str, str] = {}
        for _ in range(ATTEMPTS):
            missing = self._journal.missing(self._plan.block(number))
            if not missing:
                return
            began = time.monotonic()
            self._say(f"block {number + 1} of {self._plan.blocks}: {len(missing)} runs")
            reasons = self._make(missing)
            self._journal.sync()
            self._say(f"  took {time.monotonic() - began:.0f} s")
        if self._journal.missing(self._plan.block(number)):
            reason = "; ".join(f"{name}: {why}" for name, why in sorted(reasons.items()))
            raise ClusterError(
                f"block {number + 1} was made {ATTEMPTS} times, and these runs do not count:"
                f" {reason}. See {self._cluster.paths.home(USER) / OUTPUT}"
            )

    def _make(self, runs: Sequence[Planned]) -> dict[str, str]:
        """Queues the jobs and records the runs that count; returns why others do not."""
        # Submission takes machine time, so no job starts before its end.
        self._partition("DOWN")
        jobs = {self._submit(self._application(planned.place), SCRIPT): planned for planned in runs}
        self._partition("UP")
        refused: dict[str, str] = {}
        news = time.monotonic()
        newest = FEW
        while jobs:
            time.sleep(LOOK_SECONDS)
            judged = [
                run
                for run in self._history(newest)
                if run["job_id"] in jobs and run["state"] != "in_flight"
            ]
            # If more ended than this look shows, the next one shows them all.
            newest = FEW if judged else len(runs)
            measured = []
            for run in judged:
                planned = jobs.pop(run["job_id"])
                wrong = self._wrong(run, planned)
                if wrong is None:
                    measured.append(
                        Measured(
                            planned,
                            run["job_id"],
                            datetime.fromisoformat(run["started_at"]),
                            run["elapsed"],
                        )
                    )
                else:
                    refused[run["application"]] = wrong
            self._journal.append(measured)
            if judged:
                news = time.monotonic()
            elif time.monotonic() - news > PATIENCE_SECONDS:
                raise ClusterError(
                    f"{len(jobs)} jobs are queued, and none has ended for"
                    f" {PATIENCE_SECONDS:.0f} s: see the logs in {self._cluster.paths.log}"
                )
        return refused

    def _wrong(self, run: Run, planned: Planned) -> str | None:
        """Why a finished run does not belong in the table."""
        if run["state"] != "counted":
            return f"{run['verdict']} (job {run['job_id']})"
        wanted = self._plan.named(self._points[planned.place])
        given = {name: run["parametrization"][name] for name in wanted}
        others = {name for name in run["differs"] if name not in wanted}
        if run["role"] != "pinned" or given != wanted or others:
            return f"ran as {run['role']} with {run['parametrization']} (job {run['job_id']})"
        return None

    def _prepare(self) -> None:
        paths = self._cluster.paths
        (paths.home(USER) / SCRIPT).write_text(self._plan.workload.script(str(paths.scratch)))
        # A study begins with its first run, in the context of the later ones.
        studies = self._studies()
        new = [name for place in self._all() if (name := self._application(place)) not in studies]
        if new:
            self._say(f"{len(new)} studies are begun, each with a run of 'true'")
            for name in new:
                self._submit(name, "--wrap=true")
            self._await_quiet()
            studies = self._studies()
        pinned = 0
        for place in self._all():
            name = self._application(place)
            if name not in studies:
                raise ClusterError(
                    f"{name} has no study after its first run: see the logs in {paths.log}"
                )
            wanted = self._plan.named(self._points[place])
            if _pin_of(studies[name], wanted) != wanted:
                values = [f"{name}={value}" for name, value in wanted.items()]
                number = str(studies[name]["study_id"])
                self._tuner("pin", number, *values, "--why", "an exhaustive measurement")
                pinned += 1
        if pinned:
            self._say(f"{pinned} studies are pinned, each to its parametrization")

    def _all(self) -> range:
        return range(len(self._points))

    def _application(self, place: int) -> str:
        return f"{self._plan.accelerator}-{place:03}"

    def _studies(self) -> dict[str, Any]:
        return {study["application"]: study for study in json.loads(self._tuner("status"))}

    def _submit(self, application: str, *job: str) -> int:
        """Queues a job that has the node to itself; jobs run one by one, in order."""
        accelerator = self._plan.accelerator
        argv = [
            "sbatch",
            "--parsable",
            "--exclusive",
            f"--ntasks={self._plan.workload.ranks}",
            f"--time={LIMIT_MINUTES}",
            f"--output={OUTPUT}",
            "--open-mode=append",
            f"--io-autotune={accelerator},app={application}",
            *job,
        ]
        return int(self._cluster.run_as(USER, argv).stdout.split(";")[0])

    def _partition(self, state: str) -> None:
        argv = ["scontrol", "update", f"PartitionName={PARTITION}", f"State={state}"]
        self._cluster.run_as(ADMIN, argv)

    def _clear(self) -> None:
        """Cancels what an interrupted campaign left queued."""
        self._cluster.run_as(ADMIN, ["scancel", f"--user={USER}"])
        self._partition("UP")
        self._await_quiet()

    def _await_quiet(self) -> None:
        queued = ""
        news = time.monotonic()
        while True:
            argv = ["squeue", "--noheader", f"--user={USER}", "--format=%i"]
            left = self._cluster.run_as(ADMIN, argv).stdout
            if not left:
                return
            if left != queued:
                queued, news = left, time.monotonic()
            elif time.monotonic() - news > PATIENCE_SECONDS:
                raise ClusterError(
                    f"jobs do not end: {' '.join(left.split())};"
                    f" see the logs in {self._cluster.paths.log}"
                )
            time.sleep(1.0)

    def _history(self, limit: int) -> list[Run]:
        return json.loads(self._tuner("history", "--limit", str(limit)))

    def _tuner(self, *arguments: str) -> str:
        return self._cluster.run_as(ADMIN, ["io-autotune", *arguments, "--json"]).stdout


def _pin_of(study: Mapping[str, Any], names: Mapping[str, Value]) -> dict[str, Value] | None:
    pin = study["pin"]
    return None if pin is None else {name: pin["parametrization"].get(name) for name in names}


def machine(cluster: Cluster) -> dict[str, str]:
    """The properties of the machine that influence the runs."""

    def first_line(*argv: str) -> str:
        return cluster.run_as(ADMIN, argv).stdout.split("\n", 1)[0].strip()

    return {
        "cores": first_line("nproc"),
        "memory": first_line("sh", "-c", "grep MemTotal /proc/meminfo").split(":")[1].strip(),
        "kernel": first_line("uname", "--kernel-release", "--machine"),
        "file_system": first_line(
            "findmnt", "--noheadings", "--output=FSTYPE", "--target", str(cluster.paths.scratch)
        ),
        "mpich": first_line("dpkg-query", "--show", "--showformat=${Version}", "mpich"),
        "slurm": first_line("sinfo", "--version").split()[-1],
        "date": first_line("date", "--utc", "+%Y-%m-%d"),
    }

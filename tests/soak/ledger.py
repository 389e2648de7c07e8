"""Slurm's own record: what squeue has said of every job, kept beyond what Slurm remembers."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from os import waitstatus_to_exitcode

from devcluster.errors import ClusterError
from harness import ENDED, ROOT, Site

from soak.background import running

EVERY_SECONDS = 1.0
"""How often Slurm is asked; it forgets jobs after minutes."""
_COLUMNS = "JobID:.20,State:.32,RestartCnt:.12,StartTime:.24,EndTime:.24,exit_code:.12,Name:.40"


@dataclass(frozen=True)
class Row:
    """What Slurm last said of a job."""

    job_id: int
    state: str
    restarts: int
    began: float
    """Seconds since 1970, as its end; 0 where it has none."""
    ended: float
    exit_code: int
    """What the script ended with; less than 0 for a signal."""
    name: str

    @property
    def over(self) -> bool:
        """Whether it has ended, its epilog included."""
        return self.state in ENDED


def parse(text: str) -> list[Row]:
    """Return the rows that squeue printed."""
    rows = []
    for line in text.splitlines():
        job_id, state, restarts, began, ended, exit_code, name = line.split()
        rows.append(
            Row(
                int(job_id),
                state,
                int(restarts),
                float(began) if began.isdigit() else 0.0,
                float(ended) if ended.isdigit() else 0.0,
                waitstatus_to_exitcode(int(exit_code)),
                name,
            )
        )
    return rows


_LAUNCH = re.compile(r"\] Launching batch job (\d+) for UID ")


def launches(logs: Iterable[str]) -> Counter[int]:
    """Return how often each job was launched, by what slurmds have logged."""
    return Counter(int(found[1]) for text in logs for found in _LAUNCH.finditer(text))


# "JobId=915", or of an array "JobId=904_5(904)": the id in brackets is the job's own.
_ID = r"JobId=(?:\d+_\d+\()?(\d+)"
_EVENT = re.compile(
    rf"(?P<launched>(?:Allocate|Started) {_ID})|(?P<done>_job_complete: {_ID}\)? done)"
    rf"|(?P<running>Recovered {_ID}\)? StepId=)"
)


def forgotten_ends(slurmctld_log: str) -> set[int]:
    """Return the jobs whose end a slurmctld that was killed has forgotten, by slurmctld's own log.

    The next one recovers them with a step that runs (step_mgr.c, load_step_state), although they
    were done: they stay until their node says that it knows nothing of them, or until their time
    limit, and end a second time.
    """
    done, forgotten = set(), set()
    for event in _EVENT.finditer(slurmctld_log):
        job_id = int(next(filter(None, event.groups()[1::2])))
        if event["done"]:
            done.add(job_id)
        elif event["launched"]:
            done.discard(job_id)
        elif job_id in done:
            forgotten.add(job_id)
    return forgotten


class Ledger:
    """The latest row of every job, and what Slurm itself has lost."""

    def __init__(self, site: Site) -> None:
        """Ask the slurmctld of this cluster."""
        self._site = site
        self._rows: dict[int, Row] = {}
        self._returned: set[int] = set()
        self._vanished: set[int] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()

    def rows(self) -> dict[int, Row]:
        """Return the latest row of every job."""
        with self._lock:
            return dict(self._rows)

    def returned(self) -> set[int]:
        """Return the ids that a killed Slurm has given to two jobs."""
        with self._lock:
            return set(self._returned)

    def vanished(self) -> set[int]:
        """Return the jobs that Slurm has forgotten before their end."""
        with self._lock:
            return set(self._vanished)

    def look(self) -> bool:
        """Ask Slurm, and return whether it has answered."""
        argv = ["squeue", "--all", "--array", "--noheader", "--states=all", f"--Format={_COLUMNS}"]
        try:
            done = self._site.cluster.run_as(
                ROOT, argv, env={"SLURM_TIME_FORMAT": "%s"}, check=False, timeout=30.0
            )
        except ClusterError:
            return False
        if done.returncode != 0:
            return False
        rows = {row.job_id: row for row in parse(done.stdout)}
        with self._lock:
            for row in rows.values():
                known = self._rows.get(row.job_id)
                if known is not None and known.name != row.name:
                    self._returned.add(row.job_id)
                self._rows[row.job_id] = row
                self._vanished.discard(row.job_id)
            self._vanished |= {
                job_id for job_id, row in self._rows.items() if not row.over and job_id not in rows
            }
        return True

    def kept(self) -> AbstractContextManager[None]:
        """Keep it for a while."""
        return running(self._over, self._keep)

    def _keep(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            self.look()

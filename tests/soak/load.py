"""The load: submissions by several users at once, some in bursts."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from devcluster.errors import ClusterError
from harness import Site

from soak.background import running
from soak.jobs import Submission
from soak.ledger import Ledger

SUBMITTERS = 2
PAUSE = 0.6
"""Seconds between two submissions of one submitter, on the average: operations are to find jobs at
every point of their lives, and jobs are to find operations of every kind."""
QUEUE = 30
"""Jobs that have not ended, at most."""
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Refusal:
    """An sbatch that failed."""

    submission: Submission
    began: float
    """Seconds since 1970, as its end."""
    ended: float
    stderr: str


class Load:
    """Submits until so many jobs were accepted."""

    def __init__(
        self, site: Site, ledger: Ledger, submissions: Sequence[Submission], jobs: int, seed: int
    ) -> None:
        """Submit ``submissions`` in their order, until they make ``jobs`` jobs."""
        self._chance = random.Random(f"load {seed}")
        self._site = site
        self._ledger = ledger
        self._left = iter(submissions)
        self._jobs = jobs
        self._accepted = 0
        self._given: dict[str, Submission] = {one.name: one for one in submissions}
        self._refusals: list[Refusal] = []
        self._ids: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._running = SUBMITTERS

    @property
    def accepted(self) -> int:
        """How many jobs were accepted."""
        return self._accepted

    def submissions(self) -> dict[str, Submission]:
        """Return all submissions by name."""
        return self._given

    def returned(self) -> set[int]:
        """Return the ids that sbatch has printed for two submissions."""
        with self._lock:
            return {job_id for job_id, times in self._ids.items() if times > 1}

    def refusals(self) -> list[Refusal]:
        """Return the submissions that failed."""
        with self._lock:
            return list(self._refusals)

    def done(self) -> bool:
        """Tell whether nobody submits any more."""
        return self._running == 0

    def on(self) -> AbstractContextManager[None]:
        """Submit meanwhile."""
        return running(self._over, *[self._submit_all] * SUBMITTERS)

    def _submit_all(self) -> None:
        try:
            while not self._over.is_set():
                if self._is_full():
                    self._over.wait(LOOK_SECONDS)
                    continue
                with self._lock:
                    one = next(self._left, None) if self._accepted < self._jobs else None
                if one is None:
                    return
                self._submit(one)
                self._over.wait(self._chance.expovariate(1 / PAUSE))
        finally:
            with self._lock:
                self._running -= 1

    def _is_full(self) -> bool:
        # Not those accepted less those ended: a slurmctld that is killed forgets some.
        rows = self._ledger.rows()
        vanished = self._ledger.vanished()
        waiting = sum(not row.over and job_id not in vanished for job_id, row in rows.items())
        return waiting >= QUEUE

    def _submit(self, one: Submission) -> None:
        began = time.time()
        try:
            done = self._site.try_sbatch(one.body(), *one.options(), user=one.user, env=one.env())
            failed = None if done.returncode == 0 else done.stderr
        except ClusterError as error:
            failed = str(error)
        with self._lock:
            if failed is None:
                self._accepted += one.tasks
                self._ids[int(done.stdout.split(";")[0])] += 1
            else:
                self._refusals.append(Refusal(one, began, time.time(), failed))

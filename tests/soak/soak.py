"""A soak: the load, the operations and the checks, on a cluster of its own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from devcluster import command, files
from harness import ALICE, BATCH_START_SECONDS, BOB, ROOT, Site, await_seconds, await_true
from outages import small_spool

from soak import jobs, operations, store
from soak.actor import Actor, Done
from soak.checking import Checker
from soak.facts import Facts, JobFacts, Outage
from soak.helpers import Watch
from soak.invariants import INVARIANTS
from soak.ledger import Ledger, Row, forgotten_ends, launches
from soak.load import Load
from soak.page import Outcome

REST_SECONDS = 420.0
"""How long all may take to come to rest: a job that its script does not end has five minutes."""
SLURMS_OWN = "Duplicate jobid"
"""Why slurmctld drains a node on which a job runs whose id it has given again."""
DRAINED_BY_SLURM = "to be resumed"
"""The state of such a node: no violation."""
HELD_BY_SLURM = "launch failed requeued held"
"""Why slurmctld holds a job that it could not launch."""
SPARE = 1.5
"""More submissions than needed, because some are refused while Slurm is away."""
NODE_TOML = f"""
[exclusive]
cpus = 8
partitions = ["main"]

[[settings.allow]]
kind = "sysctl"
name = "{jobs.SETTING}"
min = 1
max = 1000
"""


@contextmanager
def prepared(site: Site) -> Iterator[None]:
    """Give the spool a small file system of its own, and the nodes a setting to change."""
    accelerator = Path(__file__).with_name("soak-net.toml").read_bytes()
    files.write(site.paths.accelerators / "soak-net.toml", accelerator, mode=0o644)
    files.write(site.paths.etc / "node.toml", NODE_TOML, mode=0o644)
    for user in (ALICE, BOB):
        site.cluster.run_as(user, ["mkdir", "-p", "soak"])
    with small_spool(site):
        site.cluster.revive()
        yield
    # What has stayed behind is a violation already.
    site.remove_job_directories()


class Soak:
    """One soak."""

    def __init__(self, site: Site, seed: int, count: int, say: Callable[[str], None]) -> None:
        """Let ``count`` jobs run under the operations of this seed; ``say`` hears a line each."""
        self._site = site
        self._seed = seed
        self._nodes = len(site.cluster.node_states())
        self._say = say
        self._ledger = Ledger(site)
        submissions = jobs.generated(seed, int(count * SPARE), [ALICE, BOB])
        self._load = Load(site, self._ledger, submissions, count, seed)
        self._watch = Watch(site.paths.bin / "io-autotune-node")
        self._actor = Actor(site, seed)
        self._setting = self._setting_now()
        self._missed_from: float | None = None
        self._drained_by_slurm = 0
        self._held_by_slurm = 0
        self._outputs: dict[tuple[int, int], str] = {}
        self.checker = Checker(INVARIANTS)
        self.facts: Facts | None = None
        self.seconds = 0.0

    def run(self) -> None:
        """Do it all; what was violated is in the checker."""
        began = time.monotonic()
        self._site.introduce_nodes()
        with self._watch.watching(), self._ledger.kept():
            try:
                with self._load.on():
                    self._operate()
                self._come_to_rest()
            finally:
                self.seconds = time.monotonic() - began
            self._check("at the end", at_end=True)

    def outcome(self) -> Outcome:
        """Return what the soak was."""
        done = [(one.operation.kind, one.operation.during) for one in self._actor.done]
        version = command.run(["slurmctld", "-V"]).stdout.split()[-1]
        hit = sum(len(one.hits) for one in self._actor.done)
        proxied = self._actor.proxied
        return Outcome(
            seed=self._seed,
            version=version,
            nodes=self._nodes,
            seconds=self.seconds,
            operations=done,
            hit=hit,
            proxied=proxied,
            drained_by_slurm=self._drained_by_slurm,
            held_by_slurm=self._held_by_slurm,
        )

    def _operate(self) -> None:
        """Perform operations for as long as there is load."""
        # More than any load lasts for: a hundred a minute could not be done.
        endless = operations.generated(self._seed, 10_000, self._nodes)
        for number, operation in enumerate(endless, start=1):
            if self._load.done():
                return
            await_seconds(operation.pause)
            self._say(f"{number}: {operation.told()}; {self._load.accepted} jobs submitted")
            done = self._actor.perform(operation)
            self._have_missing_jobs_noticed(done)
            self._check(f"after operation {number}, {operation.told()}", at_end=False)

    def _have_missing_jobs_noticed(self, done: Done) -> None:
        """Some time after a kill, have slurmctld notice the jobs that are on no node.

        A slurmctld that was killed has forgotten their end; a slurmd that was killed has lost their
        launch. It would believe in them until their limit, and give their nodes to no other
        meanwhile.
        """
        if done.kinds & {"kill slurmctld", "kill slurmd"}:
            self._missed_from = time.monotonic() + BATCH_START_SECONDS
        elif self._missed_from is not None and self._missed_from < time.monotonic():
            self._site.register_nodes()
            self._missed_from = None

    def _put_right(self) -> None:
        """Release what Slurm holds because it could not launch it, and resume what it has drained.

        A slurmctld that was killed has forgotten up to five seconds (SAVE_MAX_WAIT, its
        state_save.c). It gives a job's id again, and drains the node on which that job still runs.
        """
        for node, state in self._node_states().items():
            if state == DRAINED_BY_SLURM:
                resume = ["scontrol", "update", f"NodeName={node}", "State=RESUME"]
                self._site.cluster.run_as(ROOT, resume)
                self._drained_by_slurm += 1
        argv = ["squeue", "--noheader", "--array", "--states=PENDING", "--format=%i|%r"]
        done = self._site.cluster.run_as(ROOT, argv, check=False)
        for job, reason in (line.split("|", 1) for line in done.stdout.splitlines()):
            if reason.replace("_", " ") == HELD_BY_SLURM:
                self._site.cluster.run_as(ROOT, ["scontrol", "release", job], check=False)
                self._held_by_slurm += 1

    def _check(self, when: str, *, at_end: bool) -> None:
        self._put_right()
        self.facts = self._gather()
        for violation in self.checker.check(self.facts, when, at_end=at_end):
            self._say(f"VIOLATED {when}: {violation}")

    def _come_to_rest(self) -> None:
        """Wait until no job, no report and no verdict is under way."""
        argv = ["squeue", "--noheader", "--format=%A"]

        def is_idle() -> bool:
            self._put_right()
            return not self._site.cluster.run_as(ROOT, argv).stdout

        if self._missed_from is not None:
            await_seconds(max(0.0, self._missed_from - time.monotonic()))
            self._site.register_nodes()
        await_true("the queue to be empty", is_idle, REST_SECONDS)
        # Whatever a killed helper has left changed, the next job's hooks put back.
        job = self._site.sbatch("true", "--nodelist=n1", "--output=/dev/null")
        self._site.ended(job)
        await_true("the reports to be delivered", lambda: not self._spooled(), REST_SECONDS)
        await_true("Slurm to answer", self._ledger.look)

        def judged() -> bool:
            runs = store.stored(self._site).runs
            return not any(run.state == "in_flight" for run in runs)

        # What an epilog that had no helper has left, the timer's pass finds.
        for what, holds in (
            ("the launches that were not reported", lambda: not self._site.job_directories()),
            ("the verdicts", judged),
        ):
            try:
                await_true(what, holds, REST_SECONDS)
            except AssertionError as error:
                # The last check says which.
                self._say(str(error))

    def _spooled(self) -> list[str]:
        spool = self._site.paths.plugin_spool
        on_disk = (path for path in spool.iterdir() if path.suffix == ".json")
        return sorted(path.name for path in (*on_disk, *self._site.in_memory()))

    def _gather(self) -> Facts:
        rows = self._ledger.rows()
        stored = store.stored(self._site)
        runs = {(run.job_id, run.restarts): run for run in stored.runs}
        submissions = self._load.submissions()
        known = [
            JobFacts(
                row,
                submissions[row.name],
                self._output(row),
                runs.get((row.job_id, row.restarts)),
            )
            for row in rows.values()
            if row.name in submissions
        ]
        return Facts(
            jobs=known,
            stored=stored,
            nodes=self._node_states(),
            lives=self._watch.lives(),
            outages=[_outage(done) for done in self._actor.done],
            returned=self._ledger.returned() | self._load.returned() | self._forgotten_ends(),
            twice=self._launched_twice(rows),
            vanished=self._ledger.vanished(),
            refusals=[(one.began, one.ended, one.stderr) for one in self._load.refusals()],
            setting=(self._setting, self._setting_now()),
            left=self._left(),
        )

    def _launched_twice(self, rows: Mapping[int, Row]) -> set[int]:
        """Return the jobs that were launched once more than they were requeued.

        A slurmctld that was killed has forgotten that it had launched a job, and does so again.
        """
        logs = self._site.paths.log.glob("slurmd-*.log")
        launched = launches(path.read_text(encoding="utf-8", errors="replace") for path in logs)
        return {job_id for job_id, row in rows.items() if launched[job_id] > row.restarts + 1}

    def _forgotten_ends(self) -> set[int]:
        log = self._site.paths.log / "slurmctld.log"
        return forgotten_ends(log.read_text(encoding="utf-8", errors="replace"))

    def _node_states(self) -> dict[str, str]:
        """Return each node's state, and why it is drained where it is."""
        argv = ["sinfo", "--noheader", "--Node", "--partition=main", "--format=%N|%T|%E"]
        text = self._site.cluster.run_as(ROOT, argv).stdout
        states = {}
        for node, state, reason in (line.split("|", 2) for line in text.splitlines()):
            states[node] = state
            if state.startswith("drain") and reason == SLURMS_OWN:
                states[node] = DRAINED_BY_SLURM
            elif "drain" in state:
                states[node] = f"{state}: {reason}"
        return states

    def _output(self, row: Row) -> str | None:
        """Return what a job's last launch has printed, or None if there is no file."""
        # A slurmctld that was killed may have a job that has ended run again.
        launch = (row.job_id, row.restarts)
        if launch in self._outputs:
            return self._outputs[launch]
        user = self._load.submissions()[row.name].user
        path = self._site.paths.home(user) / "soak" / f"{row.name}-{row.job_id}.out"
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        if row.over:
            self._outputs[launch] = text
        return text

    def _left(self) -> list[str]:
        # Jobs run, so directories come and go: `os.walk` passes over one that has gone. A draft of
        # a helper that was killed is swept after an hour, and what helpers lock stays.
        walked = os.walk(self._site.paths.plugin_spool)
        found = (name for _, _, names in walked for name in names)
        kept = [name for name in found if not name.endswith(".new") and name != ".lock"]
        directories = [str(path.name) for path in self._site.job_directories()]
        return sorted([*kept, *directories])

    def _setting_now(self) -> str:
        path = f"/proc/sys/{jobs.SETTING.replace('.', '/')}"
        done: subprocess.CompletedProcess[str] = self._site.cluster.run_as(ROOT, ["cat", path])
        return done.stdout.strip()


def _outage(done: Done) -> Outage:
    return Outage(
        kinds=done.kinds,
        began=done.began,
        ended=done.ended or time.time(),
        began_boot=done.began_boot,
        ended_boot=done.ended_boot or done.began_boot,
        held_boot=done.held_boot or done.began_boot,
        hits=frozenset(done.hits),
    )

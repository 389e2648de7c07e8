"""Kinds of ends: what the work does, and what is done to the job from outside.

An end is added by an entry of ENDS. What is expected of a run is written here from what the product
promises; what was recorded is in lives.md, and both are checked.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from devcluster import control
from harness import (
    ALICE,
    BATCH_START_SECONDS,
    ROOT,
    Site,
    await_seconds,
    await_true,
    command_lines,
)
from outages import prologs_wait, service_frozen

from lives.kinds import Kind

if TYPE_CHECKING:
    from lives.cell import Cell

FOREVER = 900
"""Seconds that work takes which is to be ended from outside."""
NODE = "n2"
"""The node that dies."""
NODE_SECONDS = 150.0
"""How long slurmctld may take to call a node dead, and to take it back."""


class Begins(Enum):
    """How far a job has come."""

    QUEUE = "it is in the queue"
    PROLOG = "its prolog runs"
    WORK = "its work has begun"


@dataclass(frozen=True)
class Launch:
    """What is expected of the run of one launch."""

    slurm: frozenset[str]
    """Slurm's word for its end."""
    state: str
    why: str
    """A pattern of the verdict."""
    at_least: float | None = None
    """Seconds that the work took at least. None: it may lack elapsed, or have any."""
    works: bool = True
    """Whether the work was reached."""
    roles: frozenset[str] | None = None
    """The roles that it may have; None: any."""


@dataclass(frozen=True)
class End:
    """A kind of end."""

    name: str
    means: str
    """For the page."""
    work: str
    """Bash lines."""
    launches: tuple[Launch, ...]
    """One for each run that is to be; none where no run is to be."""
    options: tuple[str, ...] = ()
    """For the submission."""
    batch_options: tuple[str, ...] = ()
    """For sbatch alone: only what it submits can be requeued."""
    job_states: frozenset[str] = frozenset()
    """What squeue must call a job without a run in the end."""
    own_study: bool = False
    """Whether each job has a study of its own, and so is its first run, instead of a pinned one."""
    act: Callable[[Site, Cell], None] | None = None
    """Done to each job once it is submitted."""
    act_on_all: Callable[[Site, Sequence[Cell]], None] | None = None
    """Done once to all the jobs that are to end so, when the work of each has begun."""
    around: Callable[[Site], AbstractContextManager[None]] | None = None
    """In force from before the submission until ``act`` is done."""
    begins: Begins = Begins.WORK
    """How far the job must have come for ``act``."""
    seconds: float = 120.0
    """How long each stage of its life may take."""

    def expected(self, kind: Kind, cluster: str) -> tuple[Launch, ...]:
        """Return what is expected of a job of this kind on a cluster of this make-up."""
        if not kind.gets_run:
            return ()
        return tuple(_adapted(launch, kind, cluster) for launch in self.launches)


def _adapted(launch: Launch, kind: Kind, cluster: str) -> Launch:
    if kind.why_not is not None and launch.state in {"counted", "censored"}:
        # An end that is bad is named first.
        launch = replace(launch, state="not_counted", why=kind.why_not)
    if cluster == "none":
        return _without_a_word(launch, kind)
    if cluster == "jobcomp" and "suspended" in launch.why:
        # The job-completion script is told when a job began and ended, and nothing in between.
        return replace(launch, state="counted", why=r"^completed in ")
    return launch


def _without_a_word(launch: Launch, kind: Kind) -> Launch:
    """Where nobody can be asked, only a batch step's own word lets a run count."""
    batch = kind.program == "sbatch"
    if launch.why == kind.why_not:
        return replace(launch, slurm=frozenset())
    if launch.state == "counted" and batch:
        return replace(launch, slurm=frozenset(), why=r"^completed in .*word could not be had")
    why = r"word could not be had" if batch else r"no batch step"
    return replace(launch, slurm=frozenset(), state="not_counted", why=why)


def _words(*words: str) -> frozenset[str]:
    return frozenset(words)


def _cancel(site: Site, cell: Cell) -> None:
    site.cluster.run_as(ALICE, ["scancel", str(cell.job_id)])


def _cancel_in_prolog(site: Site, cell: Cell) -> None:
    """Cancel it, and wait until its node knows.

    scancel comes back before slurmctld has told the node, which launches the work after a prolog
    that ends meanwhile.
    """
    nodes = [directory.parent.name for directory in cell.directories()]
    _cancel(site, cell)
    # slurmd's req.c, _rpc_terminate_job, at debug; 26.05 has another word, and the SLUID.
    revoked = re.compile(rf"credential for (job |JobId=){cell.job_id}( SLUID=\S+)? revoked")

    def known(node: str) -> bool:
        log = site.paths.log_of(f"slurmd-{node}")
        return revoked.search(log.read_text(encoding="utf-8", errors="replace")) is not None

    for node in nodes:
        await_true(
            f"{node} to know that job {cell.job_id} is cancelled",
            partial(known, node),
            cell.end.seconds,
        )


def _requeue(site: Site, cell: Cell) -> None:
    site.requeue(cell.job())


def _let_slurmd_forget(site: Site, cell: Cell) -> None:
    site.let_slurmd_forget(cell.job())


def _suspend(site: Site, cell: Cell) -> None:
    """Suspend it for so long that whole seconds tell."""
    job = cell.job()
    site.cluster.run_as(ROOT, ["scontrol", "suspend", str(job.job_id)])
    site.await_state(job, "SUSPENDED")
    await_seconds(3.0)
    site.cluster.run_as(ROOT, ["scontrol", "resume", str(job.job_id)])


def _kill_batch_stepds(site: Site, cells: Sequence[Cell]) -> None:
    """Kill the batch steps' slurmstepds, let the orphans go, and have the nodes tell slurmctld.

    No other job may live meanwhile: a slurmd that reads slurm.conf anew loses messages.
    """
    _kill_stepds(site, *(f"slurmstepd: [{cell.job_id}.batch]" for cell in cells))
    for cell in cells:
        cell.release.touch()
    await_seconds(BATCH_START_SECONDS)
    site.register_nodes()


@contextmanager
def _node_lost(site: Site, cells: Sequence[Cell], **changes: str) -> Iterator[None]:
    """Let a node die, as by a power cut, until Slurm calls it dead; it comes back at the end."""
    node = NODE
    changes = {"SlurmdTimeout": "5", **changes}
    with site.slurm_conf_changed(**changes), site.parts_stopped(f"slurmd-{node}"):
        _kill_stepds(site, *(f"slurmstepd: [{cell.job_id}." for cell in cells))
        for cell in cells:
            cell.release.touch()
        await_true(
            f"{node} to be called dead",
            lambda: site.cluster.node_states()[node].startswith("down"),
            NODE_SECONDS,
        )
        yield


def _lose_node(site: Site, cells: Sequence[Cell]) -> None:
    with _node_lost(site, cells):
        for cell in cells:
            if cell.requeues:
                _let_slurmd_forget(site, cell)


def _kill_stepds(site: Site, *titles: str) -> None:
    """Kill the slurmstepds of these titles; another cluster of this host may have the same."""
    for pid, line in command_lines():
        if line.startswith(titles) and control.is_our_stepd(site.paths, pid):
            os.kill(pid, signal.SIGKILL)


def _preempt(site: Site, cells: Sequence[Cell]) -> None:
    """Submit a job that needs every node for itself, and goes before those of low partitions."""
    nodes = len(site.cluster.node_states())
    options = ["--partition=main", f"--nodes={nodes}", "--exclusive", "--job-name=urgent"]
    # Longer than slurmd remembers those that it requeues (Site.let_slurmd_forget).
    urgent = site.sbatch("sleep 9", *options)
    for cell in cells:
        cell.others.append(urgent)


def _be_forgotten(site: Site, cells: Sequence[Cell]) -> None:
    """Let Slurm forget the jobs while the service cannot ask, and their node be dead meanwhile."""
    jobs = {cell.job_id for cell in cells}
    with ExitStack() as stack:
        stack.enter_context(service_frozen(site))
        with _node_lost(site, cells, MinJobAge="2"):
            await_true(
                "Slurm to forget the jobs",
                lambda: not jobs & site.all_jobs.look().keys(),
                NODE_SECONDS,
            )
            # A node that comes back has lost what was in memory, as /run is.
            for job_id in jobs:
                for directory in site.paths.plugin_run.glob(f"*/{NODE}/{job_id}"):
                    shutil.rmtree(directory)
            site.sweep_as_at_boot()
            stack.close()
            await_true(
                "the runs to be given up",
                lambda: all(
                    run["state"] != "in_flight"
                    for run in site.all_runs.look()
                    if run["job_id"] in jobs
                ),
                NODE_SECONDS,
            )


_SHORT = "exec sleep 2"
_LONG = f"exec sleep {FOREVER}"
_UNTIL_RELEASED = 'until [ -e "$RELEASE" ]; do sleep 0.1; done'
_FIRST_LONG = f'[ "${{SLURM_RESTART_COUNT:-0}}" -gt 0 ] && {_SHORT}\n{_LONG}'

_COMPLETED = Launch(_words("COMPLETED"), "counted", r"^completed in ", at_least=2.0)
_NEVER_EXPLORES = _words("best_known", "settled", "control", "pinned", "observe")
_RESTARTED = replace(_COMPLETED, roles=_NEVER_EXPLORES)


def _bad(word: str, *more: str, **changes: Any) -> Launch:  # noqa: ANN401 - Launch's fields
    words = _words(word, *more)
    launch = Launch(words, "not_counted", r"\b(" + "|".join(sorted(words)) + r")\b")
    return replace(launch, **changes)


COMPLETED = End("COMPLETED", "The work takes two seconds and ends well.", _SHORT, (_COMPLETED,))
EXIT = End("exit code", "The work exits with 3.", "sleep 1; exit 3", (_bad("FAILED", at_least=1),))
SIGNAL = End(
    "signal",
    "The work is ended by a signal (SEGV).",
    "sleep 1; kill -SEGV $$",
    (_bad("FAILED", at_least=1),),
)
CANCELLED_PENDING = End(
    "cancelled, pending",
    "scancel while it waits in the queue: no run ever began.",
    _SHORT,
    (),
    options=("--begin=now+1hour",),
    job_states=_words("CANCELLED"),
    act=_cancel,
    begins=Begins.QUEUE,
)
CANCELLED_PROLOG = End(
    "cancelled, prolog",
    "scancel while the prolog waits for a mute service: the work is never launched.",
    _SHORT,
    (_bad("CANCELLED", works=False),),
    act=_cancel_in_prolog,
    around=prologs_wait,
    begins=Begins.PROLOG,
)
CANCELLED = End("cancelled, running", "scancel.", _LONG, (_bad("CANCELLED"),), act=_cancel)
REQUEUED = End(
    "requeued",
    "--requeue, and `scontrol requeue` while it runs; the second launch ends well.",
    _FIRST_LONG,
    (_bad("REQUEUED"), _RESTARTED),
    batch_options=("--requeue",),
    own_study=True,
    act=_requeue,
)
REQUEUES_ITSELF = End(
    "requeues itself",
    "--requeue, and the work calls `scontrol requeue` for its own job.",
    f'[ "${{SLURM_RESTART_COUNT:-0}}" -gt 0 ] && {_SHORT}\n'
    f'scontrol requeue "$SLURM_JOB_ID"\n{_LONG}',
    (_bad("REQUEUED"), _RESTARTED),
    batch_options=("--requeue",),
    own_study=True,
    act=_let_slurmd_forget,
)
SUSPENDED = End(
    "suspended",
    "Suspended for three seconds, and resumed; it ends well.",
    "exec sleep 8",
    (replace(_COMPLETED, state="not_counted", why=r"suspended"),),
    act=_suspend,
)
STEPD_KILLED = End(
    "batch stepd killed",
    "The slurmstepd of the batch step is killed; --no-requeue.",
    _UNTIL_RELEASED,
    (_bad("NODE_FAIL"),),
    batch_options=("--no-requeue",),
    act_on_all=_kill_batch_stepds,
)
TIMEOUT = End(
    "TIMEOUT",
    "The time limit of a minute fires.",
    _LONG,
    # The limit runs from the allocation, and is looked at every half minute; a step starts later.
    (Launch(_words("TIMEOUT"), "censored", r"TIMEOUT: .* longer than", at_least=50.0),),
    options=("--time=1",),
    seconds=240.0,
)
TIMEOUT_TRAPPED = End(
    "TIMEOUT, trapped",
    "The time limit fires; the work traps TERM and exits with 0.",
    f"trap 'exit 0' TERM\nsleep {FOREVER} & wait",
    TIMEOUT.launches,
    options=("--time=1",),
    seconds=240.0,
)
OUT_OF_MEMORY = End(
    "OUT_OF_MEMORY",
    "The work takes more memory than the job has; its script exits with 0. Of a job whose step it"
    " was, Slurm says FAILED.",
    "python3 -c 'print(len(bytearray(400 << 20)))'\nexit 0",
    (_bad("OUT_OF_MEMORY", "FAILED"),),
    options=("--mem=100",),
)
PREEMPTED = End(
    "PREEMPTED",
    "A job of a higher partition takes its node; its own partition cancels.",
    _LONG,
    (_bad("PREEMPTED"),),
    options=("--partition=low-cancel",),
    own_study=True,
    act_on_all=_preempt,
)
PREEMPTED_REQUEUED = End(
    "PREEMPTED, requeued",
    "A job of a higher partition takes its node; its own partition requeues.",
    _FIRST_LONG,
    (_bad("PREEMPTED", "REQUEUED"), _RESTARTED),
    options=("--partition=low-requeue",),
    batch_options=("--requeue",),
    own_study=True,
    act_on_all=_preempt,
    seconds=240.0,
)
PREEMPTED_SUSPENDED = End(
    "PREEMPTED, suspended",
    "A job of a higher partition takes its node; its own partition suspends, and it ends well.",
    "exec sleep 8",
    (replace(_COMPLETED, state="not_counted", why=r"suspended"),),
    options=("--partition=low-suspend",),
    own_study=True,
    act_on_all=_preempt,
    seconds=240.0,
)
NODE_FAIL = End(
    "NODE_FAIL",
    "Its node dies with all that runs there; --no-requeue.",
    _UNTIL_RELEASED,
    (_bad("NODE_FAIL"),),
    options=(f"--nodelist={NODE}",),
    batch_options=("--no-requeue",),
    act_on_all=_lose_node,
    seconds=240.0,
)
NODE_FAIL_REQUEUED = End(
    "NODE_FAIL, requeued",
    "Its node dies with all that runs there; --requeue.",
    f'[ "${{SLURM_RESTART_COUNT:-0}}" -gt 0 ] && {_SHORT}\n{_UNTIL_RELEASED}',
    (_bad("NODE_FAIL", "REQUEUED"), _RESTARTED),
    options=(f"--nodelist={NODE}",),
    batch_options=("--requeue",),
    own_study=True,
    act_on_all=_lose_node,
    seconds=300.0,
)
FORGOTTEN = End(
    "never heard of again",
    "Its node dies, and Slurm forgets it, while the service cannot ask; no report comes.",
    _UNTIL_RELEASED,
    (Launch(frozenset(), "not_counted", r"never heard of again"),),
    options=(f"--nodelist={NODE}",),
    batch_options=("--no-requeue",),
    act_on_all=_be_forgotten,
    seconds=300.0,
)

ENDS = tuple(one for one in list(globals().values()) if isinstance(one, End))
"""All of them, in the order of the page."""

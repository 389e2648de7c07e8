"""Which combinations are run, and where: the table of lives.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lives import ends, kinds
from lives.ends import End
from lives.kinds import Kind


@dataclass(frozen=True)
class Entry:
    """One combination of a kind and an end."""

    kind: Kind
    end: End

    @property
    def name(self) -> str:
        """What the test is called."""
        return f"{self.kind.name}: {self.end.name}"


def _each(end: End, *of_kinds: Kind) -> list[Entry]:
    return [Entry(kind, end) for kind in of_kinds]


_EVERY_BATCH = (
    kinds.BATCH,
    kinds.STEPS,
    kinds.MPIEXEC,
    kinds.TWO_NODES,
    kinds.ARRAY,
    kinds.NESTED_JOB,
    kinds.HET,
)
_EVERY_PROGRAM = (*_EVERY_BATCH, kinds.SALLOC, kinds.SRUN)
_OF_TWO_NODES = tuple(kind for kind in kinds.KINDS if kind.nodes <= 2)  # noqa: PLR2004
_PLAIN_PROGRAMS = (kinds.BATCH, kinds.STEPS, kinds.SALLOC, kinds.SRUN)

QUICK = (
    *_each(ends.STEPD_KILLED, kinds.BATCH),
    *_each(ends.REQUEUED, kinds.BATCH, kinds.STEPS, kinds.TWO_NODES, kinds.ARRAY),
    *_each(ends.REQUEUES_ITSELF, kinds.BATCH),
    *_each(ends.SUSPENDED, *_PLAIN_PROGRAMS, kinds.TWO_NODES),
    *_each(ends.COMPLETED, *_OF_TWO_NODES),
    *_each(ends.EXIT, *_EVERY_PROGRAM, kinds.SECOND_NODE, kinds.EXPORT_NONE, kinds.WRAP),
    *_each(ends.SIGNAL, *_PLAIN_PROGRAMS, kinds.MPIEXEC, kinds.TWO_NODES),
    *_each(ends.CANCELLED_PENDING, *_PLAIN_PROGRAMS, kinds.TWO_NODES, kinds.ARRAY, kinds.HET),
    *_each(ends.CANCELLED_PROLOG, *_PLAIN_PROGRAMS, kinds.ARRAY),
    *_each(ends.CANCELLED, *_EVERY_PROGRAM, kinds.SALLOC_TWO, kinds.SRUN_TWO),
)
"""Those that take seconds, on the cluster that every other test has too; the longest first."""

LONG = (
    *_each(ends.TIMEOUT, *_EVERY_PROGRAM, kinds.SALLOC_TWO, kinds.SRUN_TWO, kinds.WRAP),
    *_each(ends.TIMEOUT_TRAPPED, *_PLAIN_PROGRAMS, kinds.TWO_NODES),
    *_each(ends.NODE_FAIL, kinds.BATCH, kinds.TWO_NODES, kinds.SALLOC, kinds.SRUN),
    # Of two nodes, the one that died may run no prolog for the second launch (slurmd 22.05 still
    # knows the job), and its part is waited for longer than a test can.
    *_each(ends.NODE_FAIL_REQUEUED, kinds.BATCH),
    *_each(ends.FORGOTTEN, kinds.BATCH),
)
"""Those that wait for a time limit, or for a node to be called dead, on the same cluster."""


_OTHER_SOURCE = (
    *_each(ends.COMPLETED, *_EVERY_PROGRAM, kinds.SECOND_NODE, kinds.OWN_SCRIPT, kinds.WRAP),
    *_each(ends.EXIT, *_PLAIN_PROGRAMS, kinds.ARRAY),
    *_each(ends.SIGNAL, *_PLAIN_PROGRAMS),
    *_each(ends.CANCELLED_PENDING, kinds.BATCH),
    *_each(ends.CANCELLED, *_PLAIN_PROGRAMS, kinds.ARRAY),
    *_each(ends.REQUEUED, kinds.BATCH, kinds.ARRAY),
    *_each(ends.TIMEOUT, *_PLAIN_PROGRAMS),
    *_each(ends.TIMEOUT_TRAPPED, kinds.BATCH),
)
_ON_FOUR = (
    *_each(ends.COMPLETED, kinds.FOUR_NODES, kinds.TWO_NODES, kinds.SECOND_NODE),
    *_each(ends.EXIT, kinds.FOUR_NODES),
    *_each(ends.CANCELLED, kinds.FOUR_NODES),
    *_each(ends.TIMEOUT, kinds.FOUR_NODES),
)

OTHER_CLUSTERS = {
    "no Alloc": (
        *_each(ends.COMPLETED, *_OF_TWO_NODES),
        *_each(ends.EXIT, *_EVERY_PROGRAM),
        *_each(ends.CANCELLED, *_EVERY_PROGRAM, kinds.SALLOC_TWO, kinds.SRUN_TWO),
        *_each(ends.CANCELLED_PROLOG, kinds.BATCH, kinds.SRUN),
        *_each(ends.REQUEUED, kinds.BATCH, kinds.TWO_NODES),
        *_each(ends.TIMEOUT, kinds.BATCH, kinds.TWO_NODES, kinds.SALLOC, kinds.SRUN),
    ),
    "four nodes": _ON_FOUR,
    "four nodes, no Alloc": _ON_FOUR,
    "jobcomp": (*_OTHER_SOURCE, *_each(ends.SUSPENDED, kinds.BATCH)),
    "sacct": (*_OTHER_SOURCE, *_each(ends.SUSPENDED, *_PLAIN_PROGRAMS)),
    "none": _OTHER_SOURCE,
    "memory": (
        *_each(ends.COMPLETED, kinds.BATCH, kinds.SRUN),
        *_each(ends.OUT_OF_MEMORY, *_PLAIN_PROGRAMS, kinds.ARRAY),
    ),
    "preemption": (
        # Slurm 22.05 starts the urgent job beside a heterogeneous one, which it does not preempt.
        *_each(ends.PREEMPTED, *(kind for kind in _EVERY_PROGRAM if kind is not kinds.HET)),
        *_each(ends.PREEMPTED_REQUEUED, kinds.BATCH, kinds.STEPS, kinds.ARRAY),
        *_each(ends.PREEMPTED_SUSPENDED, kinds.BATCH, kinds.STEPS),
    ),
}
"""Those on clusters of another make-up, by what the page calls it."""


def named(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return the combinations by the names of their tests."""
    return {entry.name: entry for entry in entries}

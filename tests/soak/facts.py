"""What is known of the cluster, its jobs and the store at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from soak.helpers import Life
from soak.jobs import Submission
from soak.ledger import Row
from soak.store import Run, Stored

PADDING = 3.0
"""Seconds around a job in which what happens may touch it: its prolog and epilog, Slurm's whole
seconds."""
SLURM = frozenset({"kill slurmctld", "kill slurmd", "kill munged"})
"""What stops Slurm itself."""


@dataclass(frozen=True)
class Outage:
    """A span in which something was done to the cluster."""

    kinds: AbstractSet[str]
    began: float
    """Seconds since 1970, as its end."""
    ended: float
    began_boot: float
    """Seconds since boot, as its end."""
    ended_boot: float
    held_boot: float
    """When it was begun to be undone; that all runs again is later."""
    hits: AbstractSet[tuple[int, str]]
    """The helpers that were killed or stopped: the job, and the helper's command."""

    def touches(self, row: Row) -> bool:
        """Tell whether it overlaps with a job."""
        ended = row.ended or self.ended
        began = row.began or ended
        return self.began <= ended + PADDING and began - PADDING <= self.ended


@dataclass(frozen=True)
class JobFacts:
    """A job that Slurm has accepted."""

    row: Row
    submission: Submission
    text: str | None
    """What it has printed; None if there is no file."""
    run: Run | None
    """Its last launch's run."""

    @property
    def script_began(self) -> bool:
        """Whether its script was started: a slurmd that is killed may have lost the launch.

        Slurm then believes in the job until its limit, and calls it timed out.
        """
        return self.text is not None and self.text.startswith("begin ")


@dataclass(frozen=True)
class Facts:
    """Everything that the invariants look at."""

    jobs: list[JobFacts]
    stored: Stored
    nodes: Mapping[str, str]
    """Each node's state."""
    lives: list[Life]
    outages: list[Outage]
    returned: AbstractSet[int]
    """Ids whose record Slurm has lost: given to two jobs, or their end forgotten."""
    twice: AbstractSet[int]
    """Jobs that slurmds have launched more often than Slurm says."""
    vanished: AbstractSet[int]
    """Jobs that Slurm has forgotten before their end."""
    refusals: list[tuple[float, float, str]]
    """Submissions that failed: begin, end, and what sbatch has said."""
    setting: tuple[str, str]
    """The setting before the soak, and now."""
    left: list[str]
    """What is in the spool and the run directory."""

    def outages_of(self, kinds: Iterable[str]) -> list[Outage]:
        """Return those outages in which one of these was done."""
        wanted = set(kinds)
        return [outage for outage in self.outages if outage.kinds & wanted]

    def touched(self, job: JobFacts, kinds: Iterable[str]) -> bool:
        """Tell whether one of these was done while a job was there."""
        return any(outage.touches(job.row) for outage in self.outages_of(kinds))

    def hit(self, job: JobFacts, command: str) -> bool:
        """Tell whether a job's helper was killed or stopped while it ran this command."""
        return any((job.row.job_id, command) in outage.hits for outage in self.outages)

"""The parts of the cluster, in the order in which they start."""

from __future__ import annotations

from collections.abc import Callable

from devcluster.parts import accounting, collector, flusher, munge, postgres, slurm, tuner
from devcluster.parts.part import Part
from devcluster.paths import Paths
from devcluster.record import Record

__all__ = ["Part", "in_order"]


def in_order(paths: Paths, record: Record, skipped: Callable[[str], None]) -> list[Part]:
    """Return the parts that can run; ``skipped`` hears about each whose program is not staged."""
    parts = [munge.part(paths)] if record.variant.auth == "munge" else []
    parts.append(postgres.part(paths, record))
    parts += _staged(tuner.part(paths, record), skipped)
    if record.variant.accounting:
        parts += accounting.parts(paths, record)
    parts += slurm.parts(paths, record)
    if record.variant.jobcomp:
        parts += _staged(collector.part(paths, record), skipped)
    parts += _staged(flusher.part(paths), skipped)
    return parts


def _staged(part: Part, skipped: Callable[[str], None]) -> list[Part]:
    if part.program.exists():
        return [part]
    skipped(f"{part.name} is left out: {part.program.name} is not in the stage yet")
    return []

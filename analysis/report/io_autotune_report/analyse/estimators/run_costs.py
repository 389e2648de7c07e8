"""What a study's runs took, and what searching cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from io_autotune_report.frames import EXPLORING_ROLES, Runs, numbers, words

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Spent:
    """What one study's runs took."""

    used: float
    """Node-hours of all runs that counted."""
    exploring: float | None
    """Of design and search runs, beyond the default's."""
    exploring_variance: float


def spent(runs: Runs) -> Spent:
    """Of one study's runs, in any order."""
    several = np.unique(numbers(runs, "study_id")).size
    if several > 1:
        message = f"runs of {several} studies: give the runs of one, as groupby('study_id') does"
        raise ValueError(message)
    nodes = np.nan_to_num(numbers(runs, "nodes"), nan=1.0)
    hours = nodes * numbers(runs, "elapsed") / 3600
    exploring, variance = _exploring(runs, nodes, hours)
    counted = words(runs, "effect") == "sample"
    return Spent(float(np.nansum(hours[counted])), exploring, variance)


def _exploring(runs: Runs, nodes: Array, hours: Array) -> tuple[float | None, float]:
    """Against the epoch's default runs from before it settled."""
    effect = words(runs, "effect")
    spent = np.isin(effect, ("sample", "censored")) & np.isfinite(hours)
    explores = np.isin(words(runs, "role"), EXPLORING_ROLES) & spent
    settled = words(runs, "phase") == "settled"
    default = (numbers(runs, "default") > 0) & (effect == "sample") & ~settled
    epochs = numbers(runs, "epoch")
    total, variance, known = 0.0, 0.0, False
    for epoch in np.unique(epochs[explores]):
        trials = explores & (epochs == epoch)
        measured = default & (epochs == epoch)
        if not measured.any():
            continue
        known = True
        rate = hours[measured] / nodes[measured]
        total += float(np.sum(hours[trials]) - np.sum(nodes[trials]) * rate.mean())
        if rate.size > 1:
            variance += float(np.sum(nodes[trials]) ** 2 * rate.var(ddof=1) / rate.size)
    return (total if known or not explores.any() else None), variance

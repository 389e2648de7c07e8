"""The node-hours that a study's runs took, and what searching cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from io_autotune_report.frames import EXPLORING_ROLES


@dataclass(frozen=True)
class Spent:
    """What one study's runs took."""

    used: float
    """Node-hours of all runs that counted."""
    exploring: float | None
    """Node-hours of design and search runs beyond what the default would have taken."""
    exploring_variance: float


def spent(runs: pd.DataFrame) -> Spent:
    """Reads one study's runs (columns: ``frames.RUNS``, of any order and any number of epochs)."""
    several = runs["study_id"].nunique()
    if several > 1:
        message = f"runs of {several} studies: give the runs of one, as groupby('study_id') does"
        raise ValueError(message)
    exploring, variance = _exploring(runs)
    counted = runs["effect"].to_numpy(dtype=object) == "sample"
    return Spent(float(np.nansum(_node_hours(runs)[counted])), exploring, variance)


def _node_hours(runs: pd.DataFrame) -> np.ndarray:
    nodes = runs["nodes"].fillna(1).to_numpy(dtype=np.float64)
    return nodes * runs["elapsed"].to_numpy(dtype=np.float64) / 3600


def _exploring(runs: pd.DataFrame) -> tuple[float | None, float]:
    """Against the mean of the epoch's runs of the default from before it settled."""
    hours = _node_hours(runs)
    nodes = runs["nodes"].fillna(1).to_numpy(dtype=np.float64)
    effect_ = runs["effect"].to_numpy(dtype=object)
    spent = np.isin(effect_, ("sample", "censored")) & np.isfinite(hours)
    explores = np.isin(runs["role"].to_numpy(dtype=object), EXPLORING_ROLES) & spent
    settled = runs["phase"].to_numpy(dtype=object) == "settled"
    default = runs["default"].to_numpy(dtype=bool) & (effect_ == "sample") & ~settled
    epochs = runs["epoch"].to_numpy()
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

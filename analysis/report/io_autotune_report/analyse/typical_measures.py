"""Typical measures of the default's runs and of the choice's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from io_autotune_report.analyse.life import Choice
from io_autotune_report.document import Measured
from io_autotune_report.frames import Runs, numbers, words
from io_autotune_report.load.measures import Measures

_STEPS = "measured_steps"
"""Of a run with it, nodes have told all that they collect but zeros."""
_PLUMBING = {
    _STEPS,
    "delivered_files",
    "delivered_files_read",
    "changeable_nodes",
    "lustre_mounts",
    "fuse_mounts",
}
"""What says how a run was measured, and nothing of what it did."""
_TOLD = ("marked_seconds", "mpi_io_", "objective.", "others_elapsed_ratio")
"""Prefixes of what nodes do not collect: a run without it has not told it."""


def measured(runs: Runs, chosen: Choice | None, measures: Measures) -> list[Measured]:
    """Of an epoch's counted runs that have measures; elapsed first, then by name."""
    told = [measures.get(run) for run in np.asarray(runs["run_id"]).tolist()]
    counted = words(runs, "effect") == "sample"
    counted &= np.array([bool(one) for one in told], dtype=bool)
    default = numbers(runs, "default").astype(bool) & counted
    keys = words(runs, "key")
    tuned = np.zeros_like(default) if chosen is None else (keys == chosen.key) & counted & ~default
    names = {name for place in np.flatnonzero(default | tuned) for name in told[place] or {}}
    elapsed = numbers(runs, "elapsed")

    def of(name: str, group: NDArray[np.bool_]) -> Measured.Typical | None:
        if name == "elapsed":
            return _typical(elapsed[group])
        values = [_value(name, told[place] or {}) for place in np.flatnonzero(group)]
        return _typical(np.array([value for value in values if value is not None]))

    rows = [
        Measured(name, of(name, default), of(name, tuned))
        for name in ("elapsed", *sorted(names - _PLUMBING))
    ]
    return [row for row in rows if any(one and one.median for one in (row.default, row.chosen))]


def _value(name: str, told: Mapping[str, float]) -> float | None:
    is_collected = _STEPS in told and not name.startswith(_TOLD)
    return told.get(name, 0.0 if is_collected else None)


def _typical(values: NDArray[np.float64]) -> Measured.Typical | None:
    if not values.size:
        return None
    ordered = np.sort(values).tolist()
    runs = len(ordered)
    median = (ordered[(runs - 1) // 2] + ordered[runs // 2]) / 2
    beyond = _beyond(runs)
    low, high = (ordered[beyond - 1], ordered[-beyond]) if beyond else (None, None)
    return Measured.Typical(median, low, high, runs)


@lru_cache(maxsize=256)
def _beyond(count: int) -> int:
    """The place from either end of a median's bounds of 95 %, from 1; 0 where there are none.

    So many numbers or fewer lie below the median with a probability of at most 2.5 %, whatever
    their distribution (David and Nagaraja, Order Statistics, section 7.1).
    """
    return int(binom.ppf(0.025, count, 0.5))

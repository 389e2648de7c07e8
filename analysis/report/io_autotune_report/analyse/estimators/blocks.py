"""Which tuned run is compared with which control run.

Runs are put in the order of their starts: the order of their ends would sort runs that started
together by elapsed itself. In each epoch the chosen runs (settled, best known, pinned) fall into
*stretches* of one parametrization. A control run belongs to the stretch it started in, after that
stretch's first run, so that the choice was made before both: a control run from before may be
among the reasons of the choice. A tuned run goes to the nearest control run of its
stretch, and that block is the unit of comparison: whatever drifts slowly is the same for all
of it. Stretches of the same epoch and parametrization are one :class:`Comparison`.

Ranks are of runs that the engine could as well have made control runs: role ``settled``. A
``best_known`` run of a settled epoch is a restarted job, which may go on from a checkpoint and is
never a control run, or one of a burst; it counts in node-hours with what its block shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from io_autotune_report.analyse.estimators.ranks import MOST_TUNED, Array, Counts
from io_autotune_report.frames import CHOSEN_ROLES

REACH = 40
"""A tuned run further from a control run than this many starts is not compared with it."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Comparison:
    """All blocks of one chosen parametrization in one epoch."""

    epoch: int
    key: str
    number: int
    """Which comparison of the study's life this is, from 1; of those that have a block."""
    control: Array
    """Log elapsed of each block's control run; ``inf`` if it was cut short. Shape: blocks."""
    tuned: Array
    """Log elapsed of its tuned runs, padded with NaN. Shape: blocks x the largest ``count``."""
    count: Counts
    """How many those are."""
    control_started: NDArray[np.datetime64]
    """When each control run started, UTC."""
    control_seconds: Array
    """Elapsed of each control run, the bound if it was cut short."""
    tuned_seconds: Array
    """Mean elapsed of each block's tuned runs, bounds included."""
    chosen_nodes: Array
    """Sum of nodes over each block's chosen runs, best known and pinned ones included."""
    control_nodes: Array
    """Nodes of each control run."""
    first: np.datetime64
    """The start of its first chosen run."""
    last: np.datetime64
    """The start of its last chosen or control run."""
    recent_runs: float
    """Node-weighted chosen runs of the 30 days up to ``last``."""


@dataclass(frozen=True)
class Present:
    """What a study runs now."""

    epoch: int
    key: str | None
    """The latest chosen parametrization of the latest epoch; ``None`` before there is one."""
    default: bool
    """Whether it is the default itself."""
    chosen_runs: int
    """Runs of it in this epoch."""
    since: np.datetime64 | None
    """The start of the first of them."""


@dataclass(frozen=True)
class _Epoch:
    """The runs of an epoch that have an elapsed time, by start."""

    number: int
    started: NDArray[np.datetime64]
    elapsed: Array
    nodes: Array
    key: NDArray[np.object_]
    default: Flags
    cut_short: Flags
    chosen: Flags
    ranked: Flags
    control: Flags


def _epochs(runs: pd.DataFrame) -> list[_Epoch]:
    effect = runs["effect"].to_numpy(dtype=object)
    elapsed = runs["elapsed"].to_numpy(dtype=np.float64)
    cut_short = effect == "censored"
    usable = ((effect == "sample") | cut_short) & (elapsed > 0)
    started = runs["started_at"].dt.tz_convert(None).to_numpy(dtype="datetime64[ns]")
    number = runs["epoch"].to_numpy(dtype=np.int64)
    order = np.lexsort((runs["ordinal"].to_numpy(), started, number))
    order = order[usable[order]]
    role = runs["role"].to_numpy(dtype=object)[order]
    phase = runs["phase"].to_numpy(dtype=object)[order]
    key = runs["key"].to_numpy(dtype=object)[order]
    known = ~pd.isna(key)
    default = runs["default"].to_numpy(dtype=bool)[order]
    columns = {
        "started": started[order],
        "elapsed": elapsed[order],
        "nodes": runs["nodes"].fillna(1).to_numpy(dtype=np.float64)[order],
        "key": key,
        "default": default,
        "cut_short": cut_short[order],
        "chosen": np.isin(role, CHOSEN_ROLES) & known,
        "ranked": (role == "settled") & known,
        "control": (role == "control") & (phase == "settled") & default,
    }
    number = number[order]
    edges = [0, *(np.flatnonzero(np.diff(number)) + 1), number.size]
    return [
        _Epoch(number=int(number[a]), **{name: column[a:b] for name, column in columns.items()})
        for a, b in pairwise(edges)
        if b > a
    ]


def present(runs: pd.DataFrame) -> Present:
    """What the study runs now: the latest chosen parametrization of its latest epoch."""
    latest = int(runs["epoch"].max()) if len(runs) else 0
    epochs = _epochs(runs)
    if not epochs or epochs[-1].number < latest or not epochs[-1].chosen.any():
        return Present(latest, None, False, 0, None)
    epoch = epochs[-1]
    last = int(np.flatnonzero(epoch.chosen)[-1])
    same = epoch.chosen & (epoch.key == epoch.key[last])
    first = epoch.started[np.flatnonzero(same)[0]]
    return Present(latest, str(epoch.key[last]), bool(epoch.default[last]), int(same.sum()), first)


def comparisons(runs: pd.DataFrame) -> list[Comparison]:
    """The comparisons of a study that have a block, in the order in which they began."""
    found: list[Comparison] = []
    for epoch in _epochs(runs):
        owner, controls = _matched(epoch)
        if not controls.size:
            continue
        keys = epoch.key[np.flatnonzero(epoch.chosen)]
        for key in dict.fromkeys(keys):
            comparison = _comparison(epoch, str(key), owner, len(found) + 1)
            if comparison is not None:
                found.append(comparison)
    return found


def _matched(epoch: _Epoch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each run the place of its nearest control run in its stretch, or -1; the control runs."""
    places = np.arange(epoch.elapsed.size)
    chosen = np.flatnonzero(epoch.chosen)
    controls = np.flatnonzero(epoch.control)
    owner = np.full(places.size, -1)
    if not chosen.size or not controls.size:
        return owner, controls[:0]
    new = np.ones(chosen.size, dtype=bool)
    new[1:] = epoch.key[chosen[1:]] != epoch.key[chosen[:-1]]
    stretch = np.zeros(places.size, dtype=np.int64)
    stretch[chosen[new]] = 1
    stretch = np.cumsum(stretch)
    controls = controls[stretch[controls] > 0]
    if not controls.size:
        return owner, controls
    after = np.searchsorted(controls, chosen)
    candidates = [np.clip(after - 1, 0, None), np.clip(after, None, controls.size - 1)]
    nearest, distance = np.full(chosen.size, -1), np.full(chosen.size, REACH + 1)
    for candidate in candidates:
        place = controls[candidate]
        apart = np.abs(place - chosen)
        better = (stretch[place] == stretch[chosen]) & (apart < distance)
        nearest = np.where(better, place, nearest)
        distance = np.where(better, apart, distance)
    owner[chosen] = nearest
    return owner, controls


def _comparison(
    epoch: _Epoch, key: str, owner: NDArray[np.int64], number: int
) -> Comparison | None:
    mine = epoch.chosen & (epoch.key == key) & ~epoch.default
    ranked = np.flatnonzero(mine & epoch.ranked & (owner >= 0))
    if not ranked.size:
        return None
    controls, block = np.unique(owner[ranked], return_inverse=True)
    count = np.bincount(block)
    # The nearest ones, where there are more than a block takes.
    order = np.lexsort((np.abs(ranked - owner[ranked]), block))
    column = np.arange(ranked.size) - np.repeat(np.cumsum(count) - count, count)
    kept = column < MOST_TUNED
    rows, columns, places = block[order][kept], column[kept], ranked[order][kept]
    logs = np.where(epoch.cut_short, np.inf, np.log(epoch.elapsed))
    tuned = np.full((controls.size, int(min(count.max(), MOST_TUNED))), np.nan)
    tuned[rows, columns] = logs[places]
    vouched = np.flatnonzero(mine & np.isin(owner, controls))
    last = int(max(np.flatnonzero(mine)[-1], controls[-1]))
    recent = mine & (epoch.started > epoch.started[last] - np.timedelta64(30, "D"))
    return Comparison(
        epoch=epoch.number,
        key=key,
        number=number,
        control=logs[controls],
        tuned=tuned,
        count=np.minimum(count, MOST_TUNED).astype(np.int64),
        control_started=epoch.started[controls],
        control_seconds=epoch.elapsed[controls],
        tuned_seconds=np.bincount(block, weights=epoch.elapsed[ranked]) / count,
        # numpy's types know no weights.
        chosen_nodes=np.bincount(  # type: ignore[arg-type]
            np.searchsorted(controls, owner[vouched]),
            weights=epoch.nodes[vouched],
            minlength=controls.size,
        ),
        control_nodes=epoch.nodes[controls],
        first=epoch.started[np.flatnonzero(mine)[0]],
        last=epoch.started[last],
        recent_runs=float(epoch.nodes[recent].sum()),
    )

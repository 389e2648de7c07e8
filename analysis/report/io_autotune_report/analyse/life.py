"""A study's life as the page draws it: what is chosen, its convergence, its runs."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd

from io_autotune_report.document import RunPoint, Value
from io_autotune_report.frames import CHOSEN_ROLES

POINTS = 500
NEWEST = 300
"""Of the points so many are the newest runs; the others are spread over the earlier ones."""
CONVERGENCE = 60
"""A convergence has so many points at the most."""
FENCE = 1.5
FENCED = 5
"""Tukey's fences need so many runs of a parametrization."""


@dataclass(frozen=True)
class Choice:
    """What a study runs, as chosen in its current epoch."""

    key: str
    since: str
    """The start of the first of its runs in a row; control runs do not break the row."""

    @property
    def values(self) -> dict[str, Value]:
        """The parametrization."""
        return json.loads(self.key)


def choice(runs: pd.DataFrame, epoch: int) -> Choice | None:
    """The parametrization of the latest run whose parametrization was chosen, if there is one."""
    chosen = runs["role"].isin(CHOSEN_ROLES) & (runs["epoch"] == epoch) & runs["key"].notna()
    settled = runs[chosen & (runs["phase"] == "settled")]
    if settled.empty:
        return None
    key = settled["key"].iloc[-1]
    others = np.flatnonzero(settled["key"].to_numpy(dtype=object) != key)
    first = others[-1] + 1 if others.size else 0
    return Choice(key, instant(settled["started_at"].iloc[first]))


def convergence(runs: pd.DataFrame, epoch: int) -> list[tuple[int, float]]:
    """After how many runs of an epoch, the lowest mean of those known, over the default's."""
    counted = runs[(runs["epoch"] == epoch) & (runs["effect"] == "sample")]
    default = counted["default"].to_numpy()
    if not default.any():
        return []
    first = int(np.argmax(default)) + 1
    elapsed = counted["elapsed"].to_numpy()
    codes, keys = pd.factorize(counted["key"])
    of_default = codes[first - 1]
    # As dense as may be where much happens: the beginning.
    places = np.unique(np.geomspace(first, len(counted), CONVERGENCE).round().astype(int))
    drawn = []
    for place in places:
        number = np.bincount(codes[:place], minlength=len(keys))
        total = np.bincount(codes[:place], weights=elapsed[:place], minlength=len(keys))
        means = total[number > 0] / number[number > 0]
        drawn.append((int(place), float(means.min() / (total[of_default] / number[of_default]))))
    return drawn


def points(runs: pd.DataFrame, chosen: Choice | None) -> list[RunPoint]:
    """Runs with a time, as the figures draw them, in their order."""
    timed = runs[runs["elapsed"].notna() & runs["key"].notna()]
    outlier = outliers(timed)
    if len(timed) > POINTS:
        older = np.linspace(0, len(timed) - NEWEST - 1, POINTS - NEWEST).round().astype(int)
        places = np.concatenate([older, np.arange(len(timed) - NEWEST, len(timed))])
        timed, outlier = timed.iloc[places], outlier[places]
    roles = timed["role"].to_numpy(dtype=object)
    is_chosen = np.isin(roles, CHOSEN_ROLES)
    if chosen is not None:
        is_chosen &= timed["key"].to_numpy(dtype=object) == chosen.key
    at = timed["started_at"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        RunPoint(int(ordinal), when, float(elapsed), role, bool(of_choice), bool(out))
        for ordinal, when, elapsed, role, of_choice, out in zip(
            timed["ordinal"], at, timed["elapsed"], roles, is_chosen, outlier, strict=True
        )
    ]


def outliers(runs: pd.DataFrame) -> np.ndarray:
    """Whether each run is beyond Tukey's fences of its parametrization, by log time."""
    beyond = np.zeros(len(runs), dtype=bool)
    logs = np.log(runs["elapsed"].to_numpy())
    codes, keys = pd.factorize(runs["key"].astype(object) + runs["epoch"].astype(str))
    counted = (runs["effect"] == "sample").to_numpy()
    for code in np.flatnonzero(np.bincount(codes, minlength=len(keys)) >= FENCED):
        mine = np.flatnonzero((codes == code) & counted)
        if mine.size < FENCED:
            continue
        low, high = np.quantile(logs[mine], [0.25, 0.75])
        reach = FENCE * (high - low)
        beyond[mine] = (logs[mine] < low - reach) | (logs[mine] > high + reach)
    return beyond


def instant(moment: pd.Timestamp) -> str:
    """ISO 8601 in UTC, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

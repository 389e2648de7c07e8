"""A study's choice, convergence and runs, as the page draws them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from io_autotune_report.analyse.understanding.noise import outside
from io_autotune_report.document import RunPoint, Value
from io_autotune_report.frames import CHOSEN_ROLES, Runs, instants, numbers, words

POINTS = 500
NEWEST = 300
"""Of the points; the others are spread over earlier runs."""
CONVERGENCE = 60
"""At most, of a convergence."""
FENCED = 5
"""Runs of a parametrization that fences need."""


@dataclass(frozen=True)
class Choice:
    """The current epoch's choice."""

    key: str
    since: str
    """The start of its first run in a row, control runs aside."""

    @property
    def values(self) -> dict[str, Value]:
        """The parametrization."""
        return json.loads(self.key)


def choice(runs: Runs, epoch: int) -> Choice | None:
    """What the latest settled run had, if any was chosen."""
    keys = words(runs, "key")
    chosen = np.isin(words(runs, "role"), CHOSEN_ROLES) & ~pd.isna(keys)
    settled = words(runs, "phase") == "settled"
    places = np.flatnonzero(chosen & settled & (numbers(runs, "epoch") == epoch))
    if not places.size:
        return None
    key = keys[places[-1]]
    others = np.flatnonzero(keys[places] != key)
    first = places[others[-1] + 1 if others.size else 0]
    return Choice(key, f"{instants(runs)[first]}Z")


def convergence(runs: Runs, epoch: int) -> list[tuple[int, float]]:
    """By number of runs, the lowest mean known over the default's."""
    counted = (numbers(runs, "epoch") == epoch) & (words(runs, "effect") == "sample")
    default = numbers(runs, "default")[counted]
    if not default.any():
        return []
    first = int(np.argmax(default)) + 1
    elapsed = numbers(runs, "elapsed")[counted]
    codes, keys = pd.factorize(words(runs, "key")[counted])
    # As dense as may be where much happens: the beginning.
    places = np.unique(np.geomspace(first, codes.size, CONVERGENCE).round().astype(int))
    # By place and parametrization: what came since the place before, summed up.
    cell = np.searchsorted(places, np.arange(1, codes.size + 1)) * len(keys) + codes
    shape = (places.size, len(keys))
    number = np.bincount(cell, minlength=places.size * len(keys)).reshape(shape).cumsum(axis=0)
    total = np.bincount(cell, elapsed, places.size * len(keys)).reshape(shape).cumsum(axis=0)
    means = np.where(number > 0, total / np.maximum(number, 1), np.inf)
    ratios = means.min(axis=1) / means[:, codes[first - 1]]
    return list(zip(places.tolist(), ratios.tolist(), strict=True))


def points(runs: Runs, chosen: Choice | None) -> list[RunPoint]:
    """Runs with a time, in order."""
    keys, elapsed = words(runs, "key"), numbers(runs, "elapsed")
    timed = np.flatnonzero(~np.isnan(elapsed) & ~pd.isna(keys))
    outlier = outliers(runs, timed)
    if timed.size > POINTS:
        older = np.linspace(0, timed.size - NEWEST - 1, POINTS - NEWEST).round().astype(int)
        places = np.concatenate([older, np.arange(timed.size - NEWEST, timed.size)])
        timed, outlier = timed[places], outlier[places]
    roles = words(runs, "role")[timed]
    # Before the choice a proof runs the best by then, and a busy study the best known.
    since = (words(runs, "phase")[timed] == "settled") | (roles == "pinned")
    is_chosen = np.isin(roles, CHOSEN_ROLES) & since
    if chosen is not None:
        is_chosen &= keys[timed] == chosen.key
    ordinals = np.asarray(runs["ordinal"])[timed]
    at = np.datetime_as_string(instants(runs)[timed], timezone="UTC")
    columns = (ordinals, at, elapsed[timed], roles, is_chosen, outlier)
    return [*map(RunPoint, *(column.tolist() for column in columns))]


def outliers(runs: Runs, timed: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which timed runs are beyond their parametrization's fences."""
    beyond = np.zeros(timed.size, dtype=bool)
    logs = np.log(numbers(runs, "elapsed")[timed])
    codes, keys = pd.factorize(words(runs, "key")[timed])
    codes = codes + len(keys) * numbers(runs, "epoch")[timed].astype(int)
    counted = words(runs, "effect")[timed] == "sample"
    for code in np.flatnonzero(np.bincount(codes[counted]) >= FENCED):
        mine = (codes == code) & counted
        beyond[mine] = outside(logs[mine])
    return beyond

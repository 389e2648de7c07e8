"""The parametrizations that ran, as columns of numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from io_autotune_report.document import Value
from io_autotune_report.frames import Runs, numbers, words

Array = NDArray[np.float64]

ABSENT = None
"""The level of a parameter that does not exist."""

MOST_WEIGHT = 4
"""More runs weigh no more."""

_LATEST = 8
_TWO = 2


@dataclass(frozen=True)
class Parameter:
    """A parameter's levels among what ran."""

    name: str
    levels: tuple[Value | None, ...]
    """Numbers, texts, then :data:`ABSENT`."""
    ordered: bool
    """Whether all levels that exist are numbers."""
    codes: NDArray[np.int64]
    """The place in ``levels``, for each parametrization."""

    @property
    def is_curve(self) -> bool:
        """More than two ordered levels."""
        return self.ordered and len(self.levels) > _TWO

    @property
    def scale(self) -> Array:
        """Each level's rank from 0 to 1. Absent is -1, away from all."""
        existing = sum(level is not ABSENT for level in self.levels)
        places = np.arange(len(self.levels)) / max(existing - 1, 1)
        return np.where([level is ABSENT for level in self.levels], -1.0, places)


@dataclass(frozen=True)
class Tested:
    """The parametrizations with a run that counts."""

    keys: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    """With two levels or more; others explain nothing."""
    logs: Array
    """Mean log elapsed, over about eight runs spread in time."""
    runs: NDArray[np.int64]
    elapsed: Array
    """Arithmetic mean, seconds."""
    noise: float | None
    """Pooled standard deviation of log elapsed."""

    @property
    def weights(self) -> Array:
        """How much each counts."""
        return np.minimum(self.runs, MOST_WEIGHT).astype(np.float64)


def gather(runs: Runs) -> Tested:
    """Gathers the runs that count by parametrization."""
    elapsed, keys = numbers(runs, "elapsed"), words(runs, "key")
    counted = (words(runs, "effect") == "sample") & (elapsed > 0) & ~pd.isna(keys)
    codes, unique = pd.factorize(keys[counted])
    seconds = elapsed[counted]
    number = np.bincount(codes, minlength=len(unique))
    # Hundreds of settled runs are no better known than a few, and those spread over more of time.
    nth = np.zeros(codes.size, dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    nth[order] = np.arange(codes.size) - np.repeat(np.cumsum(number) - number, number)
    step = np.maximum(number // _LATEST, 1)[codes]
    kept = nth % step == 0
    logs = np.log(seconds[kept])
    used = np.bincount(codes[kept], minlength=len(unique))
    means = np.bincount(codes[kept], weights=logs, minlength=len(unique)) / np.maximum(used, 1)
    freedom = int(np.sum(used - 1))
    noise = None
    if freedom > 0:
        noise = float(np.sqrt(np.sum((logs - means[codes[kept]]) ** 2) / freedom))
    return Tested(
        keys=tuple(map(str, unique)),
        parameters=_parameters([json.loads(key) for key in unique]),
        logs=means,
        runs=number,
        elapsed=np.bincount(codes, weights=seconds, minlength=len(unique)) / np.maximum(number, 1),
        noise=noise,
    )


def features(parameter: Parameter, codes: NDArray[np.int64]) -> Array:
    """One column where levels are ordered or two, else one-hot."""
    if parameter.ordered or len(parameter.levels) == _TWO:
        return parameter.scale[codes][:, None]
    return np.eye(len(parameter.levels))[codes]


def _parameters(parametrizations: list[dict[str, Value]]) -> tuple[Parameter, ...]:
    names = dict.fromkeys(name for values in parametrizations for name in values)
    found = []
    for name in names:
        column = [values.get(name, ABSENT) for values in parametrizations]
        levels = tuple(sorted(set(column), key=_by_worth))
        if len(levels) > 1:
            place = {level: code for code, level in enumerate(levels)}
            ordered = all(isinstance(level, int | float) for level in levels if level is not ABSENT)
            codes = np.array([place[value] for value in column])
            found.append(Parameter(name, levels, ordered, codes))
    return tuple(found)


def _by_worth(level: Value | None) -> tuple[int, float, str]:
    if level is ABSENT:
        return (2, 0.0, "")
    if isinstance(level, int | float):
        return (0, float(level), "")
    return (1, 0.0, level)

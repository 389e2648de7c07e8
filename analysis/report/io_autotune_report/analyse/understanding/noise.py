"""How runs of one parametrization scatter."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from io_autotune_report.document import Noise
from io_autotune_report.frames import Runs, numbers, words

Array = NDArray[np.float64]

FENCE = 1.5
"""Tukey's fences, in interquartile ranges of log elapsed."""
LEAST_RUNS = 5
"""For fences and tests of a variance."""
MOST_RUNS = 200
"""The latest; older ones are from other times."""
_LEVEL = 0.05


def noise(runs: Runs) -> Noise:
    """Of one epoch's runs. Columns: ``frames.RUNS``."""
    groups = _groups(runs)
    if not groups:
        return Noise(None, None, None, None, None)
    freedom = sum(group.size - 1 for group in groups)
    squares = sum((group.size - 1) * np.var(group, ddof=1) / group.mean() ** 2 for group in groups)
    large = [np.log(group) for group in groups if group.size >= LEAST_RUNS]
    outliers = None
    if large:
        beyond = sum(int(np.sum(outside(logs))) for logs in large)
        outliers = beyond / sum(logs.size for logs in large)
    tested = [logs for logs in large if np.ptp(logs) > 0]
    levene_p = bartlett_p = None
    if len(tested) > 1:
        from scipy.stats import bartlett, levene

        levene_p = float(levene(*tested, center="median").pvalue)
        bartlett_p = float(bartlett(*tested).pvalue)
    return Noise(
        cv=float(np.sqrt(squares / freedom)),
        levene_p=levene_p,
        bartlett_p=bartlett_p,
        outliers=outliers,
        varies=None if levene_p is None else levene_p < _LEVEL,
    )


def outside(logs: Array) -> NDArray[np.bool_]:
    """Which runs of a parametrization are beyond Tukey's fences."""
    low, high = np.quantile(logs, [0.25, 0.75])
    reach = FENCE * (high - low)
    return (logs < low - reach) | (logs > high + reach)


def _groups(runs: Runs) -> list[Array]:
    elapsed, keys = numbers(runs, "elapsed"), words(runs, "key")
    counted = (words(runs, "effect") == "sample") & ~pd.isna(keys) & (elapsed > 0)
    codes, _ = pd.factorize(keys[counted])
    several = np.flatnonzero(np.bincount(codes) > 1)
    return [elapsed[counted][codes == code][-MOST_RUNS:] for code in several]

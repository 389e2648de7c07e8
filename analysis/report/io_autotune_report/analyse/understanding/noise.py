"""How runs of one parametrization scatter."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import bartlett, levene

from io_autotune_report.document import Noise

FENCE = 1.5
"""Tukey's fences: so many interquartile ranges beyond the quartiles, of log elapsed."""
LEAST_RUNS = 5
"""Of a parametrization, for fences and tests of its variance."""
MOST_RUNS = 200
"""Of a parametrization, the latest; older ones are from other times."""
_LEVEL = 0.05


def noise(runs: pd.DataFrame) -> Noise:
    """Of one epoch's runs. Columns: ``frames.RUNS``."""
    groups = [group for group in _groups(runs) if group.size > 1]
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
        levene_p = float(levene(*tested, center="median").pvalue)
        bartlett_p = float(bartlett(*tested).pvalue)
    return Noise(
        cv=float(np.sqrt(squares / freedom)),
        levene_p=levene_p,
        bartlett_p=bartlett_p,
        outliers=outliers,
        varies=None if levene_p is None else levene_p < _LEVEL,
    )


def outside(logs: np.ndarray) -> np.ndarray:
    """Which of one parametrization's runs are beyond Tukey's fences."""
    low, high = np.quantile(logs, [0.25, 0.75])
    reach = FENCE * (high - low)
    return (logs < low - reach) | (logs > high + reach)


def _groups(runs: pd.DataFrame) -> list[np.ndarray]:
    counted = (runs["effect"] == "sample") & runs["key"].notna() & (runs["elapsed"] > 0)
    codes, keys = pd.factorize(runs.loc[counted, "key"])
    elapsed = runs.loc[counted, "elapsed"].to_numpy(dtype=np.float64)
    return [elapsed[codes == code][-MOST_RUNS:] for code in range(len(keys))]

"""What else could have been claimed with: for comparison only."""

from __future__ import annotations

import numpy as np
from io_autotune_report.analyse.estimators.ranks import Array
from numpy.typing import NDArray
from scipy.stats import t as student

from guarantees.worlds import Blocks

TRIM = 0.2
"""Of each end, as Yuen (1974) has it."""


def yuen(control: Array, tuned: Array) -> tuple[Array, Array, Array]:
    """Difference of trimmed means of the last axes, its standard error, degrees of freedom."""
    means, squares, freedoms = [], [], []
    for logs in (control, tuned):
        runs = logs.shape[-1]
        cut = int(TRIM * runs)
        ordered = np.sort(logs, axis=-1)
        kept = ordered[..., cut : runs - cut]
        winsorised = np.clip(ordered, kept[..., :1], kept[..., -1:])
        size = kept.shape[-1]
        means.append(kept.mean(axis=-1))
        squares.append((runs - 1) * winsorised.var(axis=-1, ddof=1) / (size * (size - 1)))
        freedoms.append(size - 1)
    error = np.sqrt(squares[0] + squares[1])
    freedom = error**4 / (squares[0] ** 2 / freedoms[0] + squares[1] ** 2 / freedoms[1])
    return means[0] - means[1], error, freedom


def yuen_claims(blocks: Blocks, looks: list[int], level: list[float]) -> NDArray[np.int64]:
    """1, -1 or 0 by study and look: Yuen's test at a two-sided level of its own for each look."""
    said = []
    for seen, error in zip(looks, level, strict=True):
        tuned = blocks.tuned[:, :seen].reshape(blocks.tuned.shape[0], -1)
        apart, deviation, freedom = yuen(blocks.control[:, :seen], tuned)
        sure = np.abs(apart) > student.ppf(1 - error / 2, freedom) * deviation
        said.append(np.where(sure, np.sign(apart), 0).astype(np.int64))
    return np.stack(said, axis=1)

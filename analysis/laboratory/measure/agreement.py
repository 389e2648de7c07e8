"""How far the blocks agree: what part of the variance is the parametrization, what part the hour.

Pure. Rows are parametrizations, columns blocks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles

Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Agreement:
    """The figures of a two-way layout without replication."""

    parametrization: float
    """The share of the variance of log time between parametrizations."""
    block: float
    """Likewise between blocks: drift."""
    rest: float
    """Likewise of what neither explains: noise."""
    icc_run: float
    """Intraclass correlation of single runs, ICC(2,1): absolute agreement of two blocks."""
    icc_mean: float
    """That of means over all blocks, ICC(2,k)."""
    kendall_w: float
    """Kendall's coefficient of concordance of the blocks' rankings, 0 to 1."""
    friedman: float
    """Friedman's statistic, chi-squared with (parametrizations - 1) degrees of freedom if they
    were all alike."""
    medians: tuple[float, ...]
    """Each block's median over the median of all blocks' medians."""
    outliers: float
    """The share of runs beyond Tukey's upper fence of their parametrization."""


def agreement(times: Matrix) -> Agreement:
    """Analyses times in seconds; needs two parametrizations and two blocks.

    Variance components by expected mean squares, negative ones set to zero; ICC after Shrout and
    Fleiss (1979); concordance with average ranks, corrected for ties.
    """
    n, k = len(times), len(times[0])
    logs = [[math.log(time) for time in row] for row in times]
    whole = fmean(value for row in logs for value in row)
    rows = [fmean(row) for row in logs]
    columns = [fmean(column) for column in zip(*logs, strict=True)]
    between_rows = k * sum((mean - whole) ** 2 for mean in rows) / (n - 1)
    between_columns = n * sum((mean - whole) ** 2 for mean in columns) / (k - 1)
    error = sum(
        (logs[i][j] - rows[i] - columns[j] + whole) ** 2 for i in range(n) for j in range(k)
    ) / ((n - 1) * (k - 1))
    row_part = max(0.0, (between_rows - error) / k)
    column_part = max(0.0, (between_columns - error) / n)
    parts = row_part + column_part + error
    concordance = kendall_w(times)
    medians = [median(column) for column in zip(*times, strict=True)]
    return Agreement(
        parametrization=row_part / parts,
        block=column_part / parts,
        rest=error / parts,
        icc_run=(between_rows - error)
        / (between_rows + (k - 1) * error + k * (between_columns - error) / n),
        icc_mean=(between_rows - error) / (between_rows + (between_columns - error) / n),
        kendall_w=concordance,
        friedman=k * (n - 1) * concordance,
        medians=tuple(value / median(medians) for value in medians),
        outliers=fmean(value > _fence(row) for row in times for value in row),
    )


def kendall_w(times: Matrix) -> float:
    """Kendall's W (Kendall and Babington Smith 1939), ties corrected: 1 if all rank alike."""
    n, k = len(times), len(times[0])
    ranked = [ranks(column) for column in zip(*times, strict=True)]
    sums = [sum(block[row] for block in ranked) for row in range(n)]
    spread = sum((total - k * (n + 1) / 2) ** 2 for total in sums)
    ties = sum(
        count**3 - count for block in ranked for count in (block.count(rank) for rank in set(block))
    )
    return 12 * spread / (k**2 * (n**3 - n) - k * ties)


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def _fence(row: Sequence[float]) -> float:
    low, _, high = quantiles(row, n=4, method="inclusive")
    return high + 1.5 * (high - low)

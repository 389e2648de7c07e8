"""The agreement of two rankings."""

import math
from collections.abc import Sequence
from itertools import pairwise

from scipy.stats import kendalltau


def tau(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Kendall's tau-b (Kendall 1945) of two columns, -1 to 1; None if a column is all ties."""
    value = float(kendalltau(one, other).statistic)
    return None if math.isnan(value) else value


def rounded(figure: float | None) -> float:
    """A figure as it is printed, 0 for None: figures that print alike are ties."""
    return float(f"{figure or 0.0:.3g}")


def order(names: Sequence[str], column: Sequence[float], higher: bool) -> str:
    """The names from the best to the worst, as in `a > b = c`."""
    ranked = sorted(
        zip(column, names, strict=True), key=lambda pair: -pair[0] if higher else pair[0]
    )
    text = ranked[0][1]
    for (before, _), (value, name) in pairwise(ranked):
        text += f" {'=' if value == before else '>'} {name}"
    return text

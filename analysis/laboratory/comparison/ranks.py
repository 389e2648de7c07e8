"""How far two rankings agree."""

import math
from collections.abc import Sequence
from itertools import pairwise

from scipy.stats import kendalltau


def tau(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Kendall's tau-b of two columns: 1 if they rank alike, -1 if the other way round.

    Pairs that are tied in one column count for half a place in each direction (Kendall 1945). None
    where all of a column are tied.
    """
    value = float(kendalltau(one, other).statistic)
    return None if math.isnan(value) else value


def rounded(figure: float | None) -> float:
    """A figure as it is printed, 0 if there is none: what reads alike is a tie."""
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

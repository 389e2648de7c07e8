"""Rankings, as they are printed."""

from collections.abc import Sequence
from itertools import pairwise


def rounded(figure: float | None) -> float:
    """A figure as it is printed, 0 for None: figures that print alike are ties."""
    return float(f"{figure or 0.0:.3g}")


def order(names: Sequence[str], column: Sequence[float], higher: bool, tie: str = " =") -> str:
    """The names from the best to the worst, as in `a > b = c`; `tie` joins those of one figure."""
    ranked = sorted(
        zip(column, names, strict=True), key=lambda pair: -pair[0] if higher else pair[0]
    )
    text = ranked[0][1]
    for (before, _), (value, name) in pairwise(ranked):
        text += f"{tie if value == before else ' >'} {name}"
    return text

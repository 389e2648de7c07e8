"""Figures: ratios with their intervals, against an aim. Pure."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LEVEL = 0.95
"""Of all intervals."""
RESAMPLES = 2000
"""Of a bootstrap."""

# Student's t at 0.975, by degrees of freedom from 1; beyond the last the normal's is near enough.
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.960


@dataclass(frozen=True)
class Estimate:
    """A number with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return it with as many digits as the interval carries, and never less than two."""
        sizes = [self.high - self.low, abs(self.value)]
        wanted = [1 - math.floor(math.log10(size)) for size in sizes if 0 < size < math.inf]
        digits = min(max(0, *wanted, 0), 4)
        return f"{self.value:.{digits}f} ({self.low:.{digits}f} .. {self.high:.{digits}f})"


@dataclass(frozen=True)
class Aim:
    """What a figure is to be: at most, or at least, so much."""

    limit: float
    at_least: bool = False

    def __str__(self) -> str:
        """Return it in words."""
        return f"{'at least' if self.at_least else 'at most'} {self.limit:g}"

    def verdict(self, figure: Estimate) -> str:
        """Say whether a figure meets it, and whether its whole interval does."""
        sign = 1.0 if self.at_least else -1.0
        if sign * figure.value < sign * self.limit:
            return "missed"
        worst = figure.low if self.at_least else figure.high
        return "met" if sign * worst >= sign * self.limit else "met, its interval is not within"


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    what: str
    unit: str
    """``ratio``, or that of a difference."""
    estimate: Estimate
    aim: Aim | None
    detail: str

    def row(self, measured: str) -> str:
        """Return the figure as a row of a Markdown table, with when and on what it was measured."""
        aim, verdict = (
            ("", "") if self.aim is None else (str(self.aim), self.aim.verdict(self.estimate))
        )
        cells = [self.what, f"{self.estimate}", self.unit, aim, verdict, self.detail, measured]
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| what | figure, 95 % interval | unit | aim | | how it came about | measured |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)


def table(rows: Iterable[str]) -> str:
    """Return rows as a Markdown table."""
    return "\n".join([HEAD, *rows])


def renewed(text: str, rows: Iterable[str]) -> list[str]:
    """Return the rows of the table in a text, those that were measured anew in their old place."""
    new = {_what(row): row for row in rows}
    lines = (line for line in text.splitlines() if line.startswith("| "))
    known = {_what(line): line for line in lines if line not in HEAD}
    return list((known | new).values())


def _what(row: str) -> str:
    return row.split(" | ", maxsplit=1)[0]


def ratio_of_rounds(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate:
    """Return the geometric mean of the ratios of rounds, by Student's t on their logarithms."""
    logs = [math.log(a / b) for a, b in zip(numerators, denominators, strict=True)]
    mean = mean_of_rounds(logs)
    return Estimate(math.exp(mean.value), math.exp(mean.low), math.exp(mean.high))


def mean_of_rounds(values: Sequence[float]) -> Estimate:
    """Return the mean of some rounds, by Student's t; of one round it is anything."""
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Estimate(mean, -math.inf, math.inf)
    degrees = len(values) - 1
    t = _T[degrees - 1] if degrees <= len(_T) else _NORMAL
    half = t * statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half)


def ratio_of_pairs(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate:
    """Return the median of the ratios of many short pairs, by a bootstrap over the pairs."""
    return median([a / b for a, b in zip(numerators, denominators, strict=True)])


def median(values: Sequence[float]) -> Estimate:
    """Return the median, by a bootstrap: what disturbs a few of many moves it little."""
    rng = random.Random(1)
    resampled = sorted(
        statistics.median(rng.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    outside = round(RESAMPLES * (1.0 - LEVEL) / 2.0)
    return Estimate(statistics.median(values), resampled[outside], resampled[-1 - outside])

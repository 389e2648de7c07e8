"""What a paper claims, beside what comes out here: paired differences over seeds, and a verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from comparison.markdown import number, table
from scipy.stats import t as student

HOLDS, NOT, UNTRIED = "holds here", "does not hold here", "cannot be tried here"


@dataclass(frozen=True)
class Difference:
    """A mean difference of pairs, with its 95 % interval."""

    mean: float
    low: float
    high: float

    def told(self) -> str:
        """As pages print it."""
        return f"{number(self.mean)} ({number(self.low)} to {number(self.high)})"


def paired(one: Sequence[float], other: Sequence[float]) -> Difference:
    """`one` minus `other`, seed by seed, with Student's interval of the mean."""
    of = [a - b for a, b in zip(one, other, strict=True)]
    mean = fmean(of)
    half = float(student.ppf(0.975, len(of) - 1)) * stdev(of) / len(of) ** 0.5
    return Difference(mean, mean - half, mean + half)


def column(method: Mapping[str, Any], metric: str) -> list[float | None]:
    """A metric of each study of a method, as `io-autotune-simulate --per-seed` prints it."""
    names = [figure["metric"] for figure in method["figures"]]
    place = names.index(metric)
    return [study["figures"][place] for study in method["studies"]]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, whether it holds here, and by which figure or test."""

    words: str
    verdict: str
    figure: str


def rows(claims: Sequence[Claim]) -> list[str]:
    """The table of a page."""
    head = ["the paper", "verdict", "by which figure or test"]
    return table(head, [[one.words, one.verdict, one.figure] for one in claims], left=3)


def below(words: str, differences: Mapping[str, Difference], unit: str = "") -> Claim:
    """A claim that differences are below zero: it holds if every interval lies below."""
    told = "; ".join(f"{name} {of.told()}{unit}" for name, of in differences.items())
    return judged(words, {name: of.high < 0.0 for name, of in differences.items()}, told)


def above(words: str, differences: Mapping[str, Difference], unit: str = "") -> Claim:
    """A claim that differences are above zero: it holds if every interval lies above."""
    told = "; ".join(f"{name} {of.told()}{unit}" for name, of in differences.items())
    return judged(words, {name: of.low > 0.0 for name, of in differences.items()}, told)


def judged(words: str, holds: Mapping[str, bool], figure: str) -> Claim:
    """A claim of several tables holds if it does on each; else those that have it are counted."""
    having = sum(holds.values())
    count = "" if len(holds) == 1 or having == len(holds) else f" ({having} of {len(holds)})"
    return Claim(words, (HOLDS if having == len(holds) else NOT) + count, figure)

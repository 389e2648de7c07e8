"""What a paper claims, beside what comes out here: differences with intervals, and a verdict."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from statistics import NormalDist, fmean, stdev, variance
from typing import Any

from comparison.markdown import number, table
from scipy.stats import t as student

HOLDS, NOT = "holds here", "does not hold here"
UNDECIDED, UNTRIED = "not decided here", "cannot be tried here"
LEVEL = 0.95
"""Of intervals."""
NOTHING = 1e-9
"""What is printed as 0: sums err by as much."""
RESAMPLES = 2000
"""Of a bootstrap."""


class Side(Enum):
    """What one comparison says of a claim."""

    FOR = "for"
    AGAINST = "against"
    OPEN = "undecided"


@dataclass(frozen=True)
class Difference:
    """A difference, with its 95 % interval."""

    mean: float
    low: float
    high: float

    def told(self) -> str:
        """As pages print it."""
        mean, low, high = (
            number(0.0 if abs(value) < NOTHING else value)
            for value in (self.mean, self.low, self.high)
        )
        return f"{mean} ({low} to {high})"

    def side(self, claimed: int, bound: float = 0.0) -> Side:
        """Of a claim that it is above (1) or below (-1) the bound; across it nothing is decided."""
        if self.low > bound:
            return Side.FOR if claimed > 0 else Side.AGAINST
        if self.high < bound:
            return Side.FOR if claimed < 0 else Side.AGAINST
        return Side.OPEN

    def within(self, bound: float) -> Side:
        """Of a claim that there is no difference: none beyond the bound, either way."""
        if -bound < self.low and self.high < bound:
            return Side.FOR
        return Side.AGAINST if self.low > bound or self.high < -bound else Side.OPEN


def mean(of: Sequence[float], *, cases: int = 1) -> Difference:
    """A mean with Student's interval; at 5 % over so many cases."""
    center = fmean(of)
    half = float(student.ppf(_quantile(cases), len(of) - 1)) * stdev(of) / len(of) ** 0.5
    return Difference(center, center - half, center + half)


def share(having: int, of: int) -> Difference:
    """A share of studies, %, with Wilson's interval."""
    quantile = NormalDist().inv_cdf((1.0 + LEVEL) / 2.0)
    part, weight = having / of, quantile**2 / of
    center = (part + weight / 2.0) / (1.0 + weight)
    half = quantile * math.sqrt(part * (1.0 - part) / of + weight / (4.0 * of)) / (1.0 + weight)
    low = 0.0 if having == 0 else 100.0 * (center - half)
    high = 100.0 if having == of else 100.0 * (center + half)
    return Difference(100.0 * part, low, high)


def shares_apart(one: Sequence[float], other: Sequence[float]) -> Difference:
    """The share of values above 0 in `one` minus that in `other`, in percentage points.

    With Agresti and Caffo's interval, which is of no width nowhere, and not beyond what can be.
    """
    quantile = NormalDist().inv_cdf((1.0 + LEVEL) / 2.0)
    having = [sum(value > 0.0 for value in of) for of in (one, other)]
    raw = 100.0 * (having[0] / len(one) - having[1] / len(other))
    near = [(had + 1) / (len(of) + 2) for had, of in zip(having, (one, other), strict=True)]
    error = math.sqrt(
        sum(
            part * (1.0 - part) / (len(of) + 2) for part, of in zip(near, (one, other), strict=True)
        )
    )
    center, half = 100.0 * (near[0] - near[1]), 100.0 * quantile * error
    return Difference(raw, max(center - half, -100.0), min(center + half, 100.0))


def paired(one: Sequence[float], other: Sequence[float], *, cases: int = 1) -> Difference:
    """`one` minus `other`, seed by seed, with Student's interval of the mean."""
    return mean([a - b for a, b in zip(one, other, strict=True)], cases=cases)


def unpaired(one: Sequence[float], other: Sequence[float], *, cases: int = 1) -> Difference:
    """The mean of `one` minus that of `other`, with Welch's interval."""
    parts = [variance(of) / len(of) for of in (one, other)]
    center = fmean(one) - fmean(other)
    if not any(parts):
        return Difference(center, center, center)
    below = sum(part**2 / (len(of) - 1) for part, of in zip(parts, (one, other), strict=True))
    half = float(student.ppf(_quantile(cases), sum(parts) ** 2 / below)) * sum(parts) ** 0.5
    return Difference(center, center - half, center + half)


def bootstrapped(statistic: Callable[[Sequence[int]], float], studies: int) -> Difference:
    """A statistic of all studies, with the percentiles' interval over studies drawn again."""
    random = Random(0)
    drawn = sorted(
        statistic([random.randrange(studies) for _ in range(studies)]) for _ in range(RESAMPLES)
    )
    tail = (1.0 - LEVEL) / 2.0
    low, high = drawn[int(tail * RESAMPLES)], drawn[int((1.0 - tail) * RESAMPLES) - 1]
    return Difference(statistic(range(studies)), low, high)


def column(method: Mapping[str, Any], metric: str) -> list[float | None]:
    """A metric of each study of a method, as `io-autotune-simulate --per-seed` prints it."""
    names = [figure["metric"] for figure in method["figures"]]
    place = names.index(metric)
    return [study["figures"][place] for study in method["studies"]]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, whether it holds here, and by which figure or test."""

    words: str
    """The paper's: in quotation marks, or told in ours."""
    verdict: str
    figure: str
    tried: str = ""
    """How we read the sentence, and what is compared, with our bounds: no words of the paper."""


def rows(claims: Sequence[Claim], source: str = "the paper") -> list[str]:
    """The table of a page; `source` is what the sentences are of."""
    head = [source, "tried as", "verdict", "by which figure or test"]
    return table(
        head, [[one.words, one.tried, one.verdict, one.figure] for one in claims], left=len(head)
    )


def below(
    words: str,
    differences: Mapping[str, Difference],
    unit: str = "",
    bound: float = 0.0,
    tried: str = "",
) -> Claim:
    """A claim that differences are below the bound, in each comparison."""
    sides = [of.side(-1, bound) for of in differences.values()]
    return Claim(words, verdict(sides), listed(differences, unit), tried)


def above(
    words: str,
    differences: Mapping[str, Difference],
    unit: str = "",
    bound: float = 0.0,
    tried: str = "",
) -> Claim:
    """A claim that differences are above the bound, in each comparison."""
    sides = [of.side(1, bound) for of in differences.values()]
    return Claim(words, verdict(sides), listed(differences, unit), tried)


def alike(
    words: str,
    differences: Mapping[str, Difference],
    bound: float,
    unit: str = "",
    tried: str = "",
) -> Claim:
    """A claim that there is no difference: each interval is within the bound, either way."""
    sides = [of.within(bound) for of in differences.values()]
    return Claim(words, verdict(sides), listed(differences, unit), tried)


def judged(words: str, sides: Mapping[str, Side | bool], figure: str, tried: str = "") -> Claim:
    """A claim of several comparisons, some of which may be facts that need no interval."""
    return Claim(words, verdict([_side(one) for one in sides.values()]), figure, tried)


def some(words: str, sure: int, figure: str, tried: str = "") -> Claim:
    """A claim of which one case is enough: `sure` ones, at 5 % over all that were looked at.

    Without one nothing is decided, since there may be a case that noise hides.
    """
    return Claim(words, HOLDS if sure else UNDECIDED, figure, tried)


def untried(words: str, why: str) -> Claim:
    """A claim against which nothing that was measured here could speak."""
    return Claim(words, UNTRIED, why)


def proven(words: str, figure: str, tried: str = "") -> Claim:
    """A claim of the program itself, which the test that `figure` names would refute."""
    return Claim(words, HOLDS, figure, tried)


def verdict(sides: Sequence[Side]) -> str:
    """Holds if every comparison is for it, does not if one is against it, else is not decided."""
    if Side.AGAINST in sides:
        word = NOT
    elif Side.OPEN in sides:
        word = UNDECIDED
    else:
        word = HOLDS
    counts = [f"{sides.count(side)} {side.value}" for side in Side if side in sides]
    return word if len(sides) == 1 or word == HOLDS else f"{word} ({', '.join(counts)})"


def with_readings(
    readings: Mapping[str, Claim], these: str = "this reading", *, counted: bool = True
) -> Claim:
    """The claim under the first reading of a paper; under the others where they say otherwise.

    If `counted`, another count of comparisons says otherwise too; else only another word does.
    """
    (_, first), *others = readings.items()

    def said(of: Claim) -> str:
        return of.verdict if counted else of.verdict.split(" (")[0]

    different = {name: of.verdict for name, of in others if said(of) != said(first)}
    if not different:
        return first
    told = "; ".join(f"{name}: {word}" for name, word in different.items())
    figure = f"{first.figure}. With other readings: {told}"
    if first.verdict != HOLDS:
        return replace(first, figure=figure)
    if any(of.verdict == HOLDS for _, of in others):
        return replace(first, verdict=f"{HOLDS}, but not with each reading", figure=figure)
    return replace(first, verdict=f"{HOLDS} only with {these}", figure=figure)


def listed(differences: Mapping[str, Difference], unit: str = "") -> str:
    """The differences, as pages print them."""
    return "; ".join(f"{name} {of.told()}{unit}" for name, of in differences.items())


def _quantile(cases: int) -> float:
    """Of two-sided intervals that together err as often as one of them at `LEVEL`."""
    return 1.0 - (1.0 - LEVEL) / (2.0 * cases)


def _side(of: Side | bool) -> Side:
    if isinstance(of, Side):
        return of
    return Side.FOR if of else Side.AGAINST

"""Analyses of variance of a measured table's times by its parameters."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from peers.tables import Point, Table
from scipy.stats import f as fisher

SIGNIFICANT = 0.05
"""Of a test, or of several together."""


@dataclass(frozen=True)
class Effect:
    """Of a parameter, or of two together beyond each by itself: Fisher's F, and its p."""

    name: str
    ratio: float
    p: float


def surely(effects: Sequence[Effect]) -> list[bool]:
    """Which of these there are, at 5 % over all of them (Bonferroni)."""
    return [effect.p * len(effects) < SIGNIFICANT for effect in effects]


def main_effects(on: Table) -> list[Effect]:
    """Of each parameter, where all others are accounted for too (no interactions).

    The grid must be whole: then sums of squares add up.
    """
    return _tested(on, [(place,) for place in range(len(on.parameters))], [])


def interactions(on: Table) -> list[Effect]:
    """Of each two parameters, what both together do beyond each by itself."""
    places = range(len(on.parameters))
    return _tested(on, list(combinations(places, 2)), [(place,) for place in places])


def _tested(
    on: Table, terms: Sequence[tuple[int, ...]], besides: Sequence[tuple[int, ...]]
) -> list[Effect]:
    """Effects of the terms, against what these and the terms besides leave."""
    total = _between(on, lambda point: point)
    squares = {term: _square(on, term) for term in [*terms, *besides]}
    freedom = {term: _freedom(on, term) for term in squares}
    rest = len(on.points) - 1 - sum(freedom.values())
    error = (total - sum(squares.values())) / rest
    effects = []
    for term in terms:
        ratio = squares[term] / freedom[term] / error
        name = " and ".join(on.parameters[place].name for place in term)
        effects.append(Effect(name, ratio, float(fisher.sf(ratio, freedom[term], rest))))
    return effects


def _square(on: Table, term: tuple[int, ...]) -> float:
    """The sum of squares of a term, without those of the terms within it."""
    whole = _between(on, lambda point: tuple(point[place] for place in term))
    if len(term) == 1:
        return whole
    return whole - sum(_square(on, (place,)) for place in term)


def _freedom(on: Table, term: tuple[int, ...]) -> int:
    found = 1
    for place in term:
        found *= on.parameters[place].levels - 1
    return found


def _between(on: Table, key: Callable[[Point], Hashable]) -> float:
    """The sum of squares between groups of points."""
    groups: dict[Hashable, list[float]] = {}
    for point, time in zip(on.points, on.truths, strict=True):
        groups.setdefault(key(point), []).append(time)
    grand = fmean(on.truths)
    return sum(len(of) * (fmean(of) - grand) ** 2 for of in groups.values())

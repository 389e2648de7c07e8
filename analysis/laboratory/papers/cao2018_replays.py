"""Cao 2018: what was replayed of each method on each table, and when it found what is near-optimal.

Times are in runs of the default. What a table lacks takes the default's time, as a run that fails;
on the table of file systems what is invalid takes none, of which the paper says nothing. The
paper's runs are of equal length but for their setup: so time can be counted in runs as well.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from random import Random
from statistics import fmean, median
from typing import Any

from peers.tables import Table
from scipy.stats import t as student

from papers import file_systems
from papers.claims import Difference, paired, share, shares_apart, unpaired

NEAR_OPTIMAL = 0.99
"""Of the best throughput: near-optimal is above it (section 4.2)."""
EASY = 0.045
"""The share of near-optimal configurations of the paper's M2-Mailserver-HDD3."""
ONE_OF = 20
"""One of so many studies may have ended before the time at which methods are compared."""
EIGHTH = 8
"""Of a study's runs one of so many are told at its beginning, and at its end."""
BEGIN = ("GA", "BO")
"""The methods that begin with each file system's default."""
LONG = 50.0
"""Runs of the default: the paper's five hours are about a hundred."""


def times(study: Mapping[str, Any], on: Table, by_runs: bool = False) -> list[float]:
    """When each run of a study ended, in runs of the default, or of runs that all take as long."""
    missing = 0.0 if on.name == file_systems.NAME else 1.0
    default = on.truths[on.default]
    taken = [
        missing if place is None else 1.0 if by_runs else on.truths[place] / default
        for place in study["runs"]
    ]
    return list(accumulate(taken))


def when(
    study: Mapping[str, Any], on: Table, close: frozenset[int], by_runs: bool = False
) -> float | None:
    """When a study first ended a run of one of these, in runs of the default."""
    ended = zip(study["runs"], times(study, on, by_runs), strict=True)
    return next((time for place, time in ended if place in close), None)


def near_optimal(on: Table, least: float = NEAR_OPTIMAL) -> frozenset[int]:
    """What has more than this share of the best throughput."""
    best = on.truths[on.best]
    close = {place for place, time in enumerate(on.truths) if best / time > least}
    return frozenset(close | {on.best})


def best_of(on: Table, part: float = EASY) -> frozenset[int]:
    """A share of all parametrizations: the best of them."""
    ordered = sorted(range(len(on.truths)), key=on.truths.__getitem__)
    return frozenset(ordered[: max(round(part * len(ordered)), 1)])


def promising(on: Table) -> frozenset[int]:
    """What has the best's values of the two parameters that matter most (table 5)."""
    names = [parameter.name for parameter in on.parameters]
    places = [names.index(of.name) for of, _ in file_systems.first_and_second(on)]
    best = on.points[on.best]
    return frozenset(
        nth
        for nth, point in enumerate(on.points)
        if all(point[place] == best[place] for place in places)
    )


def share_within(runs: Sequence[int | None], wanted: frozenset[int]) -> float:
    """How many of the valid runs are of one of these, %; 0 of none."""
    valid = [place for place in runs if place is not None]
    return 100.0 * fmean(place in wanted for place in valid) if valid else 0.0


def unsteadiness(values: Sequence[float]) -> float:
    """A standard deviation by the differences of neighbours: a trend hardly counts."""
    steps = [(after - before) ** 2 for before, after in pairwise(values)]
    return math.sqrt(fmean(steps) / 2.0) if steps else 0.0


def surely_more(one: Sequence[float], other: Sequence[float], comparisons: int) -> bool:
    """Whether more studies found it, at 5 % over so many comparisons; by Agresti and Caffo."""
    shares, parts = [], []
    for of in (one, other):
        share = (sum(value > 0.0 for value in of) + 1) / (len(of) + 2)
        shares.append(share)
        parts.append(share * (1.0 - share) / (len(of) + 2))
    quantile = float(student.ppf(1.0 - 0.025 / comparisons, len(one) + len(other) - 2))
    return shares[0] - shares[1] > quantile * sum(parts) ** 0.5


@dataclass(frozen=True)
class Replayed:
    """The studies of all methods on a table."""

    on: Table
    methods: Mapping[str, Mapping[str, Any]]
    by_runs: bool = False
    """Whether all runs count as equally long."""
    _known: dict[tuple[str, frozenset[int]], list[float | None]] = field(default_factory=dict)
    """What was asked before."""

    def studies(self, name: str) -> list[Mapping[str, Any]]:
        """Of a method; random search among what is valid where the rest takes no time."""
        if name == "RS" and self.on.name == file_systems.NAME:
            return self._drawn
        return list(self.methods[name]["studies"])

    @cached_property
    def _drawn(self) -> list[Mapping[str, Any]]:
        """As the method: without replacement, the default first."""
        found: list[Mapping[str, Any]] = []
        for seed in range(len(self.methods["RS"]["studies"])):
            others = [place for place in range(len(self.on.points)) if place != self.on.default]
            Random(seed).shuffle(others)
            found.append({"runs": [self.on.default, *others]})
        return found

    @cached_property
    def horizon(self) -> float:
        """Equal time: no more than one of twenty studies of any method has ended before."""
        ends = []
        for name in self.methods:
            totals = sorted(times(study, self.on, self.by_runs)[-1] for study in self.studies(name))
            ends.append(totals[len(totals) // ONE_OF])
        return min(ends)

    def found(self, name: str, close: frozenset[int], time: float) -> list[float]:
        """100 for each study that had run one of these by a time."""
        return [100.0 * (at is not None and at <= time) for at in self._when(name, close)]

    def until(self, name: str, close: frozenset[int], time: float) -> list[float]:
        """When each study first ran one of these, or the time if that was later."""
        return [time if at is None else min(at, time) for at in self._when(name, close)]

    def _when(self, name: str, close: frozenset[int]) -> list[float | None]:
        key = (name, close)
        if key not in self._known:
            self._known[key] = [
                when(study, self.on, close, self.by_runs) for study in self.studies(name)
            ]
        return self._known[key]

    def throughput(self, name: str) -> list[float]:
        """The mean throughput of each study's runs, over the best's."""
        return [fmean(of) if of else 0.0 for of in self._throughputs(name)]

    def varying(self, name: str) -> list[float]:
        """The standard deviation of the throughputs of each study's runs, over the best's.

        By the differences of runs that follow each other (von Neumann's): what a study gains from
        its beginning to its end hardly counts.
        """
        return [unsteadiness(of) for of in self._throughputs(name)]

    @cached_property
    def promising(self) -> frozenset[int]:
        """What has the best's values of the two parameters that matter most (table 5)."""
        return promising(self.on)

    def in_promising(self, name: str, begin: float = 0.0, end: float = 1.0) -> list[float]:
        """How many of each study's valid runs have these, %, of a part of them."""
        return [
            share_within(runs[round(begin * len(runs)) : round(end * len(runs))], self.promising)
            for study in self.methods[name]["studies"]
            for runs in [study["runs"]]
        ]

    def found_after_promising(self, name: str, close: frozenset[int]) -> list[float]:
        """Of the studies that have these in half of their runs: 100 if it was found in the end."""
        return [
            100.0 * (not close.isdisjoint(study["runs"]))
            for study in self.methods[name]["studies"]
            if not self.promising.isdisjoint(study["runs"][: len(study["runs"]) // 2])
        ]

    def bad(self, name: str) -> list[float]:
        """Of each study's runs those that are slower than the table's median, %."""
        least = self.on.truths[self.on.best] / median(self.on.truths)
        return [
            100.0 * fmean(one < least for one in of) if of else 0.0
            for of in self._throughputs(name)
        ]

    def _throughputs(self, name: str) -> list[list[float]]:
        """Of each study's runs, over the best's; on file systems of those that are valid."""
        on = self.on
        best, default = on.truths[on.best], on.truths[on.default]
        dense = on.name != file_systems.NAME
        return [
            [
                best / (default if place is None else on.truths[place])
                for place in study["runs"]
                if dense or place is not None
            ]
            for study in self.methods[name]["studies"]
        ]

    def invalid(self, name: str) -> tuple[list[float], list[float]]:
        """By study, how many of the first eighth of its runs were invalid, %, and of the last."""
        runs = [study["runs"] for study in self.methods[name]["studies"]]
        first = [of[: len(of) // EIGHTH] for of in runs]
        last = [of[-(len(of) // EIGHTH) :] for of in runs]
        return (
            [100.0 * fmean(place is None for place in of) for of in first],
            [100.0 * fmean(place is None for place in of) for of in last],
        )

    def gain(self, name: str) -> list[float]:
        """The best throughput that each study found over the default's, %."""
        return [self._gain(study["runs"]) for study in self.methods[name]["studies"]]

    def higher(self, name: str) -> list[bool]:
        """Which studies run what is faster than all defaults that the method begins with."""
        on = self.on
        begun = file_systems.defaults(on) if name in BEGIN else [on.default]
        start = self._gain(begun)
        return [gain > start for gain in self.gain(name)]

    def gain_by(self, name: str, time: float) -> list[float]:
        """The same of the runs that had ended by a time."""
        gains = []
        for study in self.studies(name):
            ended = zip(study["runs"], times(study, self.on, self.by_runs), strict=True)
            gains.append(self._gain([place for place, at in ended if at <= time]))
        return gains

    def _gain(self, runs: Sequence[int | None]) -> float:
        default = self.on.truths[self.on.default]
        known = [self.on.truths[place] for place in runs if place is not None]
        return 100.0 * (default / min(known or [default]) - 1.0)

    def stays_bad(self, name: str) -> list[float]:
        """Of each study's runs that are slower than the table's median, % after which the next is.

        A study with no such run has 0.
        """
        on = self.on
        middle = median(on.truths)
        shares = []
        for study in self.methods[name]["studies"]:
            slow = [on.truths[place] > middle for place in study["runs"] if place is not None]
            after = [then for now, then in pairwise(slow) if now]
            shares.append(100.0 * fmean(after) if after else 0.0)
        return shares

    def spreads(self, parameter: int, generations: tuple[int, int], members: int) -> list[float]:
        """How much the best value's share of GA's generations grows, percentage points."""
        on = self.on
        wanted = on.points[on.best][parameter]
        grown = []
        for study in self.methods["GA"]["studies"]:
            ends = []
            for nth in generations:
                some = [
                    on.points[place][parameter] == wanted
                    for place in study["runs"][nth * members : (nth + 1) * members]
                    if place is not None
                ]
                if some:
                    ends.append(100.0 * fmean(some))
            grown.append(ends[1] - ends[0] if len(ends) == len(generations) else 0.0)
        return grown


def compared(one: Sequence[float], other: Sequence[float]) -> Difference:
    """Pairs of the seeds that both have."""
    many = min(len(one), len(other))
    return paired(one[:many], other[:many])


def differences(
    tables: Sequence[Replayed],
    figure: Callable[[Replayed, str], list[float]],
    *pairs: tuple[str, str],
) -> dict[str, Difference]:
    """On each table, one method minus another. Valid draws have seeds of their own."""
    found = {}
    for of in tables:
        for one, other in pairs:
            apart = "RS" in (one, other) and of.on.name == file_systems.NAME
            between = unpaired if apart else compared
            name = f"{of.on.name}, {one} - {other}"
            found[name] = between(figure(of, one), figure(of, other))
    return found


def share_differences(
    tables: Sequence[Replayed],
    found: Callable[[Replayed, str], list[float]],
    *pairs: tuple[str, str],
) -> dict[str, Difference]:
    """On each table, the share of studies of one method that have found it minus the other's."""
    return {
        f"{of.on.name}, {one} - {other}": shares_apart(found(of, one), found(of, other))
        for of in tables
        for one, other in pairs
    }


def shares(
    tables: Sequence[Replayed],
    found: Callable[[Replayed, str], list[float]],
    names: Sequence[str],
) -> dict[str, Difference]:
    """On each table, of each method: the share of studies that have found it."""
    told = {}
    for of in tables:
        for name in names:
            hits = found(of, name)
            told[f"{of.on.name}, {name}"] = share(sum(hit > 0.0 for hit in hits), len(hits))
    return told

"""Which parametrizations of a measured table may be its best: noise leaves several."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import fmean, variance

from peers.tables import Table
from scipy.stats import t as student

from papers.claims import Difference


def candidates(on: Table, error: float = 0.05) -> list[int]:
    """The places that are not shown to be slower than the table's least mean.

    By logarithms of the runs, whose variance within a parametrization is pooled, and Bonferroni's
    bound over all parametrizations: the true best is missing with a probability of `error` at most.
    """
    logs = [[math.log(sample.elapsed) for sample in samples] for samples in on.samples]
    spread = math.sqrt(fmean(variance(of) for of in logs))
    freedom = sum(len(of) - 1 for of in logs)
    quantile = float(student.ppf(1.0 - error / (len(logs) - 1), freedom))
    means = [fmean(of) for of in logs]
    best = min(range(len(means)), key=means.__getitem__)

    def surely_slower(place: int) -> bool:
        runs = 1.0 / len(logs[place]) + 1.0 / len(logs[best])
        return means[place] - means[best] > quantile * spread * math.sqrt(runs)

    return [place for place in range(len(means)) if not surely_slower(place)]


def surely_different(tables: Sequence[Table]) -> list[tuple[str, str]]:
    """The pairs of tables over one grid that share no candidate, at 5 % over all tables."""
    sets = {on.name: _settings(on, 0.05 / len(tables)) for on in tables}
    names = list(sets)
    return [
        (one, other)
        for nth, one in enumerate(names)
        for other in names[nth + 1 :]
        if sets[one].isdisjoint(sets[other])
    ]


@dataclass(frozen=True)
class Applied:
    """The best of one table, run under another of the same grid."""

    name: str
    other: str
    share: float
    """Its throughput there over that of the other's best."""
    surely: bool
    """Whether it surely is slower than the other's best, at 5 % over all tables."""
    worse: bool
    """Whether it is slower than the other's default by the means."""
    harms: bool
    """Whether surely, at 5 % over all pairs."""


def applied(tables: Sequence[Table]) -> list[Applied]:
    """Each table's best, by its means, run under each other table."""
    found = []
    pairs = list(permutations(tables, 2))
    sets = {on.name: _settings(on, 0.05 / len(tables)) for on in tables}
    for one, other in pairs:
        setting = _setting(one, one.best)
        place = next(at for at in range(len(other.points)) if _setting(other, at) == setting)
        found.append(
            Applied(
                one.name,
                other.name,
                other.truths[other.best] / other.truths[place],
                setting not in sets[other.name],
                other.truths[place] > other.truths[other.default],
                _surely_slower(other, place, other.default, 0.05 / len(pairs)),
            )
        )
    return found


def _surely_slower(on: Table, place: int, than: int, error: float) -> bool:
    logs = [[math.log(sample.elapsed) for sample in samples] for samples in on.samples]
    spread = math.sqrt(fmean(variance(of) for of in logs))
    freedom = sum(len(of) - 1 for of in logs)
    quantile = float(student.ppf(1.0 - error, freedom))
    runs = 1.0 / len(logs[place]) + 1.0 / len(logs[than])
    return fmean(logs[place]) - fmean(logs[than]) > quantile * spread * math.sqrt(runs)


def _setting(on: Table, place: int) -> tuple[str, ...]:
    return tuple(
        f"{parameter.name} {parameter.values[level]}"
        for parameter, level in zip(on.parameters, on.points[place], strict=True)
    )


def _settings(on: Table, error: float) -> set[tuple[str, ...]]:
    return {_setting(on, place) for place in candidates(on, error)}


def peaks(on: Table, error: float = 0.05) -> int:
    """How many parametrizations surely are faster than all that differ in one parameter."""
    logs = [[math.log(sample.elapsed) for sample in samples] for samples in on.samples]
    spread = math.sqrt(fmean(variance(of) for of in logs))
    freedom = sum(len(of) - 1 for of in logs)
    places = {point: place for place, point in enumerate(on.points)}
    near = [
        [
            places[other]
            for nth, parameter in enumerate(on.parameters)
            for level in range(parameter.levels)
            if (other := (*point[:nth], level, *point[nth + 1 :])) in places and level != point[nth]
        ]
        for point in on.points
    ]
    quantile = float(student.ppf(1.0 - error / sum(map(len, near)), freedom))
    means = [fmean(of) for of in logs]

    def surely_faster(place: int, other: int) -> bool:
        runs = 1.0 / len(logs[place]) + 1.0 / len(logs[other])
        return means[other] - means[place] > quantile * spread * math.sqrt(runs)

    return sum(
        bool(of) and all(surely_faster(place, other) for other in of)
        for place, of in enumerate(near)
    )


def better(on: Table, error: float = 0.05) -> Difference:
    """How many parametrizations, %, are faster than the default, by its own noise.

    The interval is that of the default's mean: the errors of all others even out.
    """
    logs = [[math.log(sample.elapsed) for sample in samples] for samples in on.samples]
    spread = math.sqrt(fmean(variance(of) for of in logs))
    freedom = sum(len(of) - 1 for of in logs)
    half = (
        float(student.ppf(1.0 - error / 2.0, freedom)) * spread / math.sqrt(len(logs[on.default]))
    )

    def share(factor: float) -> float:
        default = on.truths[on.default] * factor
        return 100.0 * fmean(time < default for time in on.truths)

    return Difference(share(1.0), share(math.exp(-half)), share(math.exp(half)))


def worst(on: Table, error: float = 0.05) -> Difference:
    """The throughput of the slowest parametrization over that of the fastest, by their noise."""
    logs = [[math.log(sample.elapsed) for sample in samples] for samples in on.samples]
    spread = math.sqrt(fmean(variance(of) for of in logs))
    freedom = sum(len(of) - 1 for of in logs)
    slowest = max(range(len(logs)), key=on.truths.__getitem__)
    runs = 1.0 / len(logs[slowest]) + 1.0 / len(logs[on.best])
    half = float(student.ppf(1.0 - error / 2.0, freedom)) * spread * math.sqrt(runs)
    share = on.truths[on.best] / on.truths[slowest]
    return Difference(share, share * math.exp(-half), share * math.exp(half))

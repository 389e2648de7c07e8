"""Which parameters act on which measure of a table, and which measure each belongs to."""

import csv
import math
from collections.abc import Mapping
from statistics import NormalDist, correlation, fmean

from peers.tables import Table

from papers import file_systems
from papers.claims import LEVEL, Difference


def shares(on: Table) -> dict[str, dict[str, float]]:
    """By measure and parameter: the adjusted R² of a one-way analysis of the measure's logarithm.

    As `clusters = "covariance"` has it, on the whole table.
    """
    names = [parameter.name for parameter in on.parameters]
    found = {}
    for measure, means in _logs(on).items():
        levels = [sorted({key[place] for key in means}) for place in range(len(names))]
        points = [
            (tuple(levels[place].index(value) for place, value in enumerate(key)), mean)
            for key, mean in means.items()
        ]
        plain = file_systems.shares(points, len(names))
        found[measure] = {
            name: file_systems.adjusted(share, len(points), len(of))
            for name, share, of in zip(names, plain, levels, strict=True)
        }
    return found


def of_time(on: Table) -> dict[str, float]:
    """By parameter the same of the time's logarithm."""
    pairs = [(tuple(p), math.log(time)) for p, time in zip(on.points, on.truths, strict=True)]
    plain = file_systems.shares(pairs, len(on.parameters))
    return {
        parameter.name: file_systems.adjusted(share, len(pairs), parameter.levels)
        for parameter, share in zip(on.parameters, plain, strict=True)
    }


def with_time(on: Table) -> dict[str, Difference]:
    """By measure: the correlation of its logarithm with the time's over all parametrizations.

    With Fisher's interval.
    """
    times = {
        tuple(
            str(parameter.values[level])
            for parameter, level in zip(on.parameters, point, strict=True)
        ): math.log(time)
        for point, time in zip(on.points, on.truths, strict=True)
    }
    found = {}
    for measure, means in _logs(on).items():
        half = NormalDist().inv_cdf((1.0 + LEVEL) / 2.0) / math.sqrt(len(means) - 3)
        of = correlation(list(means.values()), [times[key] for key in means])
        low, high = (math.tanh(math.atanh(of) + side * half) for side in (-1, 1))
        found[measure] = Difference(of, low, high)
    return found


def _logs(on: Table) -> dict[str, dict[tuple[str, ...], float]]:
    """By measure and parametrization, the mean logarithm: a measure of 0 tells nothing."""
    with on.path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = [parameter.name for parameter in on.parameters]
    found = {}
    for measure in on.described["measures"]:
        under: dict[tuple[str, ...], list[float]] = {}
        for row in rows:
            value = float(row[measure])
            if value > 0.0:
                key = tuple(row[name] for name in names)
                under.setdefault(key, []).append(math.log(value))
        found[measure] = {key: fmean(logs) for key, logs in under.items()}
    return found


def by_covariance(of: Mapping[str, Mapping[str, float]]) -> dict[str, list[str]]:
    """The parameters of each measure: each belongs to the one whose variance it explains best."""
    chosen: dict[str, list[str]] = {measure: [] for measure in of}
    for name in next(iter(of.values())):
        chosen[max(of, key=lambda measure: of[measure][name])].append(name)
    return chosen

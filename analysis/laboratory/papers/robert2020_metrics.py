"""Robert 2020: the metrics of its table II beside one another."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from comparison.simulate import figures as simulated

from papers.claims import Difference, Side, paired
from papers.published import CLASSES

HIGHER = {"SuccessRate", "InferiorDefault", "ScoreOptim", "ScoreStability", "Score"}
"""The metrics of which more is better."""
OF_THE_SCORES = (
    "SuccessRate",
    "NbrSteps",
    "DistOptim",
    "AvgDistOptim",
    "InferiorDefault",
    "RegCost",
)
"""Those that the scores are made of."""


def normalised(values: Sequence[float]) -> list[float]:
    """From 0 to 1 over the methods, as `io-autotune-simulate` does for its scores."""
    least, most = min(values), max(values)
    return [(value - least) / (most - least) if most > least else 0.0 for value in values]


def gain(result: Mapping[str, Any], metric: str, one: str, other: str) -> float:
    """By how much one method is better than another, of the metric's range over all methods."""
    [table] = result["tables"]
    values = normalised([simulated(method)[metric] or 0.0 for method in table["methods"]])
    more = values[result["methods"].index(one)] - values[result["methods"].index(other)]
    return more if metric in HIGHER else -more


def trade_offs(
    values: Callable[[str, str], Sequence[float]], here: Sequence[str], there: Sequence[str] = ()
) -> tuple[int, str]:
    """How many pairs of classes are surely ordered one way by a metric and the other by another.

    The one metric is of `here`, the other of `there`, or of `here` too; `values` has those of a
    metric and of a class. At 5 % over all pairs and metrics.
    """
    pairs = list(combinations(CLASSES[:-1], 2))
    metrics = [*here, *there]
    cases = len(pairs) * len(metrics)
    found: dict[tuple[str, str], dict[str, Difference]] = {
        (one, other): {
            metric: paired(values(metric, one), values(metric, other), cases=cases)
            for metric in metrics
        }
        for one, other in pairs
    }

    def ahead(metric: str, of: Difference) -> int:
        """1 if the first of a pair surely is, -1 if the second, else 0."""
        side = of.side(1 if metric in HIGHER else -1)
        return {Side.FOR: 1, Side.AGAINST: -1, Side.OPEN: 0}[side]

    def opposed(of: Mapping[str, Difference]) -> bool:
        return any(
            ahead(first, of[first]) * ahead(second, of[second]) < 0
            for first in here
            for second in there or here
        )

    against = {pair: of for pair, of in found.items() if opposed(of)}
    shown = against or found
    told = [
        f"{one} - {other}, {metric} {difference.told()}"
        for (one, other), of in shown.items()
        for metric, difference in of.items()
        if ahead(metric, difference)
    ]
    what = "surely opposed" if against else "none is surely opposed; sure"
    return len(against), f"of {cases} comparisons {what}: {'; '.join(told) or 'none'}"

"""A study's runs, its recommendation and its figures."""

import math
from collections import Counter
from dataclasses import dataclass

from peers.tables import Table


@dataclass(frozen=True)
class Study:
    """A study: the places of its runs (None: outside the table) and of its recommendation."""

    seed: int
    runs: tuple[int | None, ...]
    recommended: int

    def times(self, table: Table) -> dict[int, list[float]]:
        """The seconds of each place's runs, redrawn from the table."""
        counts = Counter(place for place in self.runs if place is not None)
        return {
            place: [table.draw(place, nth, self.seed) for nth in range(count)]
            for place, count in counts.items()
        }


def common_rule(times: dict[int, list[float]]) -> int | None:
    """The recommendation from the times alone: the lowest posterior mean of log time.

    One-way random effects by the method of moments: means of log time scatter by tau^2 around a
    common mean, single runs by sigma^2 around theirs (pooled over repeated places). A mean of n
    runs shrinks to the common mean by the factor n / (n + sigma^2 / tau^2). Without repeated runs,
    or if the means scatter no more than the noise, it is the lowest mean.
    """
    if not times:
        return None
    logs = {place: [math.log(t) for t in seen] for place, seen in times.items()}
    means = {place: sum(seen) / len(seen) for place, seen in logs.items()}
    common = sum(means.values()) / len(means)
    freedom = sum(len(seen) - 1 for seen in logs.values())
    squares = sum((value - means[place]) ** 2 for place, seen in logs.items() for value in seen)
    within = squares / freedom if freedom else 0.0
    spread = sum((mean - common) ** 2 for mean in means.values()) / max(len(means) - 1, 1)
    between = spread - within * sum(1 / len(seen) for seen in logs.values()) / len(logs)

    def posterior(place: int) -> float:
        if between <= 0.0:
            return means[place]
        n = len(logs[place])
        return common + n * between / (n * between + within) * (means[place] - common)

    return min(means, key=posterior)


@dataclass(frozen=True)
class Score:
    """The figures of one study, on the table's means: the choice is judged, not the noise."""

    recommended: float
    """Its own recommendation, over the true best."""
    common: float
    """The common rule's recommendation, over the true best."""
    average: float
    """The average run, over the true best; runs outside the table left out."""
    slower: float
    """The share of runs that are slower than the default."""
    loss: float
    """What runs take beyond the default, in runs of the default, summed."""
    failed: float
    """The number of runs outside the table."""


def score(table: Table, study: Study) -> Score:
    """The figures of a study."""
    best, default = table.truths[table.best], table.truths[table.default]
    common = common_rule(study.times(table))
    truths = [table.truths[place] for place in study.runs if place is not None] or [default]
    return Score(
        recommended=table.truths[study.recommended] / best,
        common=table.truths[table.default if common is None else common] / best,
        average=sum(truths) / len(truths) / best,
        slower=sum(truth > default for truth in truths) / len(truths),
        loss=sum(max(0.0, truth / default - 1.0) for truth in truths),
        failed=float(sum(place is None for place in study.runs)),
    )

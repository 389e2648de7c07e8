"""What the page says of the records, computed: pure."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from scipy import stats

from field_trial.listing import Setting
from field_trial.records import Record, Run, Said, name_of

DEFAULT = name_of({})
SURE = 0.95
RESAMPLES = 2000
LITTLE = 1.05
"""Below this the grid has nothing to win."""


@dataclass(frozen=True)
class Interval:
    """An estimate, and what it lies between with 95 % confidence; None: that cannot be said."""

    middle: float
    low: float | None = None
    high: float | None = None
    of: int = 0
    """The number of what it is made from."""


Block = dict[str, Run]


def ratios(blocks: Iterable[Block], name: str) -> list[float]:
    """Return the default's time over a setting's, of each block in which both ran to their end."""
    pairs = [(block.get(DEFAULT), block.get(name)) for block in blocks]
    return [
        default.elapsed / other.elapsed
        for default, other in pairs
        if default and other and _usable(default) and _usable(other)
        if default.elapsed and other.elapsed
    ]


def geometric(values: Sequence[float]) -> Interval | None:
    """Return the geometric mean of ratios, with Student's interval of their logarithms."""
    if not values:
        return None
    logs = [math.log(value) for value in values]
    middle = fmean(logs)
    if len(logs) == 1:
        return Interval(math.exp(middle), of=1)
    half = stats.t.ppf((1 + SURE) / 2, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(logs))


def best(blocks: Sequence[Block], grid: Sequence[Setting]) -> tuple[str, Interval | None]:
    """Return the best setting of a grid and the default, and what is won by picking the best.

    A winner that is judged by the runs that made it the winner looks too good. So in each block
    that one is judged which was the best of the other blocks.
    """
    names = [DEFAULT, *map(name_of, grid)]
    judged = []
    for place, block in enumerate(blocks):
        others = [other for at, other in enumerate(blocks) if at != place]
        judged += ratios([block], _winner(others, names))
    return _winner(blocks, names), geometric(judged)


def _winner(blocks: Sequence[Block], names: Sequence[str]) -> str:
    means = {
        name: fmean(map(math.log, values)) for name in names if (values := ratios(blocks, name))
    }
    return max(means, key=lambda name: means[name], default=DEFAULT)


def defaults(record: Record) -> list[float]:
    """Return the times of all runs that had the default, of the study and of the blocks."""
    runs = [*record.study, *(block[DEFAULT] for block in record.blocks if DEFAULT in block)]
    return [run.elapsed for run in runs if not run.setting and run.elapsed and _usable(run)]


def whole_study(record: Record) -> Interval | None:
    """Return what as many runs of the default take, over what all runs of the study have taken.

    All of them: baseline, exploring, comparison, failed. The interval is of the default's mean
    alone, by resampling its runs: what the study took is known.
    """
    taken = sum(run.elapsed or 0.0 for run in record.study)
    known = defaults(record)
    if not known or taken == 0:
        return None
    draw = random.Random(1)
    factor = len(record.study) / taken
    means = sorted(fmean(draw.choices(known, k=len(known))) for _ in range(RESAMPLES))
    edge = round(RESAMPLES * (1 - SURE) / 2)
    low, high = means[edge] * factor, means[-1 - edge] * factor
    return Interval(fmean(known) * factor, low, high, len(record.study))


def noise(record: Record) -> float | None:
    """Return the standard deviation of the default's times, as a share of their mean."""
    known = defaults(record)
    return stdev(known) / fmean(known) if len(known) > 1 else None


def load(record: Record) -> tuple[float, float, float] | None:
    """Return the least, the median and the most load of the machine at the start of a job."""
    loads = [run.load for run in every(record)]
    return (min(loads), median(loads), max(loads)) if loads else None


def every(record: Record) -> list[Run]:
    """Return all runs of an application."""
    return [*record.study, *(run for block in record.blocks for run in block.values())]


def failed(record: Record) -> list[Run]:
    """Return those that do not count."""
    return [run for run in every(record) if not _usable(run)]


def others_results(record: Record) -> list[Setting] | None:
    """Return the settings under which the result was another than the default's.

    None: the default's own runs differ from each other, so that nothing can be said.
    """
    counted = [run for run in every(record) if _usable(run)]
    of_default = {run.result for run in counted if not run.setting}
    if len(of_default) != 1:
        return None
    changed = {name_of(run.setting): run.setting for run in counted if run.result not in of_default}
    return list(changed.values())


def claimed_after(record: Record) -> int | None:
    """Return after how many runs the study claimed the gain that it claims in the end."""
    if not record.said or record.said[-1].verdict != "faster":
        return None
    return _since(record.said, lambda said: said.verdict == "faster")


def nothing_after(record: Record) -> int | None:
    """Return after how many runs the study said, and said to its end, that less than 5 % is to win.

    That is, it keeps the default, or the upper end of the gain is below 5 %.
    """
    if not record.said or not _nothing(record.said[-1]):
        return None
    return _since(record.said, _nothing)


def _nothing(said: Said) -> bool:
    bounded = said.high is not None and said.high < 1 - 1 / LITTLE
    return bounded or (said.phase == "settled" and not said.chosen)


def _since(said: Sequence[Said], holds: Callable[[Said], bool]) -> int:
    """Return the runs of the first that is followed only by such for which something holds."""
    first = said[-1].runs
    for each in reversed(said):
        if not holds(each):
            break
        first = each.runs
    return first


def _usable(run: Run) -> bool:
    return run.counted and run.elapsed is not None

"""Cao 2018, figure 7 and section 4.3: what the genetic algorithm's mutation rate does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from papers import file_systems
from papers.cao2018_replays import surely_more
from papers.claims import (
    Claim,
    Difference,
    Side,
    above,
    below,
    judged,
    listed,
    paired,
    shares_apart,
    some,
    with_readings,
)

RATES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Figure 7's mutation rates."""
BEST_RATE = 5
"""The place of the paper's best of them, 32 %."""

ByTable = Mapping[str, list[list[float]]]
"""By table, for each rate a figure of each study."""


@dataclass(frozen=True)
class Rates:
    """By reading, what each study of each rate did."""

    all_runs: Mapping[str, ByTable]
    """100 if it has run what is near-optimal, else 0."""
    half: Mapping[str, ByTable]
    """The same of the first half of the runs."""
    until_alleles: Mapping[str, ByTable]
    """The runs until one has the best's values of the two parameters that matter most."""
    with_alleles: Mapping[str, ByTable]
    """How many of its runs have these, %."""


def claims(rates: Rates) -> list[Claim]:
    """The paper's sentences, in its order."""
    more = (
        "more studies have run a near-optimal one (above 99.5 % of the best) in all runs, "
        "percentage points"
    )
    return [
        _read(rates.all_runs, _affects),
        _read(rates.all_runs, _hyperparameters),
        _read(
            rates.all_runs,
            _trade_off,
        ),
        _read(
            rates.all_runs,
            lambda of: above(
                '"when increasing the mutation rate, GA has a higher probability to converge to '
                'near-optimal configurations" (figure 7)',
                _shares(of, BEST_RATE, 0),
                tried=f"at 32 %, up to which this is said, over 1 %: {more}",
            ),
        ),
        _read(rates.all_runs, _rising),
        _read(
            rates.half,
            lambda of: above(
                '"within a shorter time period"',
                _shares(of, BEST_RATE, 0),
                tried="the same in the first half of the runs",
            ),
        ),
        _read(
            {
                reading: {name: runs for name, runs in of.items() if name != file_systems.NAME}
                for reading, of in rates.until_alleles.items()
            },
            lambda of: below(
                '"A higher mutation rate means a higher chance of exploration, and thus finding '
                "combinations of well-performing alleles for the dominant genes within a shorter "
                'time"',
                _differences(of, BEST_RATE, 0),
                " runs",
                tried="the runs until one has the best's values of the two parameters that matter "
                "most (table 5): fewer at 32 % than at 1 %; one that never has them counts all. On "
                "file-systems xfs's default, which is given, has them",
            ),
        ),
        _read(
            rates.all_runs,
            lambda of: below(
                '"However, a mutation rate of 64% actually performs worse than 32%"',
                _shares(of, len(RATES) - 1, BEST_RATE),
                tried="fewer studies find a near-optimal one, percentage points",
            ),
        ),
        _read(
            rates.with_alleles,
            lambda of: below(
                '"with a mutation rate of 64%, GA spends too much time on exploration (too much '
                'randomness), resulting in fewer chances for exploitation", which "helps GA search '
                'within promising subspaces"',
                _differences(of, len(RATES) - 1, BEST_RATE),
                tried="fewer of a study's runs have the best's values of these two parameters than "
                "at 32 %, percentage points",
            ),
        ),
        _read(rates.all_runs, _best),
    ]


def _read(readings: Mapping[str, ByTable], made: Callable[[ByTable], Claim]) -> Claim:
    return with_readings({reading: made(of) for reading, of in readings.items()})


def _shares(of: ByTable, one: int, other: int) -> dict[str, Difference]:
    """By table, how many more studies have found it."""
    return {name: shares_apart(figures[one], figures[other]) for name, figures in of.items()}


def _differences(of: ByTable, one: int, other: int) -> dict[str, Difference]:
    return {name: paired(figures[one], figures[other]) for name, figures in of.items()}


def _affects(of: ByTable) -> Claim:
    """At 5 % over all pairs of rates and tables."""
    pairs = list(combinations(range(len(RATES)), 2))
    many = len(pairs) * len(of)
    sure = [
        name
        for name, figures in of.items()
        if any(
            surely_more(figures[one], figures[other], many)
            or surely_more(figures[other], figures[one], many)
            for one, other in pairs
        )
    ]
    return some(
        '"hyper-parameter settings of these optimization algorithms, such as mutation rate in GA, '
        'could affect the tuning results" (section 1)',
        len(sure),
        f"on {', '.join(sure) or 'none'}",
        tried="of the mutation rate alone: on some table with some rate surely more studies find a "
        "near-optimal one than with another",
    )


def _hyperparameters(of: ByTable) -> Claim:
    """At 5 % over all pairs of rates."""
    pairs = list(combinations(range(len(RATES)), 2))
    told, sides = [], {}
    for name, figures in of.items():
        ordered = sorted(range(len(RATES)), key=lambda place: fmean(figures[place]))
        least, most = ordered[0], ordered[-1]
        sides[name] = surely_more(figures[most], figures[least], len(pairs)) or Side.OPEN
        told.append(
            f"{name}: {RATES[most]:.0%} {fmean(figures[most]):.0f}, {RATES[least]:.0%} "
            f"{fmean(figures[least]):.0f} %"
        )
    return judged(
        'of "many optimization techniques" performance depends "heavily on hyper-parameter '
        'settings" (4.2)',
        sides,
        "; ".join(told),
        tried="the same on every table; how heavily is not judged",
    )


def _trade_off(of: ByTable) -> Claim:
    """At 5 % over the rates between."""
    told, sides = [], {}
    between = range(1, len(RATES) - 1)
    for name, figures in of.items():
        better = [
            place
            for place in between
            if all(
                surely_more(figures[place], figures[end], len(between))
                for end in (0, len(RATES) - 1)
            )
        ]
        worse = all(
            any(
                surely_more(figures[end], figures[place], len(between))
                for end in (0, len(RATES) - 1)
            )
            for place in between
        )
        sides[name] = True if better else Side.AGAINST if worse else Side.OPEN
        told.append(f"{name}: {', '.join(f'{RATES[at]:.0%}' for at in better) or 'none surely'}")
    return judged(
        '"The trade-off among exploitation, exploration, and history plays an important role in '
        'find near-optimal configurations efficiently"',
        sides,
        "; ".join(told),
        tried="of exploration and exploitation in GA alone, of history nothing: with some mutation "
        "rate between, surely more studies find a near-optimal one than with 1 % and than with "
        "64 %",
    )


def _rising(of: ByTable) -> Claim:
    steps = {
        f"{name}, {RATES[place]:.0%} to {RATES[place + 1]:.0%}": step
        for place in range(BEST_RATE)
        for name, step in _shares(of, place + 1, place).items()
    }
    sides: dict[str, Side | bool] = {name: step.side(1) for name, step in steps.items()}
    against = {name: step for name, step in steps.items() if sides[name] is Side.AGAINST}
    return judged(
        "the same",
        sides,
        f"{len(sides)} doublings: from 1 to 2, 4, 8, 16 and 32 % on each table, by the table "
        "of [figure 7](#figure-7-the-mutation-rate)"
        + (f"; against it {listed(against)}" if against else ""),
        tried="with each doubling up to 32 % more studies find one",
    )


def _best(of: ByTable) -> Claim:
    sides, told = {}, []
    against: dict[str, Difference] = {}
    for name, figures in of.items():
        found = [fmean(one) for one in figures]
        told.append(f"{name} {RATES[max(range(len(found)), key=found.__getitem__)]:.0%}")
        apart = {
            f"{name}, than {RATES[place]:.0%}": shares_apart(figures[BEST_RATE], figures[place])
            for place in range(len(RATES))
            if place != BEST_RATE
        }
        each: Sequence[Side] = [one.side(1) for one in apart.values()]
        against |= {key: one for key, one in apart.items() if one.side(1) is Side.AGAINST}
        sides[name] = (
            Side.AGAINST if Side.AGAINST in each else Side.OPEN if Side.OPEN in each else Side.FOR
        )
    return judged(
        "of the rates of figure 7, 32 % is the best",
        sides,
        "the most is found with "
        + ", ".join(told)
        + (f"; against it {listed(against)}" if against else ""),
        tried="it finds more than each other rate",
    )

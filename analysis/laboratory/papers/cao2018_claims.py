"""Cao 2018: its sentences, by differences over studies that begin with the same seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf
from statistics import fmean

from peers.tables import Table
from scipy.stats import t as student

from papers import cao2018_space, file_systems
from papers.cao2018_replays import (
    LONG,
    Replayed,
    best_of,
    compared,
    differences,
    near_optimal,
    shares,
)
from papers.claims import (
    HOLDS,
    UNDECIDED,
    UNTRIED,
    Claim,
    Difference,
    Side,
    above,
    alike,
    below,
    judged,
    mean,
    paired,
    share,
    with_readings,
)

METHODS = ("SA", "GA", "DQN", "BO", "RS")
OTHERS = ("SA", "DQN", "RS")
"""What GA and BO are compared with."""
RATES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Figure 7's mutation rates."""
BEST_RATE = 5
"""The place of the paper's best of them, 32 %."""
HOUR = 20
"""In runs of the default, of which the paper's five hours are about a hundred."""
TIMES = (5, 10, 20, 40, 80)
"""In runs of the default."""
HALF, MOST, FEW = 50.0, 90.0, 40.0
"""Of studies, %: most, "over 90 %" and "lower than 40 %"."""
ABOUT_SA, ABOUT_BEST = 80.0, 65.0
"""Of studies, %: what the paper tells of SA, and of GA and BO where 0.2 % are near-optimal."""
ALIKE, ALIKE_FOUND = 0.05, 10.0
"""Our bounds for what is alike: of throughput over the best's, and of studies, %."""
GENERATION, SETTLED = 8, (0, 8)
"""Members, and the generations between which genes settle: figure 8's first and our ninth."""
MAIL = "where 4.5 % are near-optimal, as on M2-Mailserver-HDD3"
FILES = "where 0.2 % are, as on M2-Fileserver-HDD3"


@dataclass(frozen=True)
class Rates:
    """Figure 7: by reading and table, for each rate which studies found what is near-optimal."""

    all_runs: Mapping[str, Mapping[str, list[list[bool]]]]
    half: Mapping[str, Mapping[str, list[list[bool]]]]
    """In the first half of the runs."""


def claims(
    replayed: Sequence[Replayed],
    rates: Rates,
    systems: cao2018_space.Systems,
    patterns: Sequence[Table],
) -> list[Claim]:
    """In the paper's order."""
    tables = [of.on for of in replayed]
    by_runs = [Replayed(of.on, of.methods, by_runs=True) for of in replayed]
    return [
        *cao2018_space.of_the_space(tables, systems, patterns),
        _purged(replayed),
        *_timed(_of_figure_4(replayed), _of_figure_4(by_runs)),
        *_timed(_of_figure_5(replayed, systems), _of_figure_5(by_runs, systems)),
        *_of_figure_6(replayed),
        *_of_figure_7(rates),
        *_of_figure_8(replayed, systems),
        *cao2018_space.of_figure_9(systems),
        *cao2018_space.of_table_5(tables, systems, patterns),
        *_timed(_of_speed(replayed), _of_speed(by_runs)),
        Claim(
            "energy and other objectives: the observations are applicable to them",
            UNTRIED,
            "the paper shows throughput alone; nothing measures energy here; "
            "[other objectives](../engine.md#the-objective)",
        ),
    ]


def _timed(by_time: Sequence[Claim], by_runs: Sequence[Claim]) -> list[Claim]:
    """Claims by elapsed time, beside what equal runs say; where these differ nothing is decided.

    The paper's runs are equally long but for their setup, so that its time is nearly its runs.
    """
    return [
        one if one == other else _both_ways(one, other)
        for one, other in zip(by_time, by_runs, strict=True)
    ]


def _both_ways(by_time: Claim, by_runs: Claim) -> Claim:
    told = f"{by_time.figure}. At equal runs: {by_runs.verdict}"
    if by_time.verdict.split(" (")[0] == by_runs.verdict.split(" (")[0]:
        return Claim(by_time.words, by_time.verdict, told)
    if by_time.verdict.startswith(UNDECIDED):
        return Claim(by_time.words, by_time.verdict, told)
    return Claim(by_time.words, UNDECIDED, f"at equal time: {by_time.verdict}: {told}")


def _purged(replayed: Sequence[Replayed]) -> Claim:
    """Of what is run the share is known; of what a method keeps nothing is."""
    [systems] = [of for of in replayed if of.on.name == file_systems.NAME]
    ends = {name: systems.invalid(name) for name in METHODS if name != "RS"}
    return Claim(
        "invalid configurations have a throughput of zero, which ensures that they are purged "
        "(section 3)",
        UNDECIDED,
        "of the runs of the first and of the last eighth on file-systems so many are invalid: "
        + ", ".join(f"{name} {first:.0f} and {last:.0f} %" for name, (first, last) in ends.items())
        + ". Invalid ones count as twice the slowest here; and what is run again and again may "
        "each time be refused, which is not recorded",
    )


def _easily(of: Replayed, name: str) -> list[float]:
    return of.found(name, best_of(of.on), of.horizon)


def _in_an_hour(of: Replayed, name: str) -> list[float]:
    return of.found(name, best_of(of.on), HOUR)


def _hardly(of: Replayed, name: str) -> list[float]:
    return of.found(name, near_optimal(of.on), of.horizon)


def _of_figure_4(replayed: Sequence[Replayed]) -> list[Claim]:
    best = [(one, other) for one in ("GA", "BO") for other in OTHERS]
    hourly, note = _lasting(replayed, HOUR)
    long, long_note = _lasting(replayed, LONG)
    return [
        above(
            "all five gradually find higher performing configurations (figure 4): the best found "
            "over the default, %",
            {f"{of.on.name}, {name}": mean(of.gain(name)) for of in replayed for name in METHODS},
        ),
        _differing(replayed),
        _noted(
            above(
                "SA performs the worst (figure 4: one study): the best that the others have found "
                "over the default, minus SA's, at equal time, percentage points",
                differences(
                    long,
                    lambda of, name: of.gain_by(name, of.horizon),
                    *((one, "SA") for one in METHODS if one != "SA"),
                ),
            ),
            long_note,
        ),
        _noted(
            above(
                f"GA and BO find a near-optimal one within one hour, {MAIL} (figure 4: one study): "
                "most studies, %",
                shares(hourly, _in_an_hour, ("GA", "BO")),
                bound=HALF,
            ),
            note,
        ),
        _noted(
            above(
                "and perform best, %: in that time more studies than of SA, DQN and RS",
                differences(hourly, _in_an_hour, *best),
            ),
            note,
        ),
        _noted(
            above(
                "DQN spends more time than RS until it has a good one: within the hour, which is "
                "our measure, more studies of RS find one, %",
                differences(hourly, _in_an_hour, ("RS", "DQN")),
            ),
            note,
        ),
        _noted(_random_is_better(long), long_note),
        below(
            "GA and BO outperform SA and DQN in convergence time (section 1): until one of the "
            "best 4.5 %, at equal time, in runs of the default",
            differences(
                replayed,
                lambda of, name: of.until(name, best_of(of.on), of.horizon),
                *((one, other) for one in ("GA", "BO") for other in ("SA", "DQN")),
            ),
        ),
    ]


def _lasting(replayed: Sequence[Replayed], time: float) -> tuple[list[Replayed], str]:
    """The tables on which studies last so long, and a word on the others."""
    short = [of.on.name for of in replayed if of.horizon < time]
    note = f"On {', '.join(short)} the studies end too soon" if short else ""
    return [of for of in replayed if of.horizon >= time], note


def _differing(replayed: Sequence[Replayed]) -> Claim:
    """At 5 % over all pairs of methods."""
    pairs = len(list(combinations(METHODS, 2)))
    ends = {
        of.on.name: sorted(
            ((_hardly(of, name), name) for name in METHODS), key=lambda one: fmean(one[0])
        )
        for of in replayed
    }
    return judged(
        "but their effectiveness and speed differ a lot: of one method surely more studies than of "
        "another have found a near-optimal one, at equal time",
        {
            table: _surely_more(found[-1][0], found[0][0], pairs) or Side.OPEN
            for table, found in ends.items()
        },
        "; ".join(
            f"{table}: {found[-1][1]} {fmean(found[-1][0]):.0f}, {found[0][1]} "
            f"{fmean(found[0][0]):.0f} %"
            for table, found in ends.items()
        ),
    )


def _random_is_better(replayed: Sequence[Replayed]) -> Claim:
    """At 5 % over the methods that it is compared with."""
    others = [name for name in METHODS if name != "RS"]
    behind: dict[str, list[str]] = {}
    ahead = set()
    for of in replayed:
        found = {name: _easily(of, name) for name in METHODS}
        behind[of.on.name] = [
            name for name in others if _surely_more(found["RS"], found[name], len(others))
        ]
        if all(_surely_more(found[name], found["RS"], len(others)) for name in others):
            ahead.add(of.on.name)
    return judged(
        f"random search produces better results than some other methods, {MAIL}: it surely finds "
        "one in more studies, at equal time",
        {
            name: True if names else Side.AGAINST if name in ahead else Side.OPEN
            for name, names in behind.items()
        },
        "; ".join(
            f"{name}: than {', '.join(names) or 'none surely'}" for name, names in behind.items()
        ),
    )


def _of_figure_5(replayed: Sequence[Replayed], systems: cao2018_space.Systems) -> list[Claim]:
    long, note = _lasting(replayed, LONG)
    place = [parameter.name for parameter in systems.table.parameters].index(file_systems.SYSTEM)
    best = systems.table.points[systems.table.best][place]
    part = 100.0 * fmean(point[place] == best for point in systems.table.points)
    name = systems.table.parameters[place].values[best]
    return [
        _noted(
            above(
                f"SA finds near-optimal ones the least often, {MAIL}, %",
                differences(long, _easily, *((one, "SA") for one in METHODS if one != "SA")),
            ),
            note,
        ),
        _noted(
            alike(
                "even after five hours SA in around 80 %: within 10 points, which is our bound; so "
                "much more or less, %",
                _off(shares(long, _easily, ("SA",)), ABOUT_SA),
                ALIKE_FOUND,
            ),
            note,
        ),
        _stuck(replayed),
        _noted(
            above(
                "the others do in over 90 % of studies, given enough time, %",
                shares(long, _easily, [one for one in METHODS if one != "SA"]),
                bound=MOST,
            ),
            note,
        ),
        _noted(
            above(
                "BO more often than GA, GA more often than DQN, %",
                differences(long, _easily, ("BO", "GA"), ("GA", "DQN")),
            ),
            note,
        ),
        _noted(
            above(
                f"given enough time random search most often of all, {MAIL}, %",
                differences(long, _easily, *(("RS", one) for one in METHODS if one != "RS")),
            ),
            note,
        ),
        above(
            "where fewer are near-optimal it is more difficult to find one: in so many fewer "
            "studies than one of the best 4.5 %, at equal time, %",
            {
                f"{of.on.name}, {name}": paired(_easily(of, name), _hardly(of, name))
                for of in replayed
                for name in METHODS
            },
        ),
        _noted(
            above(
                f"GA finds near-optimal ones more often than SA, DQN and RS, {FILES}, %",
                differences(long, _hardly, *(("GA", one) for one in OTHERS)),
            ),
            note,
        ),
        _noted(
            above(
                "and so does BO, %",
                differences(long, _hardly, *(("BO", one) for one in OTHERS)),
            ),
            note,
        ),
        _noted(
            alike(
                "GA and BO equally often: within 10 points, which is our bound",
                differences(long, _hardly, ("BO", "GA")),
                ALIKE_FOUND,
            ),
            note,
        ),
        _noted(
            alike(
                "both in only 65 % of studies: within 10 points, which is our bound; so much more "
                "or less, %",
                _off(shares(long, _hardly, ("GA", "BO")), ABOUT_BEST),
                ALIKE_FOUND,
            ),
            note,
        ),
        _noted(
            below(
                "SA, DQN and RS in less than 40 % of studies, %",
                shares(long, _hardly, OTHERS),
                bound=FEW,
            ),
            note,
        ),
        _noted(
            above(
                "DQN the least often, %",
                differences(long, _hardly, *((one, "DQN") for one in METHODS if one != "DQN")),
            ),
            note,
        ),
        Claim(
            "the best is a Btrfs configuration there, which is hard to pick: few of these are near "
            "Ext4's default, and fewer than 2 % of the valid ones are of Btrfs",
            UNTRIED,
            f"the best is of {name}, which {part:.0f} % of the valid ones are, and there is no "
            "other table to compare with",
        ),
    ]


def _stuck(replayed: Sequence[Replayed]) -> Claim:
    missed = {of.on.name: 100.0 - fmean(of.found("SA", best_of(of.on), inf)) for of in replayed}
    return Claim(
        "which shows that SA sometimes gets stuck in a local optimum",
        UNDECIDED,
        "of its studies so many never run one of the best 4.5 %: "
        + ", ".join(f"{name} {share:.0f} %" for name, share in missed.items())
        + ". Where annealing stands is not recorded, so that a study that is stuck cannot be told "
        "from one that is slow; nor is a local optimum sure on any table, by the row on peaks",
    )


def _off(of: Mapping[str, Difference], told: float) -> dict[str, Difference]:
    """How far shares are from what the paper tells."""
    return {
        name: Difference(one.mean - told, one.low - told, one.high - told)
        for name, one in of.items()
    }


def _of_figure_6(replayed: Sequence[Replayed]) -> list[Claim]:
    # All methods as they were replayed: what is invalid is left out.
    def pairs(
        *names: tuple[str, str],
        figure: Callable[[Replayed, str], list[float]] = Replayed.throughput,
    ) -> dict[str, Difference]:
        return {
            f"{of.on.name}, {one} - {other}": compared(figure(of, one), figure(of, other))
            for of in replayed
            for one, other in names
        }

    bayesian = [("BO", other) for other in OTHERS]
    return [
        above(
            "GA and BO have more throughput while they search than SA, DQN and RS (figure 6: one "
            "study on M2-Mailserver-HDD3), over the best's",
            pairs(*((one, other) for one in ("GA", "BO") for other in OTHERS)),
        ),
        alike(
            "DQN is similar to RS: within 0.05, which is our bound",
            pairs(("DQN", "RS")),
            ALIKE,
        ),
        below(
            "BO and GA occasionally pick a worse configuration than the current one, but quickly "
            "discard it; worse is slower than the table's median here, which is our bound: after "
            "such a run the next one is so less often than in RS, percentage points",
            {
                f"{of.on.name}, {one} - RS": compared(of.stays_bad(one), of.stays_bad("RS"))
                for of in replayed
                for one in ("BO", "GA")
            },
        ),
        below(
            "BO has stable instantaneous throughputs: their standard deviation over a study's "
            "runs, in which what it gains counts too, is below SA's, DQN's and RS's, over the "
            "best's",
            pairs(*bayesian, figure=Replayed.varying),
        ),
        below(
            "for it is less likely to choose a bad configuration: fewer of its runs than of SA's, "
            "DQN's and RS's are slower than the table's median, percentage points",
            pairs(*bayesian, figure=Replayed.bad),
        ),
    ]


def _of_figure_7(rates: Rates) -> list[Claim]:
    def more(of: Mapping[str, list[list[bool]]], one: int, other: int) -> dict[str, Difference]:
        return {
            name: paired([100.0 * hit for hit in hits[one]], [100.0 * hit for hit in hits[other]])
            for name, hits in of.items()
        }

    def rising(of: Mapping[str, list[list[bool]]]) -> Claim:
        sides: dict[str, Side | bool] = {
            f"{name}, {place}": step.side(1)
            for place in range(BEST_RATE)
            for name, step in more(of, place + 1, place).items()
        }
        return judged(
            "when the rate increases more is found (up to 32 %): by each doubling",
            sides,
            f"{len(sides)} doublings: from 1 to 2, 4, 8, 16 and 32 % on each table, by the table "
            "of [figure 7](#figure-7-the-mutation-rate)",
        )

    def read(words: str, place: int, half: bool = False) -> Claim:
        by_reading = rates.half if half else rates.all_runs
        return with_readings(
            {
                reading: above(words, more(of, BEST_RATE, place))
                for reading, of in by_reading.items()
            }
        )

    def best(of: Mapping[str, list[list[bool]]]) -> Claim:
        sides = {}
        told = []
        for name, hits in of.items():
            found = [100.0 * fmean(one) for one in hits]
            told.append(f"{name} {RATES[max(range(len(found)), key=found.__getitem__)]:.0%}")
            each = [
                more({name: hits}, BEST_RATE, place)[name].side(1)
                for place in range(len(RATES))
                if place != BEST_RATE
            ]
            sides[name] = (
                Side.AGAINST
                if Side.AGAINST in each
                else Side.OPEN
                if Side.OPEN in each
                else Side.FOR
            )
        return judged(
            "the best mutation rate is 32 %: it finds more than each other rate",
            sides,
            "the most is found with " + ", ".join(told),
        )

    return [
        read("a mutation rate of 32 % finds more than 1 % (figure 7: M2-Mailserver-HDD3), %", 0),
        read("and sooner: in half of the runs, %", 0, half=True),
        with_readings({reading: rising(of) for reading, of in rates.all_runs.items()}),
        read("64 % finds less than 32 %, %", len(RATES) - 1),
        with_readings({reading: best(of) for reading, of in rates.all_runs.items()}),
    ]


def _of_figure_8(replayed: Sequence[Replayed], systems: cao2018_space.Systems) -> list[Claim]:
    def all_settle(selection: str) -> Claim:
        settled = {
            name: share(sum(hits), len(hits))
            for name in ("block_size 4096", "journal writeback")
            for hits in [systems.settled[selection][name]]
        }
        claim = above(
            "in Ext3's eighth generation all have blocks of 4K, all have the journal option "
            "writeback (figure 8: one run): most studies, %",
            settled,
            bound=HALF,
        )
        members = ", ".join(f"{name} {of:.0f} %" for name, of in systems.last[selection].items())
        return _noted(claim, f"Of all members: {members}")

    return [
        with_readings(
            {
                f"selection `{selection}`": above(
                    "the diversity of alleles decreases: how much the commonest value's share "
                    "grows from the first generation to the eighth, percentage points",
                    {"ext3": of},
                )
                for selection, of in systems.diversity.items()
            }
        ),
        with_readings(
            {f"selection `{selection}`": all_settle(selection) for selection in systems.settled}
        ),
        above(
            "GA finds the alleles of the genes that matter: from its first to its ninth eight runs "
            "the best's value of the parameter that matters most, by its R² of throughput, gains "
            "more members than of the one that matters least, percentage points",
            {of.on.name: _settling(of) for of in replayed},
        ),
    ]


def _settling(of: Replayed) -> Difference:
    strength = file_systems.importance(of.on)
    most = max(range(len(strength)), key=strength.__getitem__)
    least = min(range(len(strength)), key=strength.__getitem__)
    return paired(
        of.spreads(most, SETTLED, GENERATION),
        of.spreads(least, SETTLED, GENERATION),
    )


def _of_speed(replayed: Sequence[Replayed]) -> list[Claim]:
    """How many have found it by each time; each comparison at 5 % over all of a method's."""
    kinds = {"near-optimal": near_optimal, "the best 4.5 %": best_of}
    count = len(kinds) * len(replayed) * len(TIMES) * (len(METHODS) - 1)
    behind: dict[str, list[str]] = {name: [] for name in METHODS}
    for kind, close in kinds.items():
        for of in replayed:
            wanted = close(of.on)
            for time in TIMES:
                found = {name: of.found(name, wanted, time) for name in METHODS}
                for name in METHODS:
                    ahead = [
                        other
                        for other in METHODS
                        if other != name and _surely_more(found[other], found[name], count)
                    ]
                    if ahead:
                        first = max(ahead, key=lambda other: fmean(found[other]))
                        behind[name].append(
                            f"{of.on.name}, {kind}, t = {time}: {fmean(found[name]):.0f} against "
                            f"{fmean(found[first]):.0f} % of {first}"
                        )
    told = "; ".join(
        f"{name} is surely behind another in {len(places)} of {count // (len(METHODS) - 1)} cases"
        + (f" ({places[0]})" if places else "")
        for name, places in behind.items()
    )
    by_hour = {of.on.name: of.found("BO", near_optimal(of.on), HOUR) for of in replayed}
    return [
        Claim(
            "the speed at which techniques find near-optimal configurations depends on hardware, "
            "software and workload",
            UNDECIDED,
            f"by t = {HOUR} studies of BO have found one on "
            + ", ".join(f"{name} {fmean(of):.0f} %" for name, of in by_hour.items())
            + ". But these tables differ in their parameters too, and none but in its workload, "
            "hardware or software",
        ),
        Claim(
            "so that no single technique can rule them all",
            HOLDS if all(behind.values()) else UNDECIDED,
            f"found by t = {', '.join(map(str, TIMES))}, on each table: {told}",
        ),
    ]


def _surely_more(one: Sequence[float], other: Sequence[float], comparisons: int) -> bool:
    """Whether more studies found it, at 5 % over so many comparisons; by Agresti and Caffo."""
    shares, parts = [], []
    for of in (one, other):
        share = (sum(value > 0.0 for value in of) + 1) / (len(of) + 2)
        shares.append(share)
        parts.append(share * (1.0 - share) / (len(of) + 2))
    quantile = float(student.ppf(1.0 - 0.025 / comparisons, len(one) + len(other) - 2))
    return shares[0] - shares[1] > quantile * sum(parts) ** 0.5


def _noted(claim: Claim, note: str) -> Claim:
    return Claim(claim.words, claim.verdict, f"{claim.figure}. {note}" if note else claim.figure)

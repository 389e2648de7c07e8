"""Robert 2019: its sentences, by paired differences over studies, under each reading."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, pairwise
from math import prod
from statistics import fmean, median, stdev
from typing import Any

from comparison.markdown import number
from peers.tables import Table

from papers import anova, optima, studies
from papers.claims import (
    HOLDS,
    NOT,
    UNDECIDED,
    UNTRIED,
    Claim,
    Difference,
    Side,
    above,
    below,
    column,
    judged,
    listed,
    mean,
    paired,
    unpaired,
    with_readings,
)
from papers.published import HEURISTICS

BUDGET = 100
"""Runs of a study, as in the paper."""
DESIGN = 15
"""Those of the design."""
ALL, HALF = 100.0, 50.0
"""Of studies, or runs, %."""
MAJOR = 1.5
"""A major regression, in runs of the default: the paper gives no bound."""
CLOSE = 0.5
"""Close to the optimum, as a share of the default's distance: the paper gives no bound."""
GAIN_OF_SBB = 20.0
"""What the paper's abstract says that the Smart Burst Buffer gains, %."""
SIGNIFICANT = 0.05
"""Of a test, over all pairs of parameters."""

Places = Mapping[str, int]
"""By heuristic, the place of the variant that stands for it."""


@dataclass(frozen=True)
class Reading:
    """The replayed studies, with one variant of each heuristic."""

    results: Sequence[dict[str, Any]]
    tables: Sequence[Table]
    places: Places

    def metric(self, metric: str, name: str, nth: int) -> list[float]:
        """Of all studies of a heuristic on a table; 0 where a study has none."""
        return [
            value or 0.0
            for result in self.results
            for value in column(result["tables"][nth]["methods"][self.places[name]], metric)
        ]

    def known(self, metric: str, name: str, nth: int) -> list[float]:
        """The same, of the studies that have it."""
        return [
            value
            for result in self.results
            for value in column(result["tables"][nth]["methods"][self.places[name]], metric)
            if value is not None
        ]

    def courses(self, name: str, nth: int) -> list[list[float]]:
        """The times of each study's runs."""
        return [
            times
            for result in self.results
            for times in studies.courses(
                result["tables"][nth]["methods"][self.places[name]], self.tables[nth]
            )
        ]

    def each(self, name: str, nth: int, figure: Callable[[list[float]], float]) -> list[float]:
        """A figure of each study's times."""
        return [figure(times) for times in self.courses(name, nth)]

    def pairs(self, metric: str, one: str, *others: str) -> dict[str, Difference]:
        """On each table, one heuristic minus each of the others."""
        return {
            f"{on.name}, {one} - {other}": paired(
                self.metric(metric, one, nth), self.metric(metric, other, nth)
            )
            for nth, on in enumerate(self.tables)
            for other in others
        }

    def compared(
        self, figure: Callable[[list[float], Table], float], one: str, *others: str
    ) -> dict[str, Difference]:
        """The same of a figure of a study's times."""
        return {
            f"{on.name}, {one} - {other}": paired(
                [figure(times, on) for times in self.courses(one, nth)],
                [figure(times, on) for times in self.courses(other, nth)],
            )
            for nth, on in enumerate(self.tables)
            for other in others
        }

    def neighbours(self, name: str, nth: int) -> list[float]:
        """Of each study, the share of steps after the design that are to a neighbour, %."""
        on = self.tables[nth]

        @cache
        def near(one: int, other: int) -> bool:
            return all(
                abs(a - b) <= 1 if parameter.ordered else True
                for parameter, a, b in zip(
                    on.parameters, on.points[one], on.points[other], strict=True
                )
            )

        shares = []
        for result in self.results:
            for study in result["tables"][nth]["methods"][self.places[name]]["studies"]:
                runs = [on.default if one is None else one for one in study["runs"]]
                steps = list(pairwise(runs[DESIGN - 1 :]))
                shares.append(100.0 * fmean(near(*sorted(step)) for step in steps))
        return shares


def below_default(times: list[float], on: Table) -> float:
    """The share of runs below the default's time, %."""
    return 100.0 * sum(time < on.truths[on.default] for time in times) / len(times)


def below_mean(times: list[float], on: Table) -> float:
    """The share of runs below the mean of all parametrizations, %."""
    return 100.0 * sum(time < fmean(on.truths) for time in times) / len(times)


def departures(times: list[float], on: Table) -> float:
    """How often, after the design, a run close to the optimum is followed by one that is not."""
    best = on.truths[on.best]
    limit = best + CLOSE * (on.truths[on.default] - best)
    return float(sum(one <= limit < other for one, other in pairwise(times[DESIGN:])))


def below_mean_throughout(times: list[float], on: Table, begin: int = 0) -> float:
    """100 if all runs from `begin` on are below the mean of all parametrizations, else 0."""
    return ALL * (max(times[begin:]) < fmean(on.truths))


def claims(
    results: Sequence[dict[str, Any]],
    tables: Sequence[Table],
    patterns: Sequence[Table],
    readings: Mapping[str, Places],
) -> list[Claim]:
    """The paper's sentences in its order; `readings` with the defaults first."""
    every = {name: Reading(results, tables, places) for name, places in readings.items()}

    def read(made: Callable[[Reading], Claim]) -> Claim:
        of_each = {name: made(reading) for name, reading in every.items()}
        return with_readings(of_each, "these readings")

    return [
        *_of_the_tables(tables, patterns),
        *_of_the_optimum(tables, read),
        *_of_stability(tables, read),
        *_of_the_default(tables, read),
        read(
            lambda of: above(
                "surrogates take the longest to compute (ET), s", of.pairs("ET", "SM", "GA", "SA")
            )
        ),
        read(
            lambda of: below(
                "annealing takes the least to compute (table 2), s", of.pairs("ET", "SA", "GA")
            )
        ),
        read(lambda of: _gain_of_sbb(tables[0], of)),
        Claim(
            "SRO: a possible gain of 38 %",
            UNTRIED,
            "the small read optimizer is not to be had; what GA gains on each table is above",
        ),
        Claim(
            "SRO: only the genetic algorithm finds the optimum (10 % of its studies); the "
            "surrogate is before annealing in average distance and gain (tables 2 and 3)",
            UNTRIED,
            "the small read optimizer is not to be had; the orders that SRO and SBB share are "
            "tried above on all tables",
        ),
        Claim(
            "a behaviour like the surrogate's and annealing's is not acceptable in production",
            UNTRIED,
            "a judgement, of which the paper measures nothing",
        ),
    ]


def _gain_of_sbb(on: Table, of: Reading) -> Claim:
    most = 100.0 * (1.0 - on.truths[on.best] / on.truths[on.default])
    tried = above(
        "SBB: a possible gain of 20 % of its application's time (abstract; of GA in table 3), %",
        {on.name: mean(of.metric("Gain", "GA", 0))},
        bound=GAIN_OF_SBB,
    )
    return replace(tried, figure=f"{tried.figure}, of {most:.0f} that the optimum has")


def _of_the_tables(tables: Sequence[Table], patterns: Sequence[Table]) -> list[Claim]:
    quicker = {
        on.name: 100.0 * sum(time < on.truths[on.default] for time in on.truths) / len(on.truths)
        for on in tables
    }
    slower = {on.name: on.default not in optima.candidates(on) for on in tables}
    unsure = [name for name, surely in slower.items() if not surely]
    least = {tuple(on.points[on.best]) for on in patterns}
    sets = [len(optima.candidates(on, 0.05 / len(patterns))) for on in patterns]
    different = optima.surely_different(patterns)
    pairs = len(list(combinations(patterns, 2)))
    return [
        _not_additive(tables),
        Claim(
            "the optimal parametrization is found without making any assumption on the performance "
            "function (abstract)",
            NOT,
            "by the paper's own words (II-B-1) two of the surrogate's three acquisition functions "
            '"require that some statistical assumptions are made", and the default here is one of '
            "them; the other heuristics assume none",
        ),
        Claim(
            "so tuning by hand, theoretical models and exhaustive sampling suit most cases badly "
            "(abstract)",
            UNTRIED,
            "a motive, which the paper does not measure: its own tables are exhaustive",
        ),
        judged(
            "the default parametrization is not optimal",
            {name: True if surely else Side.OPEN for name, surely in slower.items()},
            "; ".join(f"{name}: {share:.0f} % are faster" for name, share in quicker.items())
            + "; beyond the noise of the runs "
            + (f"on all but {' and '.join(unsure)}" if unsure else "on all"),
        ),
        Claim(
            "the optimal parametrization varies with the application",
            HOLDS if different else UNDECIDED,
            f"`romio` under {len(patterns)} access patterns has {len(least)} different least "
            f"means. But by the noise of the runs {min(sets)} to {max(sets)} of "
            f"{len(patterns[0].points)} parametrizations may be a pattern's best (95 % over all), "
            f"and {len(different) or 'none'} of {pairs} pairs of patterns surely differ",
        ),
        Claim(
            "the same parametrization does not take the same time twice",
            HOLDS,
            "the runs of one scatter by "
            + ", ".join(f"{100.0 * on.scatter:.0f} % ({on.name})" for on in tables),
        ),
    ]


def _not_additive(tables: Sequence[Table]) -> Claim:
    """A linear function has no interactions; sums of squares add up on whole grids only."""
    told, sides = [], {}
    for on in tables:
        if len(on.points) == prod(parameter.levels for parameter in on.parameters):
            pairs = anova.interactions(on)
            surely = sum(pair.p * len(pairs) < SIGNIFICANT for pair in pairs)
            told.append(f"{on.name}: {surely} of {len(pairs)} pairs of parameters")
            sides[on.name] = True if surely else Side.OPEN
    return judged(
        "the relationship between the parameters and the time is not linear (abstract)",
        sides,
        "do more together than each alone, which a linear function does not (ANOVA of the means, "
        f"Bonferroni over pairs; whole grids only): {'; '.join(told)}",
    )


Read = Callable[[Callable[[Reading], Claim]], Claim]


def _of_the_optimum(tables: Sequence[Table], read: Read) -> list[Claim]:
    sbb = tables[0]

    def success(of: Reading) -> Claim:
        shares = [fmean(of.metric("S", "SM", nth)) for nth in range(len(tables))]
        return judged(
            "SBB: the surrogate finds the optimum in all studies",
            {sbb.name: shares[0] == ALL},
            f"{sbb.name}: {shares[0]:.1f} % (the others: "
            + ", ".join(f"{one:.1f}" for one in shares[1:])
            + ")",
        )

    def reached(of: Reading) -> Claim:
        words = "SBB: where it finds it, it does so the latest (IS)"
        steps = {name: of.known("IS", name, 0) for name in HEURISTICS}
        differences = {
            f"{sbb.name}, SM - {other}": unpaired(steps["SM"], steps[other])
            for other in ("GA", "SA")
        }
        return above(f"{words}, runs", differences)

    def sooner(of: Reading) -> Claim:
        differences = {
            f"{sbb.name}, GA - SA": unpaired(of.known("IS", "GA", 0), of.known("IS", "SA", 0))
        }
        return below(
            "SBB: where both find it, the genetic algorithm does so sooner than annealing (IS of "
            "table 2: 43 and 47), runs",
            differences,
        )

    def close(of: Reading) -> Claim:
        differences = {}
        for nth, on in enumerate(tables):
            away = on.truths[on.default] - on.truths[on.best]
            found = [100.0 * one / away for one in of.metric("DistOpt", "GA", nth)]
            differences[on.name] = mean(found)
        return below(
            "the genetic algorithm's returned optimum is close to the optimum: within half of the "
            "default's distance, which is our bound; % of that distance",
            differences,
            bound=100.0 * CLOSE,
        )

    return [
        read(
            lambda of: below(
                "surrogates come nearest to the optimum (Dist Opt), s",
                of.pairs("DistOpt", "SM", "GA", "SA"),
            )
        ),
        read(success),
        read(reached),
        read(sooner),
        read(
            lambda of: above(
                "the genetic algorithm finds it more often than annealing (table 2: 40 and 20 % on "
                "SBB, 10 and 0 % on SRO), percentage points",
                of.pairs("S", "GA", "SA"),
            )
        ),
        Claim(
            "SRO: no study of the surrogate succeeds, and it returns 1 ms below the optimum",
            UNTRIED,
            "the small read optimizer and its data are not to be had. Nothing is below the "
            "optimum, and the paper's table 2 has a distance of 0.1 s, not of 1 ms",
        ),
        read(close),
        read(
            lambda of: below(
                "it is nearer than that of annealing, which has a low accuracy (Dist Opt of table "
                "2), s",
                of.pairs("DistOpt", "GA", "SA"),
            )
        ),
    ]


def _of_stability(tables: Sequence[Table], read: Read) -> list[Claim]:
    def later(of: Reading, name: str) -> dict[str, Difference]:
        return {
            on.name: paired(
                of.each(name, nth, lambda times: fmean(times[75:100])),
                of.each(name, nth, lambda times: fmean(times[25:50])),
            )
            for nth, on in enumerate(tables)
        }

    def spread(times: list[float], _: Table) -> float:
        return stdev(times[DESIGN:])

    def major(of: Reading) -> Claim:
        shares = {
            on.name: fmean(
                ALL * (max(times[DESIGN:]) > MAJOR * on.truths[on.default])
                for times in of.courses("GA", nth)
            )
            for nth, on in enumerate(tables)
            if max(on.truths) > MAJOR * on.truths[on.default]
        }
        quick = [on for on in tables if on.name not in shares]
        return judged(
            "it does not cause any major performance regression (said of the two studies of "
            "figures 4 and 5; here of all): no run after the design takes half as long again as "
            "the default, which is our bound",
            {name: share == 0.0 for name, share in shares.items()},
            "; ".join(
                [f"{name}: {share:.0f} % of studies have one" for name, share in shares.items()]
                + [
                    f"{on.name} cannot tell: its slowest takes "
                    f"{max(on.truths) / on.truths[on.default]:.2f} times the default"
                    for on in quick
                ]
            ),
        )

    def neighbours(of: Reading) -> Claim:
        shares = {on.name: fmean(of.neighbours("GA", nth)) for nth, on in enumerate(tables)}
        return judged(
            "and can only switch to a neighbouring parametrization, read of the algorithm: a run "
            "is at most a level from the one before it in each parameter",
            {name: share == ALL for name, share in shares.items()},
            "; ".join(f"{name}: {share:.0f} % of its steps" for name, share in shares.items())
            + ". A cross of two distant parents is no neighbour of either",
        )

    def oscillates(of: Reading) -> Claim:
        every = of.compared(departures, "SM", "GA")
        here = {name: one for name, one in every.items() if name.startswith(tables[0].name)}
        others = {name: one for name, one in every.items() if name not in here}
        tried = above(
            "SBB: it oscillates between close to the optimum and slower times (figure 5), and the "
            "genetic algorithm is more stable: how much more often than that, after the design, a "
            "run within half of the default's distance, our bound, is followed by one that is not",
            here,
        )
        often = {
            name: fmean(departures(times, tables[0]) for times in of.courses(name, 0))
            for name in HEURISTICS
        }
        told = ", ".join(f"{name} {number(one)}" for name, one in often.items())
        return replace(
            tried,
            figure=f"{tried.figure}; all of {tables[0].name}: {told}. On the others: "
            f"{listed(others)}",
        )

    def last_quarter(of: Reading, name: str) -> dict[str, Difference]:
        found = {}
        for nth, on in enumerate(tables):
            best = on.truths[on.best]
            medians = of.each(name, nth, lambda times: median(times[75:100]))
            found[on.name] = mean([one - best for one in medians])
        return found

    def suboptimal(of: Reading) -> Claim:
        tried = above(
            "it remains in a suboptimal state (figures 4 and 5), which can hardly fail: the median "
            "of its last 25 runs is above the optimum, s",
            last_quarter(of, "GA"),
        )
        beside = "; ".join(
            f"{name}: "
            + ", ".join(f"{on} {number(one.mean)}" for on, one in last_quarter(of, name).items())
            for name in ("SM", "SA")
        )
        return replace(tried, figure=f"{tried.figure}. So do the others: {beside}")

    return [
        read(
            lambda of: below(
                "the genetic algorithm offers the best trade-off between accuracy and stability: "
                "it has the least Avg Dist, s",
                of.pairs("AvgDist", "GA", "SM", "SA"),
            )
        ),
        read(
            lambda of: below(
                "and the least exploration cost, s",
                of.pairs("EC", "GA", "SM", "SA"),
            )
        ),
        read(
            lambda of: below(
                "the same, against the best so far", of.pairs("ECBest", "GA", "SM", "SA")
            )
        ),
        read(
            lambda of: above(
                "surrogates switch too erratically: they have the highest exploration cost (table "
                "2), s",
                of.pairs("EC", "SM", "GA", "SA"),
            )
        ),
        read(
            lambda of: above(
                "annealing does so too: it has a high exploration cost, above the genetic "
                "algorithm's, s",
                of.pairs("EC", "SA", "GA"),
            )
        ),
        read(
            lambda of: above(
                "SBB: annealing is nearer than the surrogate on average (Avg Dist of table 2), s",
                {
                    f"{tables[0].name}, SM - SA": paired(
                        of.metric("AvgDist", "SM", 0), of.metric("AvgDist", "SA", 0)
                    )
                },
            )
        ),
        _moves_on(
            read(
                lambda of: above(
                    "once the surrogate has explored a part, it moves on to zones with higher "
                    "variances, which take longer (figure 4)",
                    later(of, "SM"),
                )
            )
        ),
        read(oscillates),
        read(
            lambda of: above(
                "annealing exhibits a similar behaviour (figures 4 and 5): it moves on too, runs "
                "76 to 100 over runs 26 to 50, s",
                later(of, "SA"),
            )
        ),
        read(
            lambda of: above(
                "and oscillates: it departs more often than the genetic algorithm, as above, on "
                "all tables",
                of.compared(departures, "SA", "GA"),
            )
        ),
        read(
            lambda of: below(
                "the genetic algorithm does not move on so: runs 76 to 100 over runs 26 to 50, s",
                later(of, "GA"),
            )
        ),
        Claim(
            "for its stochastic behaviour is limited to mutation",
            NOT,
            "by the paper's own words (III-B-3, II-B-3) the pick is drawn too, which \"randomly "
            'divides the already tested parametrizations in two", and the crossover, "randomly '
            'splitting each parametrization in two"',
        ),
        Claim(
            "and can only switch to a neighbouring parametrization, read of a mutation",
            HOLDS,
            "`robert2020_v_d_a_mutation_walks_in_every_direction`: at most a level in each "
            "parameter; of categories any is a neighbour",
        ),
        read(neighbours),
        read(
            lambda of: below(
                "it is the most stable (figures 4 and 5): the standard deviation of times after "
                "the design, s",
                of.compared(spread, "GA", "SM", "SA"),
            )
        ),
        read(suboptimal),
        read(major),
    ]


def _moves_on(later: Claim) -> Claim:
    """Where nothing runs twice what is left gets slower by itself: that is no wish to explore."""
    return Claim(
        later.words,
        UNDECIDED,
        "runs 76 to 100 minus runs 26 to 50, s, of which a rise would speak for it: "
        f"{later.figure}. That is of times alone; no posterior variance is recorded. And where "
        "nothing runs twice what is left gets slower by itself, whoever picks it: so it does under "
        "the genetic algorithm with that reading, by the row on it below",
    )


def _of_the_default(tables: Sequence[Table], read: Read) -> list[Claim]:
    def settled(of: Reading) -> dict[str, Difference]:
        found = {}
        for nth, on in enumerate(tables):
            times = of.each("GA", nth, lambda times: fmean(times[DESIGN:]))
            found[on.name] = mean([time - on.truths[on.default] for time in times])
        return found

    def gains(of: Reading, name: str) -> dict[str, Difference]:
        return {on.name: mean(of.metric("Gain", name, nth)) for nth, on in enumerate(tables)}

    def shares(of: Reading, figure: Callable[[list[float], Table], float]) -> dict[str, Difference]:
        """The mean over all heuristics, study by study."""
        found = {}
        for nth, on in enumerate(tables):
            by_heuristic = [
                [figure(times, on) for times in of.courses(name, nth)] for name in HEURISTICS
            ]
            found[on.name] = mean([fmean(one) for one in zip(*by_heuristic, strict=True)])
        return found

    def after_the_design(times: list[float], on: Table) -> float:
        return below_mean_throughout(times, on, DESIGN)

    return [
        read(
            lambda of: below(
                "the genetic algorithm performs better than the default (figures 4 and 5): its "
                "mean run after the design, s",
                settled(of),
            )
        ),
        read(
            lambda of: above(
                "it gains time over the whole loop (table 3: 20.5 and 38.4 %), %", gains(of, "GA")
            )
        ),
        read(
            lambda of: above(
                "the surrogate gains too (table 3: 9.8 and 30.1 %), %", gains(of, "SM")
            )
        ),
        read(
            lambda of: above("annealing gains too (table 3: 13.1 and 21.3 %), %", gains(of, "SA"))
        ),
        read(
            lambda of: above(
                "the genetic algorithm gains more than the surrogate and annealing (table 3), %",
                of.pairs("Gain", "GA", "SM", "SA"),
            )
        ),
        read(
            lambda of: above(
                "SBB: annealing gains more than the surrogate (table 3), %",
                {
                    f"{tables[0].name}, SA - SM": paired(
                        of.metric("Gain", "SA", 0), of.metric("Gain", "SM", 0)
                    )
                },
            )
        ),
        read(
            lambda of: above(
                "overall the framework improves on the default: most executions of all heuristics "
                "are below its time (77.57 and 89.47 %), %",
                shares(of, below_default),
                bound=HALF,
            )
        ),
        read(
            lambda of: above(
                "the genetic algorithm has the most of them, percentage points",
                of.compared(below_default, "GA", "SM", "SA"),
            )
        ),
        read(
            lambda of: above(
                "most trajectories are below the mean time at all iterations (51.24 and 59.25 %), "
                "read as a share of runs, as for the default, %",
                shares(of, below_mean),
                bound=HALF,
            )
        ),
        read(
            lambda of: above(
                "the genetic algorithm has the most of them, percentage points",
                of.compared(below_mean, "GA", "SM", "SA"),
            )
        ),
        read(
            lambda of: above(
                "the same trajectories, read as studies of which each run is below the mean, %",
                shares(of, below_mean_throughout),
                bound=HALF,
            )
        ),
        read(
            lambda of: above(
                "the same, of the runs after the design alone, %",
                shares(of, after_the_design),
                bound=HALF,
            )
        ),
        read(
            lambda of: above(
                "the genetic algorithm has the most of these, percentage points",
                of.compared(after_the_design, "GA", "SM", "SA"),
            )
        ),
    ]

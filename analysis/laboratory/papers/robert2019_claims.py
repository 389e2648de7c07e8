"""Robert 2019: its sentences, by paired differences over studies, under each reading."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations, pairwise
from math import exp, log1p, prod, sqrt
from statistics import fmean, median, stdev
from typing import Any

import numpy as np
from comparison.markdown import number
from numpy.typing import NDArray
from peers.tables import Table

from papers import anova, optima, studies
from papers.claims import (
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
    proven,
    share,
    some,
    unpaired,
    untried,
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
TEMPERATURE = 1000.0
"""The paper's, which has no unit: read as seconds."""
SLOWER, RARELY = 0.1, 5.0
"""What is worse by so much, s, and accepted in less than so much, %: our bounds."""
COOLINGS: Mapping[str, Callable[[int], float]] = {
    "exponential": lambda step: TEMPERATURE * 0.9**step,
    "multiplicative": lambda step: TEMPERATURE / (1.0 + step),
    "logarithmic": lambda step: TEMPERATURE / (1.0 + log1p(step)),
}
"""The temperature after so many steps, as the variants of annealing have it."""
SAME = 1.0
"""Runs that scatter by no more than so much, %, would take the same time."""

ALIKE = ("both nothing twice", "both whatever comes")
"""The readings that treat SM and GA alike."""
EXPLOITING = "posterior minimum"
"""What stands for the surrogate whose acquisition is the posterior's minimum."""

NEARER = 1e-9
"""Distances that differ by less are alike."""

Coordinates = NDArray[np.float64]

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

    def novelty(self, name: str, nth: int) -> list[list[float]]:
        """Of each study, how novel each run is."""
        on = self.tables[nth]
        places = coordinates(on)
        return [
            novelty(places, [on.default if one is None else one for one in study["runs"]])
            for result in self.results
            for study in result["tables"][nth]["methods"][self.places[name]]["studies"]
        ]

    def again(self, name: str, nth: int) -> list[float]:
        """Of each study, the share of runs after the design of what has run before, %.

        What the table lacks, which is told by no number, counts as new.
        """
        shares = []
        for result in self.results:
            for study in result["tables"][nth]["methods"][self.places[name]]["studies"]:
                runs = study["runs"]
                seen = [one is not None and one in runs[:at] for at, one in enumerate(runs)]
                shares.append(100.0 * fmean(seen[DESIGN:]))
        return shares

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


Read = Callable[[Callable[[Reading], Claim]], Claim]
"""A claim under each reading."""


def coordinates(on: Table) -> Coordinates:
    """Of each parametrization, so that a parameter's ends, and two categories, are 1 apart."""
    columns = []
    for nth, parameter in enumerate(on.parameters):
        levels = np.array([float(point[nth]) for point in on.points])
        if parameter.ordered:
            columns.append(levels / max(parameter.levels - 1, 1))
        else:
            columns += [sqrt(0.5) * (levels == one) for one in range(parameter.levels)]
    return np.column_stack(columns)


def novelty(places: Coordinates, runs: Sequence[int]) -> list[float]:
    """Of each run: how many of what is untested by then, %, are nearer to what is tested.

    0 of the first, and of what has run before.
    """
    nearest = np.full(len(places), np.inf)
    tested = np.zeros(len(places), dtype=bool)
    found = []
    for run in runs:
        rest = nearest[~tested]
        novel = tested.any() and not tested[run]
        found.append(100.0 * float(np.mean(rest < nearest[run] - NEARER)) if novel else 0.0)
        tested[run] = True
        nearest = np.minimum(nearest, np.linalg.norm(places - places[run], axis=1))
    return found


def below_default(times: list[float], on: Table) -> float:
    """The share of runs below the default's time, %."""
    return 100.0 * sum(time < on.truths[on.default] for time in times) / len(times)


def below_mean(times: list[float], on: Table) -> float:
    """The share of runs below the mean of all parametrizations, %."""
    return 100.0 * sum(time < fmean(on.truths) for time in times) / len(times)


def departures(times: list[float], on: Table) -> float:
    """How often, after the design, a run close to the optimum is followed by one that is not."""
    limit = _close(on)
    return float(sum(one <= limit < other for one, other in pairwise(times[DESIGN:])))


def comes_close(times: list[float], on: Table) -> float:
    """1 if a run after the design is close to the optimum, else 0."""
    return float(min(times[DESIGN:]) <= _close(on))


def _close(on: Table) -> float:
    """The time up to which a run is close to the optimum."""
    best = on.truths[on.best]
    return best + CLOSE * (on.truths[on.default] - best)


def has_major(times: list[float], on: Table) -> float:
    """1 if a run after the design takes half as long again as the default, else 0."""
    return float(max(times[DESIGN:]) > MAJOR * on.truths[on.default])


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
        *_of_the_heuristics(read),
        *_of_the_optimum(tables, read),
        *_of_stability(tables, read, [every[name] for name in ALIKE], list(ALIKE)),
        *_of_the_default(tables, read),
        read(
            lambda of: above(
                "surrogates take the longest to compute (ET of table 2)",
                of.pairs("ET", "SM", "GA", "SA"),
                " s",
                tried="a study's suggestions take longer than those of GA and of SA",
            )
        ),
        read(
            lambda of: below(
                "annealing takes the least to compute (ET of table 2)",
                of.pairs("ET", "SA", "GA", "SM"),
                " s",
                tried="a study's suggestions take less than those of GA and of SM",
            )
        ),
        untried(
            "SRO: only the genetic algorithm finds the optimum (10 % of its studies); the "
            "surrogate is before annealing in average distance and gain (tables 2 and 3)",
            "the small read optimizer is not to be had; the orders that SRO and SBB share are "
            "tried above on all tables",
        ),
        untried(
            '"We insist that such a behavior is not acceptable in an HPC production setting"',
            "a judgement, of which the paper measures nothing",
        ),
    ]


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
        untried(
            '"The size of the parametric space and the non-linear relationship between the '
            "parameters and the delivered performance make hand-tuning, theoretical modeling or "
            'exhaustive sampling unsuitable for most cases" (abstract)',
            "a motive, which the paper does not measure; it tested 681 and 264 parametrizations "
            "and does not say whether these are whole spaces (681 = 3 · 227 is hardly a grid of "
            "four)",
        ),
        judged(
            'the optimal parametrization is found "without making any assumption on the '
            'performance function" (abstract)',
            {"the surrogate": False},
            "by the paper's own words (II-B-1) two of the surrogate's three acquisition functions "
            '"require that some statistical assumptions are made", and the default here is one of '
            'them; the third "has the advantage of not making any statistical assumption"; of '
            "annealing and of the genetic algorithm the paper does not say",
            tried="none of the heuristics makes one, by the paper's own words",
        ),
        judged(
            '"for both datasets the default parametrization shipped with the accelerator is not '
            'optimal" (IV-B)',
            {name: True if surely else Side.OPEN for name, surely in slower.items()},
            "; ".join(f"{name}: {share:.0f} % are faster" for name, share in quicker.items())
            + "; beyond the noise of the runs "
            + (f"on all but {' and '.join(unsure)}" if unsure else "on all"),
            tried="each table's default surely is not its best (5 % over all of a table)",
        ),
        some(
            '"preliminary results have shown that the optimal parametrization varies depending on '
            'the application" (IV-B)',
            len(different),
            f"{len(different) or 'none'} of {pairs} pairs. By the means there are {len(least)} "
            f"different best ones; by the noise of the runs {min(sets)} to {max(sets)} of "
            f"{len(patterns[0].points)} may be a pattern's best",
            tried=f"of `romio` under {len(patterns)} access patterns, some two have different "
            "best ones, surely",
        ),
        untried(
            '"For now, we have operated in a deterministic context, while our cluster have a '
            'stochastic behavior" (VI)',
            "its cluster is not to be had. The replays here are as deterministic, as each "
            "parametrization takes its mean; how the runs behind the means scatter is in the next "
            "row",
        ),
        above(
            '"even in a controlled environment, launching the same job with the same '
            'parametrization does not return the same value" (VI)',
            {on.name: _scattering(on) for on in tables},
            " %",
            bound=SAME,
            tried="the runs of a parametrization scatter by more than 1 %, which is our bound of "
            "the same",
        ),
        untried(
            '"Asserting the impact of noise and adapting the algorithms accordingly is unavoidable '
            'for their use in a production setting" (VI)',
            "a judgement, of which the paper measures nothing; the replays of this page have no "
            "noise. What its successor makes of it is on [a page of its own](robert2020.md)",
        ),
        untried(
            '"all algorithms were built from scratch with no dependence on external libraries '
            'other than the numpy [10] and the sklearn [11] library" (IV-A)',
            "its program was not published; ours is in Rust and has neither",
        ),
        untried(
            '"All the experiments were run on isolated nodes and storage systems to minimize '
            'potential interferences" (IV-A)',
            "of how its own data were measured, which were not published",
        ),
    ]


def _of_the_heuristics(read: Read) -> list[Claim]:
    """What section II says of them, and III of how they are made."""
    steps = BUDGET - DESIGN
    ends = {name: cooled(steps) for name, cooled in COOLINGS.items()}
    accepted = {name: 100.0 * exp(-SLOWER / end) for name, end in ends.items()}
    return [
        proven(
            'of the probability of improvement "we can derive a closed form"; of the expected '
            'improvement "a closed form function can be derived" (II-B-1)',
            "`robert2019_ii_b_1_the_closed_forms_are_what_a_simulation_gives`",
            tried="the closed forms give what drawing from the posterior gives",
        ),
        read(_over_the_whole_grid),
        judged(
            '"At the end of the algorithm, as the temperature looms close to zero, the probability '
            'of acceptance of a worse solution draws to zero" (II-B-2)',
            {name: share < RARELY for name, share in accepted.items()},
            "; ".join(
                f"{name}: {number(end)} s, {accepted[name]:.0f} %" for name, end in ends.items()
            ),
            tried=f"at the temperature after the last of {steps} steps, with the paper's T0 of "
            f"1000 read as seconds, what takes {SLOWER} s longer is accepted in less than "
            f"{RARELY:.0f} %. Both are our bounds, and ours is how quickly T0 falls, to a share of "
            "0.9^k, 1 / (1 + k) or 1 / (1 + ln(1 + k)) after k steps: the paper says only that the "
            'schedules "decrease to zero as the iteration step increases"',
        ),
        proven(
            'annealing: "at each iteration, the algorithm can increase or decrease by one unit '
            'each possible parametrization" (III-B-2)',
            "`robert2020_v_d_a_mutation_walks_in_every_direction`",
            tried="from where it stands each parameter goes a level up, a level down, or stays; a "
            "category stays or changes. The test has a mutation, which walks by the same function",
        ),
        proven(
            '"Three cooling schedules were tested: an exponential schedule [...], and a '
            'multiplicative and logarithmic one" (III-B-2)',
            "`robert2019_iii_b_2_three_cooling_schedules_by_hand`",
            tried="temperatures by hand; how quickly they fall the paper does not say",
        ),
        untried(
            "restarts: \"by randomly resetting the system's temperature back to its original "
            'value" (III-B-2)',
            "no test tries it. Of the variant of annealing that restarts at random, in the tables "
            "below, the temperature is its first again with a probability of 0.05 before each "
            "step, for which the paper has no number",
        ),
        proven(
            'restarts: "resetting it once the system\'s energy has gone under a given threshold" '
            "(III-B-2)",
            "`robert2019_iii_b_2_the_temperature_is_set_back_once_the_energy_falls_under_a_threshold`",
            tried="then the temperature is its first again",
        ),
        proven(
            'the probabilistic pick "randomly picks the fittest parametrizations according to '
            'their execution time" (III-B-3)',
            "`robert2019_iii_b_3_a_probabilistic_pick_follows_the_time`",
            tried="what takes less is picked more often",
        ),
        proven(
            'the tournament pick "randomly divides the already tested parametrizations in two and '
            'select the one yielding the best execution time in each pool" (III-B-3)',
            "`robert2019_iii_b_3_a_tournament_divides_the_tested_in_two`",
            tried="each parent is the best of its half",
        ),
        proven(
            '"We set the random Bernoulli law parameter which randomly triggers the mutation to a '
            'probability of 0.1" (III-B-3)',
            "`robert2020_viii_d_mutation_happens_at_its_rate`",
            tried="a child mutates as often as the setting says, which is 0.1 in all variants of "
            "GA; the test has 0.2, the rate of the paper's successor",
        ),
        untried(
            '"Our software shipped with the IO accelerator cannot provide too many regressions as '
            'this would make it unusable for the end-user" (III-C)',
            "a judgement: the paper asked no user, and says of no number that it is too many",
        ),
    ]


def _over_the_whole_grid(of: Reading) -> Claim:
    again = {on.name: fmean(of.again("SM", nth)) for nth, on in enumerate(of.tables)}
    return judged(
        'of these two: "we simply evaluated the function over the whole grid and selected the '
        'maximum value (brute force maximizer)" (III-B-1)',
        {"SM": any(again.values())},
        "`robert2019_iii_b_1_the_whole_grid_may_have_its_maximum_where_it_was_tested`. With the "
        "first reading the highest of the untested alone runs. Of the surrogate's runs after the "
        "design so many are of what had run before: "
        + ", ".join(f"{name} {number(one)} %" for name, one in again.items()),
        tried="the maximum of all parametrizations runs, also where it was tested before. A grid "
        "of at most 4096, as all are here, is evaluated whole. The test has the third acquisition, "
        "which is maximized by the same code",
    )


def _scattering(on: Table) -> Difference:
    """The coefficients of variation of parametrizations that have several runs, %."""
    groups = [[sample.elapsed for sample in samples] for samples in on.samples if len(samples) > 1]
    return mean([100.0 * stdev(group) / fmean(group) for group in groups])


def _not_additive(tables: Sequence[Table]) -> Claim:
    """A linear function has no interactions; sums of squares add up on whole grids only."""
    told, cannot, sides = [], [], {}
    for on in tables:
        whole = prod(parameter.levels for parameter in on.parameters)
        if len(on.points) == whole:
            surely = anova.surely(anova.interactions(on))
            told.append(f"{on.name}: {sum(surely)} of {len(surely)} pairs of parameters")
            sides[on.name] = True if any(surely) else Side.OPEN
        else:
            cannot.append(
                f"{on.name} cannot tell: it has {len(on.points)} of the {whole} parametrizations "
                "of its grid"
            )
    return judged(
        '"the non-linear relationship between the parameters and the delivered performance" '
        "(abstract)",
        sides,
        "; ".join([*told, *cannot]),
        tried="on each whole grid some two parameters do more together than each alone, which a "
        "linear function does not: ANOVA of the means, at 5 % over all pairs (Bonferroni)",
    )


def _of_the_optimum(tables: Sequence[Table], read: Read) -> list[Claim]:
    sbb = tables[0]

    def success(of: Reading) -> Claim:
        shares = [fmean(of.metric("S", "SM", nth)) for nth in range(len(tables))]
        return judged(
            'SBB: "the minimum has been found in all the 20 optimization paths" of the surrogate',
            {sbb.name: shares[0] == ALL},
            f"{sbb.name}: {shares[0]:.1f} % (the others: "
            + ", ".join(f"{one:.1f}" for one in shares[1:])
            + ")",
            tried="its studies all run the optimum",
        )

    def limited(of: Reading) -> Claim:
        return above(
            'black-box optimization is used "to find the optimal parametrization [...] in a '
            'limited number of iterations" (abstract)',
            {
                f"{on.name}, {name}": share(sum(one > 0.0 for one in hits), len(hits))
                for nth, on in enumerate(tables)
                for name in HEURISTICS
                for hits in [of.metric("S", name, nth)]
            },
            " %",
            bound=HALF,
            tried=f"more than 50 % of each heuristic's studies run the optimum in {BUDGET} "
            "iterations. In the paper 40 and 20 % of GA's and SA's do on SBB, 10 % and none on SRO",
        )

    def limited_near(of: Reading) -> Claim:
        near = {}
        for nth, on in enumerate(tables):
            away = CLOSE * (on.truths[on.default] - on.truths[on.best])
            for name in HEURISTICS:
                found = of.metric("DistOpt", name, nth)
                near[f"{on.name}, {name}"] = share(sum(one <= away for one in found), len(found))
        return above(
            "the same",
            near,
            " %",
            bound=HALF,
            tried="the same with a tolerance: they find what is within half of the default's "
            "distance of the optimum",
        )

    def reached(of: Reading) -> Claim:
        steps = {name: of.known("IS", name, 0) for name in HEURISTICS}
        return above(
            "SBB: where it finds it, the surrogate does so the latest (IS of table 2: 82, 43 and "
            "47)",
            {
                f"{sbb.name}, SM - {other}": unpaired(steps["SM"], steps[other])
                for other in ("GA", "SA")
            },
            " runs",
            tried="the run in which it first does, of the studies that do, is later than GA's and "
            f"SA's: of {len(steps['SM'])} studies of SM, {len(steps['GA'])} of GA and "
            f"{len(steps['SA'])} of SA",
        )

    def sooner(of: Reading) -> Claim:
        ga, sa = (of.known("IS", name, 0) for name in ("GA", "SA"))
        differences = {f"{sbb.name}, GA - SA": unpaired(ga, sa)}
        return below(
            "SBB: the genetic algorithm does so sooner than annealing (IS of table 2: 43 and 47)",
            differences,
            " runs",
            tried=f"the same run is earlier than SA's, of {len(ga)} and {len(sa)} studies",
        )

    def close(of: Reading) -> Claim:
        differences = {}
        for nth, on in enumerate(tables):
            away = on.truths[on.default] - on.truths[on.best]
            found = [100.0 * one / away for one in of.metric("DistOpt", "GA", nth)]
            differences[on.name] = mean(found)
        return below(
            "the genetic algorithms' \"returned optimum is close to the optimal value in both "
            'cases"',
            differences,
            " %",
            bound=100.0 * CLOSE,
            tried="it is within half of the default's distance",
        )

    return [
        read(limited),
        read(limited_near),
        read(
            lambda of: below(
                '"in both cases (SBB and SRO), surrogate models perform best in terms of proximity '
                'to the true optimal parametrization"',
                of.pairs("DistOpt", "SM", "GA", "SA"),
                " s",
                tried="Dist Opt is below GA's and SA's",
            )
        ),
        read(success),
        read(reached),
        read(sooner),
        read(
            lambda of: above(
                "the genetic algorithm finds it more often than annealing (S of table 2: 40 and "
                "20 % on SBB, 10 and 0 % on SRO)",
                of.pairs("S", "GA", "SA"),
                tried="its share of studies is larger, percentage points",
            )
        ),
        untried(
            'SRO: "no trajectory has succeeded at finding the optimum", of the surrogate',
            "the small read optimizer and its data are not to be had",
        ),
        judged(
            'SRO: "the returned optimal parametrization yields an execution time 1ms lower than '
            'the actual optimum", of the surrogate',
            {"SRO": False},
            "nothing is below the optimum, and the paper's own table 2 has a distance of 0.1 s",
            tried="by the paper's own table 2",
        ),
        read(close),
        read(
            lambda of: below(
                'annealing "has [...] a low accuracy"',
                of.pairs("DistOpt", "GA", "SA"),
                " s",
                tried="as in table 2, the genetic algorithm's Dist Opt is below annealing's",
            )
        ),
    ]


def _of_stability(
    tables: Sequence[Table], read: Read, alike: Sequence[Reading], names: Sequence[str]
) -> list[Claim]:
    """`alike` are the readings, of these names, that treat SM and GA alike."""

    def spread(times: list[float], _: Table) -> float:
        return stdev(times[DESIGN:])

    def major(of: Reading) -> Claim:
        shares = {
            on.name: share(round(sum(have)), len(have))
            for nth, on in enumerate(tables)
            if max(on.truths) > MAJOR * on.truths[on.default]
            for have in [of.each("GA", nth, partial(has_major, on=on))]
        }
        quick = [on for on in tables if on.name not in shares]
        claim = below(
            'it "does not cause any major performance regression" (figures 4 and 5: one study '
            "each)",
            shares,
            " %",
            bound=HALF,
            tried="less than 50 % of the studies have a run after the design that takes half as "
            "long again as the default",
        )
        cannot = [
            f"{on.name} cannot tell: its slowest takes "
            f"{max(on.truths) / on.truths[on.default]:.2f} times the default"
            for on in quick
        ]
        return replace(claim, figure="; ".join([claim.figure, *cannot]))

    def improving(of: Reading) -> Claim:
        return below(
            "\"This creates a feedback loop which continuously improves the application's "
            'execution time" (III-A)',
            {f"{on}, {name}": one for name in HEURISTICS for on, one in _later(of, name).items()},
            " s",
            tried="of each heuristic runs 76 to 100 take less than runs 26 to 50",
        )

    def neighbours(of: Reading) -> Claim:
        shares = {on.name: fmean(of.neighbours("GA", nth)) for nth, on in enumerate(tables)}
        return judged(
            'it "can only switch to a neighboring parametrization", of the algorithm',
            {name: share == ALL for name, share in shares.items()},
            "; ".join(
                f"{name}: {share:.0f} % of its steps are to a neighbour"
                for name, share in shares.items()
            )
            + ". A cross of two distant parents is no neighbour of either",
            tried="each run after the design is at most a level from the one before it in each "
            "parameter; of categories any is a neighbour",
        )

    def oscillates(of: Reading) -> Claim:
        every = of.compared(departures, "SM", "GA")
        here = {name: one for name, one in every.items() if name.startswith(tables[0].name)}
        others = {name: one for name, one in every.items() if name not in here}
        tried = above(
            'SBB: "in Figure 5 [...] surrogate models oscillate between close to optimum and '
            'slower execution time"',
            here,
            tried="after the design, a run within half of the default's distance is more often "
            "followed by one that is not than in GA, which is our bound: how many times more in a "
            "study",
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

    def suboptimal(of: Reading) -> Claim:
        found = {}
        for nth, on in enumerate(tables):
            late = of.each("GA", nth, lambda times: median(times[75:100]))
            found[on.name] = share(sum(one > on.truths[on.best] for one in late), len(late))
        return above(
            '"it remains in a suboptimal state" (figures 4 and 5: one study each)',
            found,
            " %",
            bound=HALF,
            tried="of more than 50 % of its studies the median of the last 25 runs is above the "
            "optimum",
        )

    return [
        read(
            lambda of: below(
                '"genetic algorithms offer the best trade-off between accuracy and stability, with '
                'an average difference of" 12.85 s and 8.35 s',
                of.pairs("AvgDist", "GA", "SM", "SA"),
                " s",
                tried="as in table 2 GA has a lower Avg Dist than SM and than SA; the accuracy is "
                "two rows above",
            )
        ),
        read(
            lambda of: below(
                '"and an exploration cost of" 984 s and 279 s',
                of.pairs("EC", "GA", "SM", "SA"),
                " s",
                tried="as in table 2 GA has a lower EC than SM and than SA: a run is worse than "
                "the one before it. Table 1 has the number of these too; table 2 prints seconds, "
                "so their sum",
            )
        ),
        read(
            lambda of: below(
                "the same",
                of.pairs("ECBest", "GA", "SM", "SA"),
                " s",
                tried='the same, where a run is worse than the best before it: "worse than he has '
                'already seen it" (table 1)',
            )
        ),
        read(
            lambda of: above(
                'surrogates\' "switching between values is too erratic"',
                of.pairs("EC", "SM", "GA", "SA"),
                " s",
                tried="as in table 2 SM has a higher EC than GA and than SA",
            )
        ),
        read(
            lambda of: above(
                '"The same can be said about simulated annealing, which has a high exploration '
                'cost"',
                of.pairs("EC", "SA", "GA"),
                " s",
                tried="as in table 2 SA has a higher EC than GA",
            )
        ),
        read(improving),
        read(
            lambda of: above(
                "SBB: annealing is nearer than the surrogate on average (Avg Dist of table 2)",
                {
                    f"{tables[0].name}, SM - SA": paired(
                        of.metric("AvgDist", "SM", 0), of.metric("AvgDist", "SA", 0)
                    )
                },
                " s",
                tried="SA has a lower Avg Dist than SM",
            )
        ),
        read(_trade_off),
        read(
            lambda of: above(
                "our own question beside the paper's, whose trade-off is between heuristics (the "
                "row above): whether it shows within the surrogate",
                {
                    f"{name}, {metric}": one
                    for metric, pair in (
                        ("Avg Dist", of.pairs("AvgDist", "SM", EXPLOITING)),
                        ("Dist Opt", of.pairs("DistOpt", EXPLOITING, "SM")),
                    )
                    for name, one in pair.items()
                },
                " s",
                tried="of the surrogate alone: where it picks its posterior's minimum, which "
                "exploits, its Avg Dist is lower than with expected improvement, which explores "
                "too, and its Dist Opt higher",
            )
        ),
        untried(
            '"once the surrogate models have properly explored a subset of the parametric space '
            "(i.e. the variance estimated by the gaussian process decreases) it moves on to zones "
            'with higher variances"',
            "no posterior variance is recorded of the replays. That its acquisition function is "
            "higher where the variance is, other things equal, is the definition of expected "
            "improvement, and no trial; what of the sentence leaves a trace in the runs is in the "
            "next rows",
        ),
        read(
            lambda of: above(
                'surrogates "loom very close to the optimum value" (figure 4)',
                {
                    on.name: share(round(sum(near)), len(near))
                    for nth, on in enumerate(tables)
                    for near in [of.each("SM", nth, partial(comes_close, on=on))]
                },
                " %",
                bound=HALF,
                tried="more than 50 % of the studies have a run after the design within half of "
                "the default's distance of the optimum",
            )
        ),
        read(_moves_on),
        _longer(alike, names),
        read(oscillates),
        read(
            lambda of: above(
                '"Simulated annealing exhibits a similar behavior" (figures 4 and 5), of moving on',
                _later(of, "SA"),
                " s",
                tried="its runs 76 to 100 take longer than its runs 26 to 50",
            )
        ),
        read(
            lambda of: above(
                "the same, of oscillating",
                of.compared(departures, "SA", "GA"),
                tried="by the count above it leaves what is close more often than GA, on all "
                "tables",
            )
        ),
        read(
            lambda of: below(
                '"The genetic algorithm does not display a similar behavior", of moving on',
                _later(of, "GA"),
                " s",
                tried="its runs 76 to 100 take less than its runs 26 to 50. Where it searches, by "
                "variances, is not recorded, so that only what a user sees is judged, its times",
            )
        ),
        judged(
            '"as its stochastic behavior is limited to mutation"',
            {"": False},
            "by the paper's own words (III-B-3, II-B-3) the pick is drawn too, which \"randomly "
            'divides the already tested parametrizations in two", and the crossover, "randomly '
            'splitting each parametrization in two"',
            tried="nothing else is drawn, by the paper's own words",
        ),
        proven(
            '"and can only switch to a neighboring parametrization", of a mutation',
            "`robert2020_v_d_a_mutation_walks_in_every_direction`",
            tried="it moves by at most a level in each parameter; of categories any is a neighbour",
        ),
        read(neighbours),
        read(
            lambda of: below(
                '"In the two figures, genetic algorithms exhibit a more stable behavior"',
                of.compared(spread, "GA", "SM", "SA"),
                " s",
                tried="the standard deviation of times after the design is below SM's and SA's",
            )
        ),
        read(suboptimal),
        read(major),
    ]


def _rises(of: Reading, name: str) -> dict[str, list[float]]:
    """By table and study, how much longer late runs take than earlier ones."""
    return {
        on.name: of.each(name, nth, lambda times: fmean(times[75:100]) - fmean(times[25:50]))
        for nth, on in enumerate(of.tables)
    }


def _later(of: Reading, name: str) -> dict[str, Difference]:
    return {on: mean(rise) for on, rise in _rises(of, name).items()}


def _longer(alike: Sequence[Reading], names: Sequence[str]) -> Claim:
    """Of SM against GA; and what it is of SM alone, by the two readings of what was tested."""
    more = above(
        '"with longer execution times"',
        {
            f"{on}, SM - GA, {name}": paired(one, other)
            for name, of in zip(names, alike, strict=True)
            for (on, one), other in zip(
                _rises(of, "SM").items(), _rises(of, "GA").values(), strict=True
            )
        },
        " s",
        tried="by how much runs 76 to 100 take longer than runs 26 to 50: in SM by more than in "
        "GA, which is our bound. Where nothing runs twice what is left gets slower by itself, "
        "whoever picks it: so only readings count in which both run nothing twice, or both "
        "whatever comes",
    )
    nothing_twice, whatever_comes = (above("", _later(of, "SM")).verdict for of in alike)
    return replace(
        more,
        figure=f"{more.figure}. If SM's later runs only have to take longer than its own earlier "
        f"ones, on all tables: {nothing_twice} where it runs nothing twice (the figures are in the "
        f"row on the feedback loop); {whatever_comes} where it runs whatever comes",
    )


def _trade_off(of: Reading) -> Claim:
    """Whether what comes nearest to the optimum is not what stays nearest to it."""
    differences, sides = {}, {}
    for nth, on in enumerate(of.tables):
        nearest = [
            name
            for name in HEURISTICS
            if all(one.low <= 0.0 for one in _less_others(of, "DistOpt", name, nth).values())
        ]
        for metric, title in (("AvgDist", "Avg Dist"), ("EC", "EC")):
            says = set()
            for name in nearest:
                others = _less_others(of, metric, name, nth)
                best, less = max(others.items(), key=lambda other: other[1].mean)
                differences[f"{on.name}, {title}, {name} - {best}"] = less
                says.add(less.side(1))
            sides[f"{on.name}, {title}"] = says.pop() if len(says) == 1 else Side.OPEN
    return judged(
        '"These results are a good demonstration of the trade-off between exploration and '
        'exploitation" (V)',
        sides,
        listed(differences, " s"),
        tried="the heuristic with the lowest Dist Opt has neither the lowest Avg Dist nor the "
        "lowest EC: on each table the best of the two others is below it in both. So it is in "
        "table 2: SM has the lowest Dist Opt, GA the two others. Where several may have the lowest "
        "Dist Opt, by its intervals, each is listed; they count as one comparison, undecided if "
        "they differ",
    )


def _less_others(of: Reading, metric: str, name: str, nth: int) -> dict[str, Difference]:
    """A heuristic minus each of the others, on a table."""
    return {
        other: paired(of.metric(metric, name, nth), of.metric(metric, other, nth))
        for other in HEURISTICS
        if other != name
    }


def _moving_on(of: Reading, name: str) -> dict[str, Difference]:
    """How much more novel late runs are than earlier ones."""
    found = {}
    for nth, on in enumerate(of.tables):
        away = of.novelty(name, nth)
        found[on.name] = paired(
            [fmean(one[75:100]) for one in away], [fmean(one[25:50]) for one in away]
        )
    return found


def _moves_on(of: Reading) -> Claim:
    """What comes after the surrogate is close has hardly anything before it to compare with."""
    first = {}
    for nth, on in enumerate(of.tables):
        limit = _close(on)
        first[on.name] = median(
            next((place for place, time in enumerate(times[DESIGN:], 1) if time <= limit), BUDGET)
            for times in of.courses("SM", nth)
        )
    return untried(
        'and "moves on to unexplored space" (figure 4; "The same can be said in Figure 5")',
        "its runs after it has come so close would have to be more novel than those before, of "
        "which there are hardly any: of the runs after the design the first so close is, in the "
        f"median study, number {', '.join(f'{at:.0f} ({on})' for on, at in first.items())}. "
        "Known is the novelty of a run, the share of still untested parametrizations that lie "
        "nearer to a tested one than this run does: in runs 76 to 100 over that in runs 26 to 50, "
        f"percentage points: {listed(_moving_on(of, 'SM'))}",
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

    most = {on.name: 100.0 * (1.0 - on.truths[on.best] / on.truths[on.default]) for on in tables}
    there_is = "The optimum has " + ", ".join(f"{on} {one:.0f}" for on, one in most.items()) + " %"

    return [
        read(
            lambda of: below(
                '"it performs better than the default parametrization" (figures 4 and 5)',
                settled(of),
                " s",
                tried="GA's mean run after the design takes less than the default",
            )
        ),
        read(
            lambda of: above(
                '"this framework successfully improves the execution time of two applications"; '
                '"possible time gains of respectively 38% and 20% for each accelerator" (abstract; '
                "SRO, SBB); 38.4 and 20.5 %, of GA (table 3)",
                gains(of, "GA"),
                " %",
                tried="GA's mean gain over the whole loop is above 0; by how much is not judged. "
                + there_is,
            )
        ),
        read(
            lambda of: above(
                "the surrogate gains too: 9.8 % (SBB) and 30.1 % (SRO; table 3)",
                gains(of, "SM"),
                " %",
                tried="its mean gain over the whole loop is above 0",
            )
        ),
        read(
            lambda of: above(
                "annealing gains too: 13.1 % (SBB) and 21.3 % (SRO; table 3)",
                gains(of, "SA"),
                " %",
                tried="its mean gain over the whole loop is above 0",
            )
        ),
        read(
            lambda of: above(
                '"Efficiency was observed for both datasets" (V)',
                {
                    f"{on}, {name}": one
                    for name in HEURISTICS
                    for on, one in gains(of, name).items()
                },
                " %",
                tried="the mean gain of each heuristic is above 0: the three rows above",
            )
        ),
        untried(
            'they "describe the behavior of two very different IO-oriented applications with two '
            'very different accelerators" (V)',
            "neither the applications nor the accelerators are to be had",
        ),
        untried(
            '"These results validate the relevance of black box optimization in our HPC specific '
            'context" (V); "we have successfully demonstrated the usefulness of using black-box '
            "algorithms for auto-tuning a pure software and a mixed soft-hardware IO accelerator "
            'in the HPC context" (VI)',
            "a judgement of its own results in its own context; what of it can be tried elsewhere "
            "is in the rows on the optimum, on gains and on shares below the default",
        ),
        read(
            lambda of: above(
                "the genetic algorithm gains more than the surrogate and annealing (table 3)",
                of.pairs("Gain", "GA", "SM", "SA"),
                tried="percentage points",
            )
        ),
        read(
            lambda of: above(
                "SBB: annealing gains more than the surrogate (table 3)",
                {
                    f"{tables[0].name}, SA - SM": paired(
                        of.metric("Gain", "SA", 0), of.metric("Gain", "SM", 0)
                    )
                },
                tried="percentage points",
            )
        ),
        read(
            lambda of: above(
                '"Overall, the tuning framework improves the execution time compared to the '
                'default parametrization": "averaged over all heuristics and all trajectories, '
                "77.57 percent (SBB dataset) and 89.47 percent (SRO dataset) of the execution time "
                'returned by the loop are below the execution time yielded by the default"',
                shares(of, below_default),
                " %",
                bound=HALF,
                tried="more than 50 % of all runs of the three heuristics are",
            )
        ),
        read(
            lambda of: above(
                '"genetic algorithms provide the best results when compared with [...] the '
                'default"',
                of.compared(below_default, "GA", "SM", "SA"),
                tried="more of GA's runs are below it than of SM's and of SA's, percentage points",
            )
        ),
        read(
            lambda of: above(
                '"51.24 percent (SBB dataset) and 59.25 percent (SRO dataset) of trajectories are '
                'below the mean execution time at all iteration"',
                shares(of, below_mean_throughout),
                " %",
                bound=HALF,
                tried="as studies, by the words: of more than 50 % each run is below the mean",
            )
        ),
        read(
            lambda of: above(
                "the same trajectories",
                shares(of, after_the_design),
                " %",
                bound=HALF,
                tried="as studies, of whose runs those after the design count alone",
            )
        ),
        read(
            lambda of: above(
                "the same trajectories",
                shares(of, below_mean),
                " %",
                bound=HALF,
                tried="as for the default, a share of runs: more than 50 % of all are below the "
                "mean",
            )
        ),
        read(
            lambda of: above(
                '"genetic algorithms provide the best results when compared with [...] the mean '
                'execution time"',
                of.compared(after_the_design, "GA", "SM", "SA"),
                tried="as studies, of whose runs those after the design count alone: more of GA's "
                "are than of SM's and of SA's, percentage points",
            )
        ),
        read(
            lambda of: above(
                "the same",
                of.compared(below_mean, "GA", "SM", "SA"),
                tried="as a share of runs: more of GA's runs are, percentage points",
            )
        ),
    ]

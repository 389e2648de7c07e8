"""Robert 2020: what it says of its methods, by differences over repetitions and over studies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from statistics import fmean, median, variance
from typing import Any

from comparison.simulate import figures as simulated
from peers.tables import Table

from papers import robert2020_metrics, robert2020_steps, studies
from papers.claims import (
    Claim,
    Difference,
    above,
    alike,
    below,
    bootstrapped,
    column,
    judged,
    listed,
    mean,
    paired,
    proven,
    some,
    untried,
    with_readings,
)
from papers.published import CLASSES, DEFAULT_OF_TABLE_IV, TABLE_IV
from papers.robert2020_metrics import HIGHER, OF_THE_SCORES, normalised

FIGURE_4 = ("ScoreOptim", "ScoreStability", "Score")
"""What figure 4 shows."""
BOTH = "SuccessAndSteps"
"""`ScoreOptim` without its third metric, the distance."""
SCORES = {"ScoreOptim": "optim", "ScoreStability": "stability", "Score": "score", BOTH: "both"}
SHARES = ("5%", "10%", "20%", "50%")
"""Table V's p_fit."""
DESIGN = 15
"""Runs of the design."""
STEPS = 21
"""Iterations after which the paper finds what is so much faster than the default."""
FASTER = 10.5
"""%."""
LEAST = 3
"""The place of the least mean in table IV."""
NEGLIGIBLE = 3.55
"""The paper's regression cost that is negligible, in % of the mean time."""
SIMILAR = 0.1
"""Scores that differ by less are similar: our bound."""
REPRESENTATIVE = 10.0
"""So near to those of all parametrizations a design's mean and variance should be, %: our bound."""
REDUCTIONS = [("RGA", "CGA"), ("FGA", "CGA"), ("FRGA", "CGA")]


@dataclass(frozen=True)
class Best:
    """The best method of a class, by a score."""

    name: str
    metrics: Mapping[str, float | None]
    studies: Sequence[Mapping[str, Any]] = ()


def with_both(result: dict[str, Any]) -> dict[str, Any]:
    """A repetition, with the score of success and steps alone of each method."""
    [table] = result["tables"]
    columns = {
        metric: normalised([simulated(method)[metric] or 0.0 for method in table["methods"]])
        for metric in ("SuccessRate", "NbrSteps")
    }
    both = [
        success - steps
        for success, steps in zip(columns["SuccessRate"], columns["NbrSteps"], strict=True)
    ]
    methods = [
        {**method, "scores": {**method["scores"], SCORES[BOTH]: one}}
        for method, one in zip(table["methods"], normalised(both), strict=True)
    ]
    return {**result, "tables": [{**table, "methods": methods}]}


def best_of_each(result: Mapping[str, Any], by: str = "Score") -> list[Best]:
    """In the order of the classes."""
    return [_metrics(result, name) for name in _chosen(result, by)]


def judged_elsewhere(results: Sequence[Mapping[str, Any]], by: str = "Score") -> list[list[Best]]:
    """The best of each class in a repetition, by what they do in the next one.

    A class of many methods has more chances that one is lucky: under other seeds it no longer is.
    """
    return [
        [_metrics(other, name) for name in _chosen(one, by)]
        for one, other in zip(results, _following(results), strict=True)
    ]


def _following(results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of each repetition the next one."""
    return [*results[1:], results[0]]


def _chosen(result: Mapping[str, Any], by: str) -> list[str]:
    of = list(zip(result["methods"], result["tables"][0]["methods"], strict=True))
    chosen = []
    for name in CLASSES:
        candidates = [pair for pair in of if pair[0].split(" ")[0] == name]
        chosen.append(max(candidates, key=lambda pair: pair[1]["scores"][SCORES[by]])[0])
    return chosen


def _metrics(result: Mapping[str, Any], name: str) -> Best:
    method = result["tables"][0]["methods"][result["methods"].index(name)]
    scores = method["scores"]
    metrics = simulated(method) | {one: scores[key] for one, key in SCORES.items() if key in scores}
    return Best(name, metrics, method.get("studies", ()))


def over_methods(results: Sequence[Mapping[str, Any]], metric: str, *words: str) -> list[float]:
    """By repetition: the mean over the methods whose names have all these words."""
    means = []
    for result in results:
        of = zip(result["methods"], result["tables"][0]["methods"], strict=True)
        values = [
            method["scores"][SCORES[metric]] if metric in SCORES else simulated(method)[metric]
            for label, method in of
            if all(f" {word} " in f" {label} " for word in words)
        ]
        means.append(fmean(value or 0.0 for value in values))
    return means


@dataclass(frozen=True)
class Replays:
    """What the claims are judged by."""

    on: Table
    crossed: Sequence[Mapping[str, Any]]
    """Table V's cross, once for each repetition."""
    tested: Sequence[Mapping[str, Any]]
    """The same where a neighbourhood is a share of the tested points."""
    figure_5: Mapping[str, list[list[float]]]
    """The true times of each method's studies."""
    after: Mapping[str, Mapping[str, Any]]
    """The same methods, ended after `STEPS` runs."""
    noisy: Mapping[str, Any]
    quiet: Mapping[str, Any]
    """The conventional algorithm, with noise and without."""


def claims(of: Replays) -> list[Claim]:
    """The paper's sentences, in its order."""
    chosen = {by: judged_elsewhere(of.crossed, by) for by in SCORES}

    def values(metric: str, name: str, by: str = "Score") -> list[float]:
        return [one[CLASSES.index(name)].metrics[metric] or 0.0 for one in chosen[by]]

    def pairs(metric: str, *names: tuple[str, str], by: str = "Score") -> dict[str, Difference]:
        return {
            f"{one} - {other}": paired(values(metric, one, by), values(metric, other, by))
            for one, other in names
        }

    def means(
        metric: str, *names: tuple[tuple[str, ...], tuple[str, ...]]
    ) -> dict[str, Difference]:
        return {
            f"{' '.join(one)} - {' '.join(other)}": paired(
                over_methods(of.crossed, metric, *one), over_methods(of.crossed, metric, *other)
            )
            for one, other in names
        }

    def all_of(name: str) -> robert2020_steps.Steps:
        place = CLASSES.index(name)
        every = [study for one in chosen["Score"] for study in one[place].studies]
        return robert2020_steps.Steps(every, of.on.best)

    def fewer_steps(words: str, tried: str, *names: tuple[str, str]) -> Claim:
        return robert2020_steps.claim(
            words,
            tried,
            {f"{one} - {other}": (all_of(one), all_of(other)) for one, other in names},
            pairs("NbrSteps", *names),
        )

    def figure_4(score: str) -> dict[str, Difference]:
        return pairs(score, *REDUCTIONS, by=score)

    def before_random(score: str) -> dict[str, Difference]:
        return pairs(score, *((name, "RS") for name in CLASSES[:-1]), by=score)

    resampled = [("RGA", f"sedr {share}") for share in ("10%", "20%", "40%")]
    cost = 100.0 / fmean(of.on.truths)
    frga = [
        cost * (one[CLASSES.index("FRGA")].metrics["RegCost"] or 0.0) for one in chosen["Score"]
    ]
    optim = "by ScoreOptim, in which success, steps and distance weigh alike"
    return [
        proven(
            '"Automatically sets the parametrization of the burst buffer when a job is submitted '
            "using the job's history of runs\" (I)",
            "`test_a_study_of_the_four_parameters_goes_through_slurms_plugin`; that what it sets "
            "depends on the runs before: `robert2020_v_b_a_tournament_is_won_by_the_lowest_mean`",
            tried="what this project's service does with the instrument's four parameters; the "
            "studies of this page are offline, as the paper's",
        ),
        untried(
            'it "does not require any assumption or previous knowledge on the system to optimize" '
            '(I); "any configurable system whose performance measure is affected by noise" (X)',
            "one system is tuned here as there; the grid and its default are given. In the "
            "[comparison](../measurements/comparison.md) the methods are on many tables",
        ),
        robert2020_steps.claim_of_one(
            '"If this variability is not taken into account, the efficiency of black-box '
            "heuristics can be significantly reduced because of a slow down of the optimization "
            'process" (I)',
            "one of RGA, FGA and FRGA, which take it into account, needs fewer steps than CGA, "
            "which does not, at 5 % over the three; noise against none is a row below (VI)",
            {f"{one} - {other}": (all_of(one), all_of(other)) for one, other in REDUCTIONS},
            {
                f"{one} - {other}": (values("NbrSteps", one), values("NbrSteps", other))
                for one, other in REDUCTIONS
            },
        ),
        proven(
            'SEDR "adapts the number of samples to the noise strength measured at each '
            'parametrization" (VI-A-b)',
            "`robert2020_vi_a_sedr_reevaluates_until_the_error_is_below_the_threshold`",
            tried="it runs a parametrization again until the standard error of its mean is below "
            "the threshold",
        ),
        proven(
            '"setting the standard error of the mean threshold to a certain percentage p of the '
            'estimated mean" of the design, and of averaging n by its variance (VI-A-c); averaging '
            '"computes several times the fitness value of the selected parametrization" (VI-A-a)',
            "`robert2020_vi_a_the_threshold_is_a_share_of_the_design_mean`, "
            "`robert2020_vi_a_averaging_repeats_as_the_design_scatters`",
            tried="the threshold is p times the mean of the design; averaging runs every child "
            "floor(s² / (p² m²)) times, at least once",
        ),
        *_noise_harms(of, pairs),
        _mean_is_more_precise(of.on),
        _design_represents(of),
        *_of_regression(of, means),
        _not_sufficient(values),
        above(
            '"The goal of the different noise reduction strategies is to improve the score in the '
            "presence of noise and figure 4 shows that each one of them improves it over "
            'conventional genetic algorithm" (IX-A), here the convergence score',
            figure_4("ScoreOptim"),
            tried=optim,
        ),
        above("the same, here the stability score", figure_4("ScoreStability"), tried="as said"),
        above("the same, here the total score", figure_4("Score"), tried="as said"),
        *_of_figure_5(of, figure_4),
        *_critical(
            pairs("SuccessRate", ("RGA", "CGA")),
            fewer_steps(
                '"it improves the convergence speed of conventional genetic algorithms by 23%": '
                '"the number of steps required to find the optimal parametrization is reduced by '
                '23%" '
                "(IX-B-1, of RGA)",
                "RGA needs fewer steps than CGA",
                ("RGA", "CGA"),
            ),
        ),
        untried(
            '"Because of a more thorough exploitation of each data point, the number of steps '
            'required to find the optimal parametrization is reduced by 23%" (IX-B-1), here the '
            "cause",
            "whether there are fewer is the row above; nothing here tells this cause from another",
        ),
        above(
            '"The main benefits of noise reduction strategies are [...] the increase in the '
            'success rate (especially with RGA) of the algorithm" (IX-B-1)',
            pairs("SuccessRate", *REDUCTIONS),
            tried="each has a higher success rate than CGA, percentage points",
        ),
        above(
            '"especially with RGA"',
            pairs("SuccessRate", ("RGA", "FGA"), ("RGA", "FRGA")),
            tried="RGA's is above that of the others, percentage points",
        ),
        below(
            '"The main impact of resampling is the increase in the precision of the algorithm and '
            'especially the number of times the correct optimum is found" (IX-B-1), here the '
            "precision",
            pairs("DistOptim", ("RGA", "CGA")),
            tried="RGA's DistOptim is below CGA's, %",
        ),
        _main_impact(of, chosen["Score"]),
        below(
            "regression, alone and with resampling, is more precise too (table VI: 0.44, 0.23 and "
            "0.55 %)",
            pairs("DistOptim", *REDUCTIONS[1:]),
            tried="the DistOptim of FGA and of FRGA is below CGA's, %",
        ),
        fewer_steps(
            '"using the combination of the two methods lowers the number of iterations required '
            'for convergence by 29%" (IX-B-1)',
            "FRGA needs fewer steps than CGA",
            ("FRGA", "CGA"),
        ),
        fewer_steps(
            "regression takes fewer steps than none (table VI: 24.1 and 29.5)",
            "FGA needs fewer steps than CGA",
            ("FGA", "CGA"),
        ),
        fewer_steps(
            '"the lowering of the convergence speed (especially with FRGA)" (IX-B-1)',
            "FRGA needs fewer steps than RGA and than FGA",
            ("FRGA", "RGA"),
            ("FRGA", "FGA"),
        ),
        above(
            '"For the convergence speed, resampling using SEDR is the most efficient technique, '
            "with a bias threshold of 10% around the mean of the initialization plan. Increasing "
            'the bias (and thus reducing the number of iterations) lowers score values" (IX-B-1)',
            means(
                "ScoreOptim",
                (resampled[0], resampled[1]),
                (resampled[1], resampled[2]),
                *((resampled[0], ("RGA", f"averaging {share}")) for share in ("10%", "20%", "40%")),
            ),
            tried=f"SEDR at 10 % is before at 20 %, that before at 40 %, and before averaging at "
            f"any bias, {optim}",
        ),
        above(
            '"adding a fitness aggregation component improves the convergence quality compared to '
            'conventional genetic algorithms" (IX-B-1)',
            pairs("ScoreOptim", ("FGA", "CGA")),
            tried=optim,
        ),
        above(
            '"it is still less efficient than adding a resampling strategy" (IX-B-1)',
            pairs("ScoreOptim", ("RGA", "FGA")),
            tried=optim,
        ),
        above(
            '"modeling the area around the target fitness as a quadratic surface yields better '
            'results than using a weighted model" (IX-B-1)',
            means("ScoreOptim", (("FGA", "quadratic"), ("FGA", "weighted"))),
            tried=optim,
        ),
        above(
            '"and the smaller the neighborhood, the better the results. This means that modeling a '
            'larger zone as a quadratic surface is an oversimplification" (IX-B-1), here 5 and 10 '
            "%",
            means(
                "ScoreOptim",
                *(
                    (("FGA", f"{word} 5%"), ("FGA", f"{word} 10%"))
                    for word in ("weighted", "quadratic")
                ),
            ),
            tried=f"5 % is before 10 %, {optim}; that a larger zone is no quadratic surface is not "
            "tried apart",
        ),
        _larger_neighbourhoods(of),
        above(
            '"Combining resampling and fitness aggregation yields a score improvement compared to '
            'conventional genetic algorithms and single fitness regression" (IX-B-1)',
            pairs("ScoreOptim", ("FRGA", "FGA"), ("FRGA", "CGA")),
            tried=optim,
        ),
        above(
            '"but not as good as using only resampling" (IX-B-1)',
            pairs("ScoreOptim", ("RGA", "FRGA")),
            tried=optim,
        ),
        below(
            '"in terms of precision of the optimum found" (IX-B-1)',
            pairs("SuccessRate", ("FRGA", "RGA")),
            tried="FRGA has a lower SuccessRate, percentage points",
        ),
        above(
            "the same",
            pairs("DistOptim", ("FRGA", "RGA")),
            tried="FRGA has a larger DistOptim, %",
        ),
        above(
            '"Quadratic regression over a small neighborhood performs best" of the combinations '
            "(IX-B-1)",
            means(
                "ScoreOptim",
                (("FRGA", "quadratic 5%"), ("FRGA", "weighted 5%")),
                (("FRGA", "quadratic 5%"), ("FRGA", "quadratic 10%")),
            ),
            tried=f"a quadratic surface over 5 % is before a weighted average and before 10 %, "
            f"{optim}",
        ),
        above(
            '"and the combination of both methods reduces the number of repetitions when '
            'resampling (the bias threshold goes up to 40% for SEDR)" (IX-B-1)',
            means(
                "ScoreOptim",
                *(
                    (
                        ("FRGA", "sedr 40%", "quadratic 5%"),
                        ("FRGA", f"sedr {share}", "quadratic 5%"),
                    )
                    for share in ("10%", "20%")
                ),
            ),
            tried=f"with a quadratic surface over 5 %, SEDR at 40 % is before at 10 and at 20 %, "
            f"{optim}",
        ),
        _depends_on_the_metric(values),
        above(
            '"and when giving the same importance to both, RGA is the best choice" (IX-B-1)',
            pairs(BOTH, ("RGA", "CGA"), ("RGA", "FGA"), ("RGA", "FRGA"), by=BOTH),
            tried="both are success and steps: SuccessRate - NbrSteps, each normalised as in the "
            "scores, without the distance, which is ScoreOptim's third",
        ),
        below(
            '"Every noise reduction strategy improves the stability of the optimization process '
            'compared to conventional genetic algorithms, by reducing the regression cost" '
            "(IX-B-2)",
            pairs("RegCost", *REDUCTIONS),
            " s",
            tried="each has a lower RegCost than CGA",
        ),
        below(
            '"and the average distance to the optimum" (IX-B-2)',
            pairs("AvgDistOptim", *REDUCTIONS),
            " %",
            tried="each has a lower AvgDistOptim than CGA",
        ),
        above(
            "and yields more runs below the default's time (table VI)",
            pairs("InferiorDefault", *REDUCTIONS),
            tried="each has a higher InferiorDefault than CGA, percentage points",
        ),
        *_of_the_most_stable(pairs),
        untried(
            '"With a regression cost of 7 seconds on average (3.55% compared to the mean execution '
            'time), the perception of the regression cost by the user is negligible" (IX-B-2, of '
            "FRGA)",
            f"how users perceive it was not asked; it is {mean(frga).told()} % of the mean time "
            f"here, {NEGLIGIBLE} % there",
        ),
        above(
            '"When combining the scores, resampling strategies give the best results, as can be '
            'seen in figure 4" (IX-C)',
            pairs("Score", ("RGA", "CGA"), ("RGA", "FGA"), ("RGA", "FRGA")),
            tried="RGA has a higher total score than the others",
        ),
        above(
            "both together are before regression alone (figure 4, table VI)",
            pairs("Score", ("FRGA", "FGA")),
            tried="FRGA has a higher total score than FGA",
        ),
        *(
            above(
                f"each class is before random search (figure 4), by {score}",
                before_random(score),
                tried="as said",
            )
            for score in FIGURE_4
        ),
        above(
            "regression takes longer to compute (table VI)",
            pairs("ElTime", ("FGA", "CGA"), ("FRGA", "RGA")),
            " s",
            tried="FGA than CGA, FRGA than RGA",
        ),
    ]


def _critical(success: Mapping[str, Difference], steps: Claim) -> list[Claim]:
    """The abstract's sentence by what it names: the rate of success, and the steps below."""
    return [
        above(
            '"adding a noise reduction strategy is critical to the optimization process, as it '
            'improves [...] their success rate in finding the optimal parametrization by 78.9%" '
            "(abstract; IX-B-1, of RGA)",
            success,
            tried="RGA has a higher success rate than CGA, percentage points; by how much is not "
            "judged",
        ),
        steps,
    ]


def _larger_neighbourhoods(of: Replays) -> Claim:
    """As shares of the space they are one method; as shares of the tested they are not."""
    return above(
        "the same, here 10, 20 and 50 %",
        {
            f"FGA {word} {small} - {large}": paired(
                over_methods(of.tested, "ScoreOptim", "FGA", f"{word} {small}"),
                over_methods(of.tested, "ScoreOptim", "FGA", f"{word} {large}"),
            )
            for word in ("weighted", "quadratic")
            for small, large in pairwise(SHARES[1:])
        },
        tried="as shares of the tested points, by ScoreOptim. As shares of the 540 points each of "
        "these holds all that 50 runs test: they are one method",
    )


def _noise_harms(of: Replays, pairs: Callable[..., dict[str, Difference]]) -> list[Claim]:
    def known(method: Mapping[str, Any], metric: str) -> list[float]:
        return [value or 0.0 for value in column(method, metric)]

    words = (
        '"Not taking into account these possible interference greatly decreases the efficiency of '
        'black-box heuristics" (III)'
    )
    tried = (
        "RGA, FGA and FRGA, which take it into account, do better than CGA, which does not; in the "
        "other reading CGA does better without noise than with it: SuccessRate in percentage "
        "points, DistOptim in %. How greatly is not judged"
    )
    less = [(other, one) for one, other in REDUCTIONS]
    against_none = {
        "SuccessRate, without - with": paired(
            known(of.quiet, "SuccessRate"), known(of.noisy, "SuccessRate")
        ),
        "DistOptim, with - without": paired(
            known(of.noisy, "DistOptim"), known(of.quiet, "DistOptim")
        ),
    }
    taken = {
        f"{metric}, {name}": one
        for metric, of_it in (
            ("SuccessRate", pairs("SuccessRate", *REDUCTIONS)),
            ("DistOptim", pairs("DistOptim", *less)),
        )
        for name, one in of_it.items()
    }
    figure = f"{listed(taken)}. Noise against none: {listed(against_none)}"
    return [
        with_readings(
            {
                "taking it into account against not": replace(
                    above(words, taken, tried=tried), figure=figure
                ),
                "noise against none": above(words, against_none, tried=tried),
            },
            "taking it into account against not",
            counted=False,
        ),
        robert2020_steps.claim(
            '"the noise present in the data slows down the convergence process which requires more '
            'evaluations to reach the optimum" (VI)',
            "CGA needs fewer steps without noise than with it",
            {
                "without - with": (
                    robert2020_steps.Steps(of.quiet["studies"], of.on.best),
                    robert2020_steps.Steps(of.noisy["studies"], of.on.best),
                )
            },
            {"without - with": paired(known(of.quiet, "NbrSteps"), known(of.noisy, "NbrSteps"))},
        ),
    ]


def _mean_is_more_precise(on: Table) -> Claim:
    """The first half of a parametrization's runs, or the first alone, by what the others are."""
    half = min(map(len, on.samples)) // 2
    times = [[sample.elapsed for sample in samples] for samples in on.samples]

    def off(runs: int) -> list[float]:
        """How far the mean of the first ones is from that of the second half, %."""
        return [100.0 * abs(fmean(of[:runs]) / fmean(of[half:]) - 1.0) for of in times]

    return below(
        "of the mean of a parametrization's runs: its \"preciseness improves as the sample size "
        'for parametrization x increases" (VI-A)',
        {f"{half} runs - 1 run": paired(off(half), off(1))},
        tried=f"the mean of the first {half} runs is nearer to that of the other runs than the "
        "first run alone, percentage points, on average over the parametrizations",
    )


def _of_regression(of: Replays, means: Callable[..., dict[str, Difference]]) -> list[Claim]:
    def steps(result: Mapping[str, Any], *words: str) -> robert2020_steps.Steps:
        every = [_metrics(result, name) for name in result["methods"] if set(words) <= _words(name)]
        return robert2020_steps.Steps(
            [study for method in every for study in method.studies], of.on.best
        )

    regressors = [(("FGA", word), ("CGA",)) for word in ("weighted", "quadratic")]
    return [
        proven(
            'with neighbours only, "any assumptions made by the regressor on the execution '
            'function only has to hold locally" (VI-B)',
            "`robert2020_vi_b_a_neighbourhood_is_the_floor_of_its_share`, "
            "`robert2020_vi_b_the_weighted_average_by_hand`",
            tried="the regression of a point is given only the points nearest to it, and what lies "
            "beyond does not change it. Whether that is better is tried below, by neighbourhoods "
            "of 5 to 50 %",
        ),
        robert2020_steps.claim_by_repetition(
            'the choice of both regressors "is motivated by the increase of convergence speed in a '
            'noisy context as proven in [30]" (VI-B)',
            "FGA needs fewer steps than CGA with each of the two, by the means of each repetition "
            "over all methods of a regressor; what was proven in [30] is not judged",
            {
                f"{' '.join(one)} - {' '.join(other)}": [
                    (steps(result, *one), steps(result, *other)) for result in of.crossed
                ]
                for one, other in regressors
            },
            means("NbrSteps", *regressors),
        ),
    ]


def _words(name: str) -> set[str]:
    return set(name.split(" "))


def _not_sufficient(values: Callable[[str, str], Sequence[float]]) -> Claim:
    """Metrics that order alike say the same; the others have to be of some pair otherwise."""
    conventional = ("DistOptim", "NbrSteps")
    of_the_course = ("AvgDistOptim", "InferiorDefault", "RegCost")
    sure, figure = robert2020_metrics.trade_offs(values, conventional, of_the_course)
    return some(
        'distance and number of iterations "are not sufficient to reflect the constraints due to '
        'on-line learning, because the user is aware of the duration of each run" (VII)',
        sure,
        figure,
        tried="of some pair of classes the one is surely ahead in DistOptim or NbrSteps and behind "
        "in AvgDistOptim, InferiorDefault or RegCost, so that the former do not tell the latter, "
        "at 5 % over all pairs and metrics; steps count to what is recommended. Which constraints "
        "a user has is a judgement",
    )


def _depends_on_the_metric(values: Callable[[str, str], Sequence[float]]) -> Claim:
    words = '"Selecting the best algorithm depends on the importance given to each metric" (IX-B-1)'
    tried = (
        "of some pair of classes the one is surely ahead in success and the other in steps, which "
        "the sentence before names; in the other reading in any two metrics of the scores. At 5 % "
        "over all pairs and metrics; steps count to what is recommended"
    )
    two, figure = robert2020_metrics.trade_offs(values, ("SuccessRate", "NbrSteps"))
    six, beside = robert2020_metrics.trade_offs(values, OF_THE_SCORES)
    return with_readings(
        {
            "success and steps": some(
                words, two, f"success and steps: {figure}. Of the six metrics: {beside}", tried
            ),
            "the six metrics": some(words, six, beside, tried),
        },
        "success and steps",
    )


def _main_impact(of: Replays, chosen: Sequence[Sequence[Best]]) -> Claim:
    """Metrics have units of their own: what compares is the share of their range."""
    one, other = CLASSES.index("RGA"), CLASSES.index("CGA")

    def gains(metric: str) -> list[float]:
        return [
            robert2020_metrics.gain(result, metric, best[one].name, best[other].name)
            for result, best in zip(_following(of.crossed), chosen, strict=True)
        ]

    rest = [metric for metric in OF_THE_SCORES if metric != "SuccessRate"]
    success = gains("SuccessRate")
    return above(
        '"especially the number of times the correct optimum is found" (IX-B-1), here that this is '
        "the main impact of resampling",
        {f"SuccessRate - {metric}": paired(success, gains(metric)) for metric in rest},
        tried="RGA's gain over CGA in SuccessRate is larger than in each other metric of the "
        "scores, each normalised over all methods as for the scores: our measure. Whether it is a "
        "gain is tried above",
    )


def _design_represents(of: Replays) -> Claim:
    """How far each design is: over designs what is too high and too low would cancel."""
    designs = [times[:DESIGN] for times in of.figure_5["CGA"]]
    true_mean, true_variance = fmean(of.on.truths), variance(of.on.truths)
    draws = Random(0)
    drawn = [draws.sample(of.on.truths, DESIGN) for _ in designs]
    random = {
        "the mean": mean(away([fmean(times) for times in drawn], true_mean)),
        "the variance": mean(away([variance(times) for times in drawn], true_variance)),
    }
    claim = below(
        '"The initial sampling using Latin Hypercube Design ensures that the initial '
        'parametrizations are representative of the true population mean and variance" (VI-A-c)',
        {
            "the mean": mean(away([fmean(times) for times in designs], true_mean)),
            "the variance": mean(away([variance(times) for times in designs], true_variance)),
        },
        " %",
        bound=REPRESENTATIVE,
        tried="a design's is less than 10 % away from that of all parametrizations, on average",
    )
    beside = f"Of {DESIGN} points at random: {listed(random, ' %')}"
    return replace(claim, figure=f"{claim.figure}. {beside}")


def away(found: Sequence[float], true: float) -> list[float]:
    """How far each is from what is true, either way, %."""
    return [100.0 * abs(one / true - 1.0) for one in found]


def faster_by_iteration(courses: Sequence[list[float]], default: float) -> float:
    """The median over iterations of how much the median study is faster than the default, %."""
    return median(100.0 * (1.0 - time / default) for time in studies.medians(list(courses)))


def _of_figure_5(of: Replays, figure_4: Callable[[str], dict[str, Difference]]) -> list[Claim]:
    default = of.on.truths[of.on.default]

    def faster(name: str, places: Sequence[int]) -> float:
        return faster_by_iteration([of.figure_5[name][place] for place in places], default)

    def gain(name: str) -> Difference:
        return bootstrapped(lambda places: faster(name, places), len(of.figure_5[name]))

    most = 100.0 * (1.0 - of.on.truths[of.on.best] / default)
    conventional, resampled, combined = of.figure_5

    def more(name: str) -> Difference:
        """Than the conventional algorithm, of the same seeds."""
        return bootstrapped(
            lambda places: faster(name, places) - faster(conventional, places),
            len(of.figure_5[name]),
        )

    median_gain = {name: gain(name) for name in of.figure_5}
    reduced = {name: median_gain[name] for name in (resampled, combined)}
    over_conventional = {f"{name} - {conventional}": more(name) for name in reduced}
    found = {
        name: [100.0 * (1.0 - of.on.truths[place] / default) for place in _recommended(of, one)]
        for name, one in of.after.items()
        if name != conventional
    }
    theirs = 100.0 * (1.0 - TABLE_IV["averaged"][LEAST] / DEFAULT_OF_TABLE_IV)
    shares = {name: mean([100.0 * one / most for one in gains]) for name, gains in found.items()}
    at_once = above(
        f'"improve the execution time of the IOR benchmark by {FASTER}% compared to the default '
        f'burst buffer parametrization, in less than {STEPS} iterations" (abstract; "in {STEPS} '
        'iterations": IX-C, of resampling)',
        {name: mean(gains) for name, gains in found.items()},
        " %",
        tried=f"what is recommended after {STEPS} runs is faster than the default; by how much is "
        "not judged",
    )
    return [
        below(
            '"conventional genetic algorithm bring no improvement in median execution time '
            'compared to using the default parametrization" (IX-A, figure 5)',
            {conventional: median_gain[conventional]},
            " %",
            tried="by how much the median study is faster than the default, in the median over "
            "iterations: no more than 0",
        ),
        _reduces(reduced, over_conventional),
        judged(
            '"Taking into account the noise is thus critical to perform an efficient optimization '
            "of the burst buffer, as regular optimization is no better than using its default "
            'parametrization" (IX-A)',
            {
                conventional: median_gain[conventional].side(-1),
                **{name: one.side(1) for name, one in reduced.items()},
                **{
                    f"{score}, {name}": one.side(1)
                    for score in ("ScoreOptim", "ScoreStability")
                    for name, one in figure_4(score).items()
                },
            },
            "the comparisons of these rows, the first readings'",
            tried="the section concludes it from the two rows above, and from the convergence and "
            "stability scores before them",
        ),
        above(
            '"The heuristic provides in median over each iteration an improvement of 5.18% '
            'compared to the default parametrization (figure 5)" (IX-C)',
            {resampled: median_gain[resampled]},
            " %",
            tried="by the same measure resampling is faster than the default, over all iterations, "
            "the design's included; by how much is not judged",
        ),
        _while_it_runs(of.figure_5[resampled], default),
        replace(
            at_once,
            figure=f"{at_once.figure}. Of the {most:.0f} % that there are these are "
            f"{listed(shares, ' %')}; in the paper 10.5 of {theirs:.1f} %, which is "
            f"{100.0 * FASTER / theirs:.0f} % by our division",
        ),
        untried(
            '"Has been validated on a production HPC cluster" (I)',
            "no such cluster here; the paper replays a table that was measured on one",
        ),
    ]


def _while_it_runs(courses: Sequence[list[float]], default: float) -> Claim:
    """The worst iteration, and which are slower than the default."""

    def gains(places: Sequence[int]) -> list[float]:
        by_run = studies.medians([courses[place] for place in places])
        return [100.0 * (1.0 - time / default) for time in by_run]

    every = gains(range(len(courses)))
    slow = [nth for nth, gain in enumerate(every, 1) if gain < 0.0]
    told = f"iterations {slow[0]} to {slow[-1]}" if slow else "none"
    worst = bootstrapped(lambda places: min(gains(places)), len(courses))
    middle = bootstrapped(lambda places: median(gains(places)), len(courses))
    words = (
        '"our tuner is more efficient than using the default parametrization, even when the '
        'optimization process is still running and convergence has not been reached" (IX-C)'
    )
    tried = (
        "the median run of resampling is faster than the default, in the median over iterations, "
        "as the sentence before has it; in the other reading in each iteration"
    )
    differences = {"in the median over iterations": middle, "in the worst iteration": worst}
    figure = (
        f"{listed(differences, ' %')}; slower are {told}; the first {DESIGN} are the design; "
        f"after it, in the median over iterations, {median(every[DESIGN:]):.1f} % faster"
    )
    return with_readings(
        {
            "in the median over iterations": replace(
                above(words, {"": middle}, tried=tried), figure=figure
            ),
            "in each iteration": above(words, {"": worst}, tried=tried),
        },
        "the median over iterations",
    )


def _reduces(
    over_default: Mapping[str, Difference], over_conventional: Mapping[str, Difference]
) -> Claim:
    words = (
        '"However, using a noise reduction strategy greatly reduces the median execution time" '
        "(IX-A, figure 5)"
    )
    tried = (
        "by the same measure it is faster than the default, with which the sentence before "
        "compares; in the other reading its gain is larger than CGA's, percentage points. How "
        "greatly is not judged. Figure 5 has RGA alone: FRGA is added here"
    )
    figure = (
        f"than the default: {listed(over_default, ' %')}. Than CGA: {listed(over_conventional)}"
    )
    return with_readings(
        {
            "than the default": replace(above(words, over_default, tried=tried), figure=figure),
            "than CGA": above(words, over_conventional, tried=tried),
        },
        "the gain over the default",
        counted=False,
    )


def _recommended(of: Replays, method: Mapping[str, Any]) -> list[int]:
    """What each study recommends; a study that has nothing recommends the default."""
    found = [study["recommended"] for study in method["studies"]]
    return [of.on.default if place is None else place for place in found]


def _of_the_most_stable(
    pairs: Callable[..., dict[str, Difference]],
) -> list[Claim]:
    alone = (("FRGA", "RGA"), ("FRGA", "FGA"))
    differences = {
        (metric, name): of
        for metric in ("RegCost", "AvgDistOptim", "InferiorDefault")
        for name, of in pairs(metric, *alone).items()
    }
    sides = {
        f"{metric}, {name}": of.side(1 if metric in HIGHER else -1)
        for (metric, name), of in differences.items()
    }
    told = "; ".join(f"{metric}, {name} {of.told()}" for (metric, name), of in differences.items())
    return [
        judged(
            '"The most stable behavior is offered by the combination of fitness regression and '
            'resampling strategies" (IX-B-2)',
            sides,
            told,
            tried="as in table VI FRGA has a lower RegCost (s), a lower AvgDistOptim (%) and a "
            "higher InferiorDefault (%) than RGA and than FGA",
        ),
        above(
            '"Using either of these components separately gives a [...] lower score" (IX-B-2; '
            "table VI has 1 for FGA and 0.89 for FRGA, but FRGA best in each of the three metrics "
            "of that score, so the table contradicts itself)",
            pairs("ScoreStability", *alone, by="ScoreStability"),
            tried="FRGA has a higher ScoreStability than RGA and than FGA",
        ),
        alike(
            '"a similar [...] score" (IX-B-2)',
            pairs("ScoreStability", ("RGA", "FGA"), by="ScoreStability"),
            SIMILAR,
            tried=f"RGA and FGA differ by less than {SIMILAR}, our bound",
        ),
    ]

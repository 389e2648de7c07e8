"""Robert 2020: what it says of its methods, by differences over repetitions and over studies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median, variance
from typing import Any

from comparison.simulate import figures as simulated
from peers.tables import Table

from papers import robert2020_steps, studies
from papers.claims import (
    UNTRIED,
    Claim,
    Difference,
    above,
    alike,
    below,
    bootstrapped,
    column,
    judged,
    mean,
    paired,
)
from papers.published import CLASSES, DEFAULT_OF_TABLE_IV, TABLE_IV, TABLE_VI

HIGHER = {"SuccessRate", "InferiorDefault", "ScoreOptim", "ScoreStability", "Score"}
"""The metrics of which more is better."""
SCORES = {"ScoreOptim": "optim", "ScoreStability": "stability", "Score": "score"}
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
REPRESENTATIVE = 10.0
"""So near to those of all parametrizations a design's mean and variance should be, %: our bound."""
REDUCTIONS = [("RGA", "CGA"), ("FGA", "CGA"), ("FRGA", "CGA")]


@dataclass(frozen=True)
class Best:
    """The best method of a class, by a score."""

    name: str
    metrics: Mapping[str, float | None]
    studies: Sequence[Mapping[str, Any]] = ()


def best_of_each(result: Mapping[str, Any], by: str = "Score") -> list[Best]:
    """In the order of the classes."""
    return [_metrics(result, name) for name in _chosen(result, by)]


def judged_elsewhere(results: Sequence[Mapping[str, Any]], by: str = "Score") -> list[list[Best]]:
    """The best of each class in a repetition, by what they do in the next one.

    A class of many methods has more chances that one is lucky: under other seeds it no longer is.
    """
    following = [*results[1:], results[0]]
    return [
        [_metrics(other, name) for name in _chosen(one, by)]
        for one, other in zip(results, following, strict=True)
    ]


def _chosen(result: Mapping[str, Any], by: str) -> list[str]:
    of = list(zip(result["methods"], result["tables"][0]["methods"], strict=True))
    chosen = []
    for name in CLASSES:
        candidates = [pair for pair in of if pair[0].split(" ")[0] == name]
        chosen.append(max(candidates, key=lambda pair: pair[1]["scores"][SCORES[by]])[0])
    return chosen


def _metrics(result: Mapping[str, Any], name: str) -> Best:
    method = result["tables"][0]["methods"][result["methods"].index(name)]
    metrics = simulated(method) | {one: method["scores"][key] for one, key in SCORES.items()}
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

    def pairs(metric: str, *names: tuple[str, str], by: str = "Score") -> dict[str, Difference]:
        def values(name: str) -> list[float]:
            return [one[CLASSES.index(name)].metrics[metric] or 0.0 for one in chosen[by]]

        return {f"{one} - {other}": paired(values(one), values(other)) for one, other in names}

    def means(
        metric: str, *names: tuple[tuple[str, ...], tuple[str, ...]]
    ) -> dict[str, Difference]:
        return {
            f"{' '.join(one)} - {' '.join(other)}": paired(
                over_methods(of.crossed, metric, *one), over_methods(of.crossed, metric, *other)
            )
            for one, other in names
        }

    def fewer_steps(words: str, *names: tuple[str, str]) -> Claim:
        def all_of(name: str) -> list[float]:
            place = CLASSES.index(name)
            return [
                step
                for one in chosen["Score"]
                for step in robert2020_steps.first_runs(one[place].studies, of.on.best)
            ]

        return robert2020_steps.claim(
            below,
            words,
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
    return [
        *_noise_harms(of),
        _design_represents(of),
        above(
            "each noise reduction improves the convergence score (figure 4)", figure_4("ScoreOptim")
        ),
        above("and the stability score (figure 4)", figure_4("ScoreStability")),
        above("and the total score (figure 4)", figure_4("Score")),
        *_of_figure_5(of),
        above(
            "noise reduction raises the success rate (78.9 %, of RGA), percentage points",
            pairs("SuccessRate", *REDUCTIONS),
        ),
        above(
            "above all resampling does: more than regression and than both, percentage points",
            pairs("SuccessRate", ("RGA", "FGA"), ("RGA", "FRGA")),
        ),
        below(
            "noise reduction brings what is found nearer to the optimum (DistOptim), %",
            pairs("DistOptim", *REDUCTIONS),
        ),
        fewer_steps("RGA needs fewer steps to find the optimum than CGA (23 %)", ("RGA", "CGA")),
        fewer_steps("FRGA needs fewer to converge than CGA (29 %)", ("FRGA", "CGA")),
        fewer_steps(
            "FGA needs fewer than CGA (table VI: 24.1 against 29.5)",
            ("FGA", "CGA"),
        ),
        fewer_steps(
            "FRGA needs the fewest: fewer than RGA and than FGA (table VI)",
            ("FRGA", "RGA"),
            ("FRGA", "FGA"),
        ),
        above(
            "SEDR at 10 % is the best resampling by ScoreOptim, a higher bias is worse",
            means(
                "ScoreOptim",
                (resampled[0], resampled[1]),
                (resampled[1], resampled[2]),
                *((resampled[0], ("RGA", f"averaging {share}")) for share in ("10%", "20%", "40%")),
            ),
        ),
        above(
            "regression converges better than CGA (ScoreOptim)", pairs("ScoreOptim", ("FGA", "CGA"))
        ),
        above(
            "resampling converges better than regression (ScoreOptim)",
            pairs("ScoreOptim", ("RGA", "FGA")),
        ),
        above(
            "a quadratic surface is better than a weighted average (ScoreOptim)",
            means("ScoreOptim", (("FGA", "quadratic"), ("FGA", "weighted"))),
        ),
        above(
            "the smaller the neighbourhood the better, since a larger zone is no quadratic surface "
            "(ScoreOptim): 5 % before 10 %",
            means(
                "ScoreOptim",
                *(
                    (("FGA", f"{word} 5%"), ("FGA", f"{word} 10%"))
                    for word in ("weighted", "quadratic")
                ),
            ),
        ),
        _larger_neighbourhoods(of),
        above(
            "both together converge better than regression alone, and than CGA (ScoreOptim)",
            pairs("ScoreOptim", ("FRGA", "FGA"), ("FRGA", "CGA")),
        ),
        above(
            "but not as well as resampling alone (ScoreOptim)", pairs("ScoreOptim", ("RGA", "FRGA"))
        ),
        below(
            "both together are less precise than resampling alone (SuccessRate), percentage points",
            pairs("SuccessRate", ("FRGA", "RGA")),
        ),
        above("the same by DistOptim, %", pairs("DistOptim", ("FRGA", "RGA"))),
        above(
            "with both, a quadratic surface over 5 % is the best (ScoreOptim)",
            means(
                "ScoreOptim",
                (("FRGA", "quadratic 5%"), ("FRGA", "weighted 5%")),
                (("FRGA", "quadratic 5%"), ("FRGA", "quadratic 10%")),
            ),
        ),
        above(
            "with both, fewer repetitions do best: SEDR's best threshold goes up to 40 % "
            "(ScoreOptim, with a quadratic surface over 5 %)",
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
        ),
        above(
            "resampling is the best choice where steps and success weigh the same (ScoreOptim)",
            pairs("ScoreOptim", ("RGA", "CGA"), ("RGA", "FGA"), ("RGA", "FRGA")),
        ),
        below("each noise reduction lowers the regression cost, s", pairs("RegCost", *REDUCTIONS)),
        below("and the average distance, %", pairs("AvgDistOptim", *REDUCTIONS)),
        above(
            "and yields more runs below the default's time (table VI), percentage points",
            pairs("InferiorDefault", *REDUCTIONS),
        ),
        *_of_the_most_stable(pairs),
        below(
            "FRGA's regression cost is negligible: 3.55 % of the mean time, which is our bound; %",
            {"FRGA": mean(frga)},
            bound=NEGLIGIBLE,
        ),
        above(
            "resampling has the best total score",
            pairs("Score", ("RGA", "CGA"), ("RGA", "FGA"), ("RGA", "FRGA")),
        ),
        above(
            "and both together are before regression alone (figure 4)",
            pairs("Score", ("FRGA", "FGA")),
        ),
        *(
            above(
                f"each class is before random search, by {score} (figure 4)", before_random(score)
            )
            for score in SCORES
        ),
        above(
            "regression takes longer to compute (table VI), s",
            pairs("ElTime", ("FGA", "CGA"), ("FRGA", "RGA")),
        ),
    ]


def _larger_neighbourhoods(of: Replays) -> Claim:
    """As shares of the space they are one method; as shares of the tested they are not."""
    tried = above(
        "and 10 % before 20 %, 20 % before 50 %",
        {
            f"FGA {word} {small} - {large}": paired(
                over_methods(of.tested, "ScoreOptim", "FGA", f"{word} {small}"),
                over_methods(of.tested, "ScoreOptim", "FGA", f"{word} {large}"),
            )
            for word in ("weighted", "quadratic")
            for small, large in pairwise(SHARES[1:])
        },
    )
    return replace(
        tried,
        figure="as shares of the 540 points each of these holds all that 50 runs test: they are "
        f"one method. As shares of the tested points: {tried.figure}",
    )


def _noise_harms(of: Replays) -> list[Claim]:
    def known(method: Mapping[str, Any], metric: str) -> list[float]:
        return [value or 0.0 for value in column(method, metric)]

    return [
        above(
            "interference that is not taken into account makes black-box heuristics less "
            "efficient (III: greatly, which is not judged): CGA, which takes none into account, "
            "with noise and without; percentage points, %. What it gains to do so is in the rows "
            "of RGA, FGA and FRGA against CGA",
            {
                "SuccessRate, without - with": paired(
                    known(of.quiet, "SuccessRate"), known(of.noisy, "SuccessRate")
                ),
                "DistOptim, with - without": paired(
                    known(of.noisy, "DistOptim"), known(of.quiet, "DistOptim")
                ),
            },
        ),
        robert2020_steps.claim(
            above,
            "for it slows the convergence, which needs more evaluations to reach the optimum: "
            "steps of CGA, with noise and without",
            {
                "with - without": (
                    robert2020_steps.first_runs(of.noisy["studies"], of.on.best),
                    robert2020_steps.first_runs(of.quiet["studies"], of.on.best),
                )
            },
            {"with - without": paired(known(of.noisy, "NbrSteps"), known(of.quiet, "NbrSteps"))},
        ),
    ]


def _design_represents(of: Replays) -> Claim:
    """How far each design is: over designs what is too high and too low would cancel."""
    designs = [times[:DESIGN] for times in of.figure_5["CGA"]]
    true_mean, true_variance = fmean(of.on.truths), variance(of.on.truths)
    return below(
        "the design is representative of the mean and of the variance of all parametrizations: "
        "on average no more than 10 % away, which is our bound, %",
        {
            "the mean": mean(away([fmean(times) for times in designs], true_mean)),
            "the variance": mean(away([variance(times) for times in designs], true_variance)),
        },
        bound=REPRESENTATIVE,
    )


def away(found: Sequence[float], true: float) -> list[float]:
    """How far each is from what is true, either way, %."""
    return [100.0 * abs(one / true - 1.0) for one in found]


def faster_by_iteration(courses: Sequence[list[float]], default: float) -> float:
    """The median over iterations of how much the median study is faster than the default, %."""
    return median(100.0 * (1.0 - time / default) for time in studies.medians(list(courses)))


def _of_figure_5(of: Replays) -> list[Claim]:
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
    reduced = {f"{name} - {conventional}": more(name) for name in (resampled, combined)}
    found = {
        name: [100.0 * (1.0 - of.on.truths[place] / default) for place in _recommended(of, one)]
        for name, one in of.after.items()
        if name != conventional
    }
    theirs = 100.0 * (1.0 - TABLE_IV["averaged"][LEAST] / DEFAULT_OF_TABLE_IV)
    return [
        below(
            "the conventional algorithm is no faster than the default in the median over "
            "iterations (figure 5), %",
            {conventional: median_gain[conventional]},
        ),
        above(
            "noise reduction greatly reduces the median time: how much more than CGA it is faster "
            "than the default, percentage points",
            reduced,
        ),
        judged(
            '"adding a noise reduction strategy is critical" (abstract; IX-A)',
            {
                conventional: median_gain[conventional].side(-1),
                **{name: one.side(1) for name, one in reduced.items()},
            },
            "section IX-A concludes it from the two rows above, and from the scores of figure 4 "
            "before them; the abstract from the success rate and the steps of RGA, below",
        ),
        above(
            "resampling is faster than the default in the median over iterations (5.18 %), %",
            {resampled: median_gain[resampled]},
        ),
        above(
            f"in {STEPS} iterations a value is found that is {FASTER} % faster than the default "
            f"(of 12 % that there are; here of {most:.0f}): what is recommended after {STEPS} "
            "runs, %",
            {name: mean(gains) for name, gains in found.items()},
            bound=FASTER,
        ),
        above(
            f"which is {100.0 * FASTER / theirs:.0f} % of what there is to gain (our division): "
            "the same as a share of it, %",
            {name: mean([100.0 * one / most for one in gains]) for name, gains in found.items()},
            bound=100.0 * FASTER / theirs,
        ),
        Claim(
            "the same, of IOR on a production cluster",
            UNTRIED,
            "no such cluster; the paper replays a table that was measured on one",
        ),
    ]


def _recommended(of: Replays, method: Mapping[str, Any]) -> list[int]:
    """What each study recommends; a study that has nothing recommends the default."""
    found = [study["recommended"] for study in method["studies"]]
    return [of.on.default if place is None else place for place in found]


def _of_the_most_stable(
    pairs: Callable[..., dict[str, Difference]],
) -> list[Claim]:
    alone = (("FRGA", "RGA"), ("FRGA", "FGA"))
    scores = dict(zip(CLASSES, TABLE_VI["ScoreStability"], strict=True))
    apart = scores["FGA"] - scores["RGA"]
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
            "both together are the most stable (table VI: the least regression cost, s, and "
            "average distance, %, and the most below the default, %)",
            sides,
            told,
        ),
        above(
            "each alone has a lower score (ScoreStability; but table VI has 1 for FGA and 0.89 for "
            "FRGA)",
            pairs("ScoreStability", *alone, by="ScoreStability"),
        ),
        alike(
            f"which is similar for both: they differ by less than in table VI ({apart:.2f})",
            pairs("ScoreStability", ("RGA", "FGA"), by="ScoreStability"),
            apart,
        ),
    ]

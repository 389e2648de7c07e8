"""Robert 2020: tables III and IV, what the paper says of its data, and figure 3."""

from collections.abc import Callable
from random import Random
from statistics import fmean, median, stdev

from comparison.markdown import number, table
from comparison.simulate import near
from peers.tables import Point, Table
from scipy.stats import bartlett, f_oneway, levene

from papers import anova, optima
from papers.claims import (
    HOLDS,
    NOT,
    UNDECIDED,
    UNTRIED,
    Claim,
    Difference,
    Side,
    above,
    judged,
    mean,
    unpaired,
    with_readings,
)
from papers.published import TABLE_IV
from papers.text import prose

SIGNIFICANT = 0.05
"""The paper's level."""
LEAST_P = 1e-5
"""The paper prints no smaller one."""
STRONG = 10.0
"""Interference, as a coefficient of variation, %: our bound."""
PAPERS_RUNS = 16
"""Of each parametrization."""
DRAWN = 10_000
"""Groups of normal runs."""
CACHE, WORKERS, DESTAGERS, THRESHOLD = 2, 0, 1, 3
"""The places of the parameters."""


def claims(on: Table) -> list[Claim]:
    """What the paper says of its data, in its order."""
    groups = [[sample.elapsed for sample in samples] for samples in on.samples]
    largest = _largest_cache(on)
    pairs = anova.interactions(on)
    uneven, even = levene(*groups).pvalue, bartlett(*groups).pvalue
    louder = levene(*groups, center="mean").pvalue
    outliers = [sum(_outlying(time, group) for time in group) for group in groups]
    share = mean([PAPERS_RUNS * one / len(groups[0]) for one in outliers])
    varying = mean([100.0 * stdev(group) / fmean(group) for group in groups])
    return [
        _each_has_an_effect(on),
        Claim(
            "what is best depends on the application, as the cache threshold does on the volume of "
            "its I/O and on whether its data are used again",
            UNTRIED,
            "one application here, as in the paper",
        ),
        above(
            "interference within one parametrization is strong (a coefficient of variation of "
            "17 %): more than 10 %, which is our bound, %",
            {"on average": varying},
            bound=STRONG,
        ),
        Claim(
            "even with the largest cache the time varies by the parameters (41 %)",
            HOLDS if f_oneway(*largest).pvalue < SIGNIFICANT else UNDECIDED,
            f"the worst takes {_beyond(max(map(fmean, largest)), min(map(fmean, largest)))} more "
            f"than the best; ANOVA, p: {_p(f_oneway(*largest).pvalue)}",
        ),
        judged(
            "the parameters interact strongly",
            {effect.name: True if effect.p < SIGNIFICANT else Side.OPEN for effect in pairs},
            f"ANOVA of the means, of each pair: {_told(pairs)}",
        ),
        Claim(
            "workers and destagers compete for the node's cores",
            UNTRIED,
            "what they cost a processor was not measured; that they interact is above",
        ),
        Claim(
            "noise is not even over parametrizations (Levene and Bartlett, p < 0.00001)",
            HOLDS if max(uneven, even) < SIGNIFICANT else UNDECIDED,
            f"p: {_p(uneven)} and {_p(even)}, at {SIGNIFICANT}",
        ),
        Claim(
            "some parametrizations are more sensitive to interference than others (ANOVA, "
            "p < 0.05)",
            HOLDS if louder < SIGNIFICANT else UNDECIDED,
            f"ANOVA of how far runs are from their parametrization's mean, p: {_p(louder)}",
        ),
        _one_outlier(share, len(groups[0])),
        _even_outliers(groups),
        Claim(
            "outliers are the cluster's and not the burst buffer's",
            UNTRIED,
            "follows in the paper from the sentence above; nothing here tells them apart",
        ),
        *_of_the_optimum(on),
    ]


def _each_has_an_effect(on: Table) -> Claim:
    """The paper says no more of its analysis than that it is one of variance."""
    words = (
        "the four parameters have, of a dozen, the strongest influence on the time (table I: "
        "ANOVA, p < 0.05): each has an effect; the others of the dozen are not had here"
    )

    def of(effects: dict[str, float], figure: str) -> Claim:
        sides = {name: True if p < SIGNIFICANT else Side.OPEN for name, p in effects.items()}
        return judged(words, sides, figure)

    main, alone = anova.main_effects(on), _one_by_one(on)
    told = ", ".join(f"{name} {_p(p)}" for name, p in alone.items())
    figure = (
        f"ANOVA of the means, additive: {_told(main)}. One by one, where what the others do counts "
        f"as noise: p {told}"
    )
    return with_readings(
        {
            "additive": of({effect.name: effect.p for effect in main}, figure),
            "one by one": of(alone, figure),
        },
        "the additive analysis",
    )


def _one_outlier(share: Difference, runs: int) -> Claim:
    """Tukey's fences of fewer runs leave more outside: only of as many runs they compare."""
    beyond_one = Difference(share.mean - 1.0, share.low - 1.0, share.high - 1.0)
    return judged(
        f"one of the {PAPERS_RUNS} runs of a parametrization is an outlier, on average (Tukey's "
        "fences), to the next whole number",
        {"": beyond_one.within(0.5) if runs == PAPERS_RUNS else Side.OPEN},
        f"{share.told()} of {PAPERS_RUNS}, by the fences of {runs} runs each. Of what scatters "
        f"normally these leave {_of_normal(runs):.2f} of {PAPERS_RUNS} outside, and those of "
        f"{PAPERS_RUNS} runs {_of_normal(PAPERS_RUNS):.2f}",
    )


def _of_normal(runs: int) -> float:
    """How many of the paper's runs are beyond the fences of so many, if all are of one normal."""
    random = Random(0)
    groups = [[random.gauss(0.0, 1.0) for _ in range(runs)] for _ in range(DRAWN)]
    return PAPERS_RUNS * fmean(_outlying(time, group) for group in groups for time in group)


def _even_outliers(groups: list[list[float]]) -> Claim:
    p = f_oneway(*([_outlying(time, group) for time in group] for group in groups)).pvalue
    return Claim(
        "no parametrization has more outliers than others",
        NOT if p < SIGNIFICANT else UNDECIDED,
        f"ANOVA of runs beyond the fences, p: {_p(p)}. That evenness is not refuted does not show "
        "it; the paper's own p < 0.05 refutes it, and is yet called even",
    )


def _of_the_optimum(on: Table) -> list[Claim]:
    may_be = optima.candidates(on)
    best, default = on.points[on.best], on.points[on.default]
    difference = unpaired(*([s.elapsed for s in on.samples[at]] for at in (on.default, on.best)))
    has: dict[str, Callable[[Point], bool]] = {
        "largest cache": lambda point: point[CACHE] == on.parameters[CACHE].levels - 1,
        "the default's workers": lambda point: point[WORKERS] == default[WORKERS],
        "fewer destagers": lambda point: point[DESTAGERS] < on.parameters[DESTAGERS].levels - 1,
        "the lowest threshold": lambda point: point[THRESHOLD] == 0,
    }
    shares = {
        name: fmean(holds(on.points[place]) for place in may_be) for name, holds in has.items()
    }
    sides = {
        name: Side.FOR if share == 1.0 else Side.AGAINST if share == 0.0 else Side.OPEN
        for name, share in shares.items()
    }
    return [
        judged(
            "the default is not the optimum; by how much, 12 % in the paper, is not judged",
            {"": on.default not in may_be},
            f"{_faster(on.truths[on.default], on.truths[on.best])} faster here; "
            f"{difference.told()} s between them",
        ),
        judged(
            "the optimum has the largest cache, the default's workers, fewer destagers than the "
            "most, and the lowest threshold",
            sides,
            "the least mean has "
            + ", ".join(
                f"{p.name} {p.values[level]}" for p, level in zip(on.parameters, best, strict=True)
            )
            + f". By the noise of the runs {len(may_be)} of {len(on.points)} may be the best "
            + "(95 %), of which have "
            + ", ".join(f"{name}: {100.0 * share:.0f} %" for name, share in shares.items()),
        ),
    ]


def _largest_cache(on: Table) -> list[list[float]]:
    """The runs of each parametrization with the largest cache."""
    return [
        [sample.elapsed for sample in samples]
        for point, samples in zip(on.points, on.samples, strict=True)
        if point[CACHE] == on.parameters[CACHE].levels - 1
    ]


def lines(on: Table) -> list[str]:
    """Tables III and IV, and single facts."""
    raw = [sample.elapsed for samples in on.samples for sample in samples]
    groups = [[sample.elapsed for sample in samples] for samples in on.samples]
    ours = [_statistics(raw), _statistics(on.truths)]
    rows = []
    for nth, name in enumerate(("size", "mean", "standard deviation", "least", "most", "median")):
        cells = []
        for of, theirs in zip(ours, TABLE_IV.values(), strict=True):
            cells += [number(of[nth], 4), number(theirs[nth], 5)]
            if nth:
                cells[-2:] = [
                    f"{number(of[nth], 3)} s, {100 * of[nth] / of[1]:.0f} %",
                    f"{theirs[nth]} s, {100 * theirs[nth] / theirs[1]:.0f} %",
                ]
        rows.append([name, *cells])
    best, default = on.points[on.best], on.points[on.default]
    words = [
        " ".join(
            f"{parameter.name} {parameter.values[level]}"
            for parameter, level in zip(on.parameters, point, strict=True)
        )
        for point in (best, default)
    ]
    outliers = [sum(_outlying(time, group) for time in group) for group in groups]
    largest = [fmean(of) for of in _largest_cache(on)]
    least, usual = on.truths[on.best], on.truths[on.default]
    facts = [
        ["optimum", words[0], "workers 10 destagers 8 cache 60 GB threshold 50"],
        ["default", words[1], "workers 10 destagers 10 cache 60 GB threshold 90"],
        ["the optimum is faster than the default by", _faster(usual, least), "12 %"],
        ["which is, of the optimum's time", _beyond(usual, least), "13.8 %"],
        [
            "worst over the best, largest cache; best under the worst",
            f"{_beyond(max(largest), min(largest))}; {_faster(max(largest), min(largest))}",
            "41 %, without telling of which",
        ],
        ["single runs of one parametrization vary by", f"{100 * on.scatter:.0f} %", "17 %"],
        [
            "runs beyond Tukey's fences, of each parametrization's",
            f"{fmean(outliers):.2f} of {len(groups[0])}",
            "1 of 16",
        ],
        ["parametrizations within 3 % of the optimum", str(near(on, 0.03)), "not told"],
        [
            "the next best over the optimum",
            f"{100 * (sorted(on.truths)[1] / on.truths[on.best] - 1):.1f} %",
            "not told",
        ],
    ]
    return [
        *prose("robert2020-data"),
        "",
        *table(["", "raw", "the paper's", "averaged", "the paper's"], rows),
        "",
        *table(["", "here", "the paper"], facts, left=3),
    ]


def _told(effects: list[anova.Effect]) -> str:
    return ", ".join(f"{of.name} F {number(of.ratio)} (p {_p(of.p)})" for of in effects)


def _one_by_one(on: Table) -> dict[str, float]:
    """ANOVA of the time by each parameter alone, p."""
    found = {}
    for place, parameter in enumerate(on.parameters):
        pairs = list(zip(on.points, on.truths, strict=True))
        by_level = [
            [time for point, time in pairs if point[place] == level]
            for level in range(parameter.levels)
        ]
        found[parameter.name] = float(f_oneway(*by_level).pvalue)
    return found


def _statistics(times: list[float]) -> list[float]:
    return [float(len(times)), fmean(times), stdev(times), min(times), max(times), median(times)]


def _beyond(time: float, other: float) -> str:
    return f"{100.0 * (time / other - 1.0):.0f} %"


def _faster(time: float, other: float) -> str:
    """By how much of the one time the other is less."""
    return f"{100.0 * (1.0 - other / time):.0f} %"


def _p(value: float) -> str:
    return "< 0.00001" if value < LEAST_P else f"{value:.5f}"


def _outlying(time: float, group: list[float]) -> bool:
    low, high = fences(group)
    return not low <= time <= high


def fences(group: list[float]) -> tuple[float, float]:
    """Tukey's: one and a half interquartile ranges beyond the quartiles."""
    ordered = sorted(group)

    def quantile(share: float) -> float:
        at = share * (len(ordered) - 1)
        below = int(at)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (at - below) * (ordered[above] - ordered[below])

    low, high = quantile(0.25), quantile(0.75)
    return low - 1.5 * (high - low), high + 1.5 * (high - low)

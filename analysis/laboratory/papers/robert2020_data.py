"""Robert 2020: tables III and IV, what the paper says of its data, and figure 3."""

from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean, median, stdev

import numpy as np
from comparison.markdown import number, table
from comparison.simulate import near
from numpy.typing import NDArray
from peers.tables import Point, Table
from scipy.stats import bartlett, f_oneway, levene

from papers import anova, optima
from papers.anova import SIGNIFICANT
from papers.claims import (
    Claim,
    Difference,
    Side,
    above,
    judged,
    mean,
    unpaired,
    untried,
    with_readings,
)
from papers.published import TABLE_IV
from papers.text import prose

LEAST_P = 1e-5
"""The paper prints no smaller one."""
STRONG = 10.0
"""Interference, as a coefficient of variation, %: our bound."""
PAPERS_RUNS = 16
"""Of each parametrization."""
DRAWN = 10_000
"""Groups of normal runs."""
PERMUTATIONS = 9_999
"""By which a p is found."""
CACHE, WORKERS, DESTAGERS, THRESHOLD = 2, 0, 1, 3
"""The places of the parameters."""


def claims(on: Table) -> list[Claim]:
    """What the paper says of its data, in its order."""
    groups = [[sample.elapsed for sample in samples] for samples in on.samples]
    raw = [time for group in groups for time in group]
    largest = _largest_cache(on)
    pairs = anova.interactions(on)
    uneven, even = levene(*groups).pvalue, bartlett(*groups).pvalue
    louder = _louder(groups)
    outliers = [sum(_outlying(time, group) for time in group) for group in groups]
    share = mean([PAPERS_RUNS * one / len(groups[0]) for one in outliers])
    varying = mean(_variations(groups))
    return [
        untried(
            'of "a dozen of different parameters" these four are "the four ones that have the '
            'strongest influence on execution time" (III)',
            "the others of the dozen are not had here",
        ),
        _each_has_an_effect(on),
        untried(
            '"A strong difficulty when looking for the optimal value for these parameters is their '
            "dependence on the many characteristics of the application. It is the case of the "
            'cache threshold, which is strongly dependent on the volume of I/O": "applications '
            "whose data can fit and be reused in the burst buffer's cache benefit from as little "
            'reclaim as possible", what writes much "require to empty the burst buffer as often '
            'and as fast as possible" (III)',
            "one application here, as in the paper",
        ),
        untried(
            '"The other main difficulty of burst buffer tuning is the variability of I/Os '
            "execution time [20], because of shared resources contentions (Lustre caches, RDMA "
            'network, etc.) and optimizations (prefetching, collective I/O)" (III)',
            "what makes times vary here is a neighbour that is of our making; neither it nor an "
            "optimization was taken away from the table, and of the paper's cluster it tells "
            "nothing",
        ),
        above(
            '"we observe strong interference within identical parametrization (coefficient of '
            'variation of 17%)" (III)',
            {"on average": varying},
            " %",
            bound=STRONG,
            tried="a parametrization's coefficient of variation is more than 10 %",
        ),
        judged(
            '"even if the cache size is set to the maximum, there is an execution time variation '
            'of 41% between the worse and the best parametrization" (III)',
            {"": _significant(f_oneway(*largest).pvalue)},
            f"p: {_p(f_oneway(*largest).pvalue)}; the worst takes "
            f"{_beyond(max(map(fmean, largest)), min(map(fmean, largest)))} more than the best",
            tried="with the largest cache the time varies by the other parameters: ANOVA, at 5 %; "
            "by how much is not judged",
        ),
        judged(
            '"The strong interaction between each parameter" (III)',
            {effect.name: _significant(effect.p) for effect in pairs},
            f"of each pair: {_told(pairs)}",
            tried="each pair of parameters interacts, which means that together they have an "
            "effect beyond the sum of both: ANOVA of the means, each at 5 %; how strongly is not "
            "judged",
        ),
        untried(
            'it "also increases the task difficulty" (III)',
            "no method was tried on a table whose parameters do not interact",
        ),
        untried(
            '"as the worker and destager threads run on the same set of Data node cores, they '
            'compete for CPU time and cause destaging contentions" (III)',
            "what they cost a processor was not measured; that they interact is above",
        ),
        untried(
            '"From table IV, we deduce that the coefficient of variation is approximately 25% in '
            "the case of the raw elapsed times and 17% on the averaged elapsed times. This "
            'indicates a strong noise" (VIII-C-2)',
            "both hold what the parameters do as well, so that they tell nothing of noise; here "
            f"they are {100.0 * stdev(raw) / fmean(raw):.0f} and "
            f"{100.0 * stdev(on.truths) / fmean(on.truths):.0f} %, and within a parametrization "
            f"{varying.mean:.1f} % are left",
        ),
        judged(
            '"The distribution of this noise is not homogeneous within each parametrization as '
            "determined using Levene's and Bartlett's variance homogeneity test\" (VIII-C-2)",
            {"Levene": _significant(uneven), "Bartlett": _significant(even)},
            f"p: {_p(uneven)} and {_p(even)}",
            tried="both tests, each at 5 %; the paper's p is below 0.00001",
        ),
        judged(
            '"some parametrizations are more sensitive to interference than others (p-value '
            '<0.05)" '
            "(VIII-C-2)",
            {"": _significant(louder)},
            f"p: {_p(louder)}, by {PERMUTATIONS:,} permutations",
            tried="how far runs are from their parametrization's mean differs between "
            "parametrizations by more than if these deviations are dealt to them at random, at 5 %",
        ),
        _one_outlier(share, len(groups[0])),
        _even_outliers(groups),
        untried(
            '"These outliers can thus be attributed to the cluster and not to the burst buffer"',
            "follows in the paper from the sentence above; nothing here tells them apart",
        ),
        *_of_the_optimum(on),
    ]


def _variations(groups: Sequence[Sequence[float]]) -> list[float]:
    """Each parametrization's coefficient of variation, %."""
    return [100.0 * stdev(group) / fmean(group) for group in groups]


def _within(groups: Sequence[Sequence[float]]) -> float:
    return fmean(_variations(groups))


def _significant(p: float) -> Side | bool:
    """A test that does not refute shows nothing."""
    return True if p < SIGNIFICANT else Side.OPEN


def _each_has_an_effect(on: Table) -> Claim:
    """The paper says no more of its analysis than that it is one of variance."""

    def of(effects: dict[str, float], figure: str) -> Claim:
        sides = {name: _significant(p) for name, p in effects.items()}
        return judged(
            'they have it "according to an ANalysis Of VAriance (ANOVA) (p-value < 0.05)" (III)',
            sides,
            figure,
            tried="each of the four has an effect, each at 5 %: by an additive analysis of the "
            "means",
        )

    main, alone = anova.main_effects(on), _one_by_one(on)
    told = ", ".join(f"{name} {_p(p)}" for name, p in alone.items())
    figure = (
        f"additive: {_told(main)}. One by one, where what the others do counts as noise: p {told}"
    )
    return with_readings(
        {
            "additive": of({effect.name: effect.p for effect in main}, figure),
            "one by one": of(alone, figure),
        },
        "the additive analysis",
        counted=False,
    )


def _one_outlier(share: Difference, runs: int) -> Claim:
    """Tukey's fences of fewer runs leave more outside: only of as many runs they compare."""
    words = (
        "\"On average, one outlier run within each parametrization can be detected using Tukey's "
        f'fences" (VIII-C-2), of {PAPERS_RUNS} runs'
    )
    if runs != PAPERS_RUNS:
        return untried(
            words,
            f"a parametrization has {runs} runs here, whose fences are others: of what scatters "
            f"normally they leave {_of_normal(runs):.2f} of {PAPERS_RUNS} outside, and those of "
            f"{PAPERS_RUNS} runs {_of_normal(PAPERS_RUNS):.2f}. By them {share.told()} of "
            f"{PAPERS_RUNS} are",
        )
    beyond_one = Difference(share.mean - 1.0, share.low - 1.0, share.high - 1.0)
    return judged(
        words,
        {"": beyond_one.within(0.5)},
        share.told(),
        tried="between a half and one and a half, on average",
    )


def _louder(groups: Sequence[Sequence[float]]) -> float:
    """The p of Levene's statistic about means, by dealing out the runs' deviations anew."""
    owner = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    sizes = np.bincount(owner)
    runs = np.concatenate([np.asarray(group, dtype=float) for group in groups])

    def away(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values - (np.bincount(owner, values) / sizes)[owner]

    def between(values: NDArray[np.float64]) -> float:
        """The share of the distances' variance that is between parametrizations."""
        distances = np.abs(away(values))
        means = np.bincount(owner, distances) / sizes
        grand = distances.mean()
        return float(sizes @ (means - grand) ** 2 / np.sum((distances - grand) ** 2))

    deviations, random = away(runs), np.random.default_rng(0)
    found = between(runs)
    as_far = sum(between(random.permutation(deviations)) >= found for _ in range(PERMUTATIONS))
    return (1 + as_far) / (1 + PERMUTATIONS)


def _of_normal(runs: int) -> float:
    """How many of the paper's runs are beyond the fences of so many, if all are of one normal."""
    random = Random(0)
    groups = [[random.gauss(0.0, 1.0) for _ in range(runs)] for _ in range(DRAWN)]
    return PAPERS_RUNS * fmean(_outlying(time, group) for group in groups for time in group)


def _even_outliers(groups: list[list[float]]) -> Claim:
    p = f_oneway(*([_outlying(time, group) for time in group] for group in groups)).pvalue
    return judged(
        '"the distribution of the outliers are even across each parametrization (ANOVA, p-value < '
        '0.05): no parametrization is more susceptible to have outlier runs more than another"',
        {"": Side.AGAINST if p < SIGNIFICANT else Side.OPEN},
        f"p: {_p(p)}. The paper's own p < 0.05 refutes evenness, and is yet called even",
        tried="ANOVA of runs beyond the fences, at 5 %: it may refute that they are even, and "
        "cannot show it",
    )


def _of_the_optimum(on: Table) -> list[Claim]:
    may_be = optima.candidates(on)
    best, default = on.points[on.best], on.points[on.default]
    difference = unpaired(*([s.elapsed for s in on.samples[at]] for at in (on.default, on.best)))
    has: dict[str, Callable[[Point], bool]] = {
        "largest cache": lambda point: point[CACHE] == on.parameters[CACHE].levels - 1,
        "the default's workers": lambda point: point[WORKERS] == default[WORKERS],
        "fewer destagers than the maximum": lambda point: (
            point[DESTAGERS] < on.parameters[DESTAGERS].levels - 1
        ),
        "the lowest threshold": lambda point: point[THRESHOLD] == 0,
    }
    shares = {
        name: fmean(holds(on.points[place]) for place in may_be) for name, holds in has.items()
    }
    sides = {
        name: Side.FOR if share == 1.0 else Side.AGAINST if share == 0.0 else Side.OPEN
        for name, share in shares.items()
    }
    quickest = min(range(len(on.points)), key=lambda at: min(s.elapsed for s in on.samples[at]))
    rank = sorted(on.truths).index(on.truths[quickest]) + 1
    runs = sum(map(len, on.samples))
    return [
        judged(
            '"the optimal parametrization is not the one leading to the quickest run but the one '
            'corresponding to the optimal execution time on average" (IV)',
            {"": rank > 1},
            f"it is of a parametrization whose mean is number {rank} of {len(on.points)}",
            tried=f"the quickest of all {runs} runs is not of the parametrization with the least "
            "mean",
        ),
        judged(
            '"This ensures that the optimum is not a result of chance (for example because the '
            'cluster was idle) and actually due to the burst buffer parametrization" (IV)',
            {"": len(may_be) == 1 or Side.OPEN},
            f"{len(may_be)} of {len(on.points)} cannot be told from the least mean with "
            f"{runs // len(on.points)} runs each",
            tried="the sentence is of the definition, by which one lucky run is no optimum, as the "
            "row above has it. Tried is a stricter claim, which is our own: only the one with the "
            "least mean may be the best (5 % over all parametrizations), so that chance did not "
            "choose it",
        ),
        judged(
            'the default "yields a mean execution time of 172.69s, which is 12% away from the '
            'optimal configuration" (VIII-C-3)',
            {"": on.default not in may_be or Side.OPEN},
            f"The optimum is {_faster(on.truths[on.default], on.truths[on.best])} faster than the "
            f"default here; {difference.told()} s between them",
            tried="it surely is not the optimum (5 % over all parametrizations); by how much is "
            "not judged",
        ),
        judged(
            'the optimum\'s cache is "the biggest possible (60GB)", "the default number of workers '
            'is also the optimal possible value", "setting the number of destagers to the maximum '
            'possible value is counter-productive", and "emptying the data node once its 50% full '
            'yields the best results" (VIII-C-3)',
            sides,
            "the least mean has "
            + ", ".join(
                f"{p.name} {p.values[level]}" for p, level in zip(on.parameters, best, strict=True)
            )
            + f". By the noise of the runs {len(may_be)} of {len(on.points)} may be the best "
            + "(95 %), of which have "
            + ", ".join(f"{name}: {100.0 * share:.0f} %" for name, share in shares.items()),
            tried="of each of the four: all that may be the best have it, and against it is that "
            "none has",
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
        [
            "single runs of one parametrization vary by, in the median and on average",
            f"{100 * on.scatter:.1f} and {_within(groups):.1f} %",
            "17 %",
        ],
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

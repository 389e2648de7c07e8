"""Robert 2020: tables III to VI, figures 3 to 5, and what the text tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any

from comparison.markdown import number, table
from comparison.simulate import Method, near
from comparison.simulate import figures as simulated
from peers.program import Program
from peers.tables import Table
from scipy.stats import bartlett, f_oneway, levene

from papers import drawing, ranks, studies
from papers.claims import HOLDS, NOT, UNTRIED, Claim, Difference, above, below, judged, paired
from papers.claims import rows as claimed
from papers.published import CLASSES, FIGURE_5_MEDIAN, TABLE_IV, TABLE_VI, TABLE_VI_NOISE
from papers.text import prose

REPETITIONS = 8
"""Of the paper's whole experiment, each under seeds of its own."""
HIGHER = {"SuccessRate", "InferiorDefault", "ScoreOptim", "ScoreStability", "Score"}
"""The metrics of which more is better."""
SCORES = {"ScoreOptim": "optim", "ScoreStability": "stability", "Score": "score"}
_SEDR = "robert2020:noise=resampling,noise.resampling=sedr"
FIGURE_5 = [
    Method("CGA", "robert2020:noise=none"),
    Method("RGA, SEDR 10 %", _SEDR),
    Method(
        "FRGA, SEDR 40 %, quadratic 5 %",
        "robert2020:noise=both,noise.resampling=sedr,noise.regression=quadratic,"
        "noise.neighbour_share=0.05,resampling_share=0.4",
    ),
]
"""Figure 5's two, and the one of which the paper tells 21 iterations."""
_FGA = "robert2020:noise=regression,noise.regression=quadratic,noise.neighbour_share=0.05"
READINGS = [
    ("as published", ""),
    ("a tested child runs unless it is a parent", "robert2020.revisits=unlike_parents"),
    ("nothing runs twice, but for resampling", "robert2020.revisits=never"),
    ("a neighbourhood is a share of the tested", "neighbours_of=tested"),
    ("a mutation changes one parameter", "mutation=one"),
    ("pools of five", "selection=tournament,selection.pool_size=5"),
    ("probabilistic, 1 / t", "selection=probabilistic"),
    ("probabilistic, 1 / (t - least t + 1 s)", "selection=probabilistic,weight=above_least"),
    ("65 runs: the design comes on top", "budget=65"),
]
"""What the paper leaves open, by settings."""
READ = {"CGA": "robert2020:noise=none", "RGA SEDR 10 %": _SEDR, "FGA quadratic 5 %": _FGA}
TABLE_V = "robert2020-table-v"
"""The preset of the paper's cross."""
SHARES = ("5%", "10%", "20%", "50%")
"""Table V's p_fit."""
SIGNIFICANT = 0.05
"""The paper's level."""
LEAST_P = 1e-5
"""The paper prints no smaller one."""
SHOWN = ("SuccessRate", "DistOptim", "NbrSteps", "AvgDistOptim", "InferiorDefault")


@dataclass(frozen=True)
class Best:
    """The best method of a class, by `Score`."""

    name: str
    metrics: Mapping[str, float | None]


def page(program: Program, on: Table, seeds: int) -> tuple[list[str], dict[str, str]]:
    """The page's lines, and its drawings."""

    def made(preset: str) -> list[dict[str, Any]]:
        words = ["--preset", preset, "--per-seed", "--seeds", str(seeds)]
        return [
            program.simulate([on.path], [], [*words, "--first-seed", str(seeds * nth)])
            for nth in range(REPETITIONS)
        ]

    crossed, tested = made(TABLE_V), made(f"{TABLE_V}-of-the-tested")
    repetitions = [best_of_each(result) for result in crossed]
    told, drawn, courses = _figure_5(program, on, seeds * REPETITIONS)
    said = {
        "repetitions": str(REPETITIONS),
        "seeds": str(seeds),
        "all": str(seeds * REPETITIONS),
        "different": str(different(crossed)),
        "of_the_tested": str(different(tested)),
        "together": str(different(crossed, tested)),
    }
    return [
        *prose("robert2020", **said),
        "",
        *claimed(_claims(crossed, repetitions, on, courses)),
        "",
        *_dataset(on),
        "",
        *prose("robert2020-table-vi", **said),
        "",
        *_table_vi(repetitions),
        "",
        *prose("robert2020-neighbourhoods", **said),
        "",
        *_neighbourhoods(crossed, tested),
        "",
        *prose("robert2020-orders", **said),
        "",
        *_orders(repetitions),
        "",
        *prose("robert2020-sentences", **said),
        "",
        *_sentences(repetitions, on),
        "",
        *told,
        "",
        *prose("robert2020-readings", **said),
        "",
        *_readings(program, on, seeds * REPETITIONS),
        "",
        *prose("robert2020-not-made"),
        "",
        *prose("robert2020-why"),
    ], drawn


def best_of_each(result: dict[str, Any]) -> list[Best]:
    """In the order of the classes."""
    of = list(zip(result["methods"], result["tables"][0]["methods"], strict=True))
    best = []
    for name in CLASSES:
        candidates = [pair for pair in of if pair[0].split(" ")[0] == name]
        label, method = max(candidates, key=lambda pair: pair[1]["scores"]["score"])
        scores = {metric: method["scores"][key] for metric, key in SCORES.items()}
        best.append(Best(label, simulated(method) | scores))
    return best


def different(*crosses: list[dict[str, Any]]) -> int:
    """How many methods differ in some run of some study; the random sampler is not counted."""
    traces: dict[str, list[Any]] = {}
    for nth, cross in enumerate(crosses):
        for result in cross:
            for label, method in zip(
                result["methods"], result["tables"][0]["methods"], strict=True
            ):
                if label != "RS":
                    trace = [(study["runs"], study["recommended"]) for study in method["studies"]]
                    traces.setdefault(f"{nth} {label}", []).append(trace)
    return len({str(trace) for trace in traces.values()})


def _of(results: list[dict[str, Any]], metric: str, *words: str) -> list[float]:
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


def _neighbourhoods(crossed: list[dict[str, Any]], tested: list[dict[str, Any]]) -> list[str]:
    """Both readings of a neighbourhood's size, of each class, regression and share."""
    rows = []
    for name in ("FGA", "FRGA"):
        for regression in ("weighted", "quadratic"):
            for share in SHARES:
                cells = []
                for metric in ("SuccessRate", "DistOptim", "AvgDistOptim", "InferiorDefault"):
                    cells += [
                        number(fmean(_of(results, metric, name, regression, share)))
                        for results in (crossed, tested)
                    ]
                rows.append([f"{name} {regression} {share}", *cells])
    head = ["mean over the methods of a share"]
    for metric in ("SuccessRate", "DistOptim", "AvgDistOptim", "InferiorDefault"):
        head += [f"{metric}: of the space", "of the tested"]
    return table(head, rows)


def _claims(
    crossed: list[dict[str, Any]],
    repetitions: list[list[Best]],
    on: Table,
    courses: dict[str, list[list[float]]],
) -> list[Claim]:
    """The paper's sentences, by differences over repetitions."""

    def best(metric: str, name: str) -> list[float]:
        return [one[CLASSES.index(name)].metrics[metric] or 0.0 for one in repetitions]

    def pairs(metric: str, *names: tuple[str, str]) -> dict[str, Difference]:
        return {
            f"{one} - {other}": paired(best(metric, one), best(metric, other))
            for one, other in names
        }

    def means(
        metric: str, *pairs: tuple[tuple[str, ...], tuple[str, ...]]
    ) -> dict[str, Difference]:
        return {
            f"{' '.join(one)} - {' '.join(other)}": paired(
                _of(crossed, metric, *one), _of(crossed, metric, *other)
            )
            for one, other in pairs
        }

    groups = [[sample.elapsed for sample in samples] for samples in on.samples]
    uneven = levene(*groups).pvalue
    outliers = f_oneway(*([time > _fence(group) for time in group] for group in groups)).pvalue
    best_point, default_point = on.points[on.best], on.points[on.default]
    default = on.truths[on.default]
    reducing = [("RGA", "CGA"), ("FGA", "CGA"), ("FRGA", "CGA")]
    by_run = {
        name: [100.0 * (1.0 - fmean(times) / default) for times in of]
        for name, of in courses.items()
    }
    gains = {name: paired(of, [0.0] * len(of)) for name, of in by_run.items()}
    by_iteration = {name: median(studies.medians(of)) for name, of in courses.items()}
    shares = [[(word, share) for share in SHARES] for word in ("weighted", "quadratic")]
    resampled = [("RGA", "sedr", share) for share in ("10%", "20%", "40%")]
    return [
        judged(
            "each of the four parameters has an effect on the time (table I: p < 0.05)",
            {
                parameter.name: _one_way(on, place) < SIGNIFICANT
                for place, parameter in enumerate(on.parameters)
            },
            f"ANOVA, p: {_anova(on)}",
        ),
        Claim(
            "noise is not even over parametrizations (Levene and Bartlett, p < 0.00001)",
            HOLDS if max(uneven, bartlett(*groups).pvalue) < SIGNIFICANT else NOT,
            f"p: {_p(uneven)} and {_p(bartlett(*groups).pvalue)}",
        ),
        Claim(
            "no parametrization has more outliers than others",
            HOLDS if outliers > SIGNIFICANT else NOT,
            f"ANOVA of runs beyond Tukey's fence, p: {_p(outliers)}",
        ),
        Claim(
            "the default is not the optimum (12 % away)",
            HOLDS if default > on.truths[on.best] else NOT,
            f"{_beyond(default, on.truths[on.best])} away",
        ),
        judged(
            "the optimum has the largest cache, the default's workers, fewer destagers than the "
            "most, and the lowest threshold",
            {
                "largest cache": best_point[2] == on.parameters[2].levels - 1,
                "the default's workers": best_point[0] == default_point[0],
                "fewer destagers": best_point[1] < on.parameters[1].levels - 1,
                "the lowest threshold": best_point[3] == 0,
            },
            ", ".join(
                f"{p.name} {p.values[level]}"
                for p, level in zip(on.parameters, best_point, strict=True)
            ),
        ),
        above("each noise reduction improves the score (figure 4)", pairs("Score", *reducing)),
        Claim(
            "the conventional algorithm is no faster than the default in the median (figure 5)",
            HOLDS if by_iteration["CGA"] >= default else NOT,
            f"its median iteration is {100.0 * (1.0 - by_iteration['CGA'] / default):.1f} % faster",
        ),
        above(
            "resampling is faster than the default in the median over iterations (5.18 %), and in "
            "the mean, %",
            {"RGA, SEDR 10 %": gains["RGA, SEDR 10 %"]},
        ),
        above(
            "noise reduction raises the success rate (78.9 %), percentage points",
            pairs("SuccessRate", *reducing),
        ),
        below("RGA needs fewer steps than CGA (23 %)", pairs("NbrSteps", ("RGA", "CGA"))),
        below("FRGA needs fewer steps than CGA (29 %)", pairs("NbrSteps", ("FRGA", "CGA"))),
        above(
            "SEDR at 10 % is the best resampling by ScoreOptim, a higher bias is worse",
            means(
                "ScoreOptim",
                (resampled[0], resampled[1]),
                (resampled[1], resampled[2]),
                (resampled[0], ("RGA", "averaging")),
            ),
        ),
        above(
            "a quadratic surface is better than a weighted average, by Score",
            means("Score", (("FGA", "quadratic"), ("FGA", "weighted"))),
        ),
        above(
            "the smaller the neighbourhood the better, by Score: 5 % before 10 %",
            means(
                "Score",
                *((("FGA", *of[0]), ("FGA", *of[1])) for of in shares),
            ),
        ),
        judged(
            "and 10 % before 20 %, 20 % before 50 %",
            dict.fromkeys(("10 and 20 %", "20 and 50 %"), False),
            "they are one method here: each neighbourhood holds all tested points",
        ),
        above(
            "resampling is a better optimiser than regression (ScoreOptim)",
            pairs("ScoreOptim", ("RGA", "FGA")),
        ),
        above(
            "both together are better than regression alone, and than CGA (ScoreOptim)",
            pairs("ScoreOptim", ("FRGA", "FGA"), ("FRGA", "CGA")),
        ),
        below(
            "both together are less precise than resampling alone (SuccessRate)",
            pairs("SuccessRate", ("FRGA", "RGA")),
        ),
        below("each noise reduction lowers the regression cost, s", pairs("RegCost", *reducing)),
        below("and the average distance, %", pairs("AvgDistOptim", *reducing)),
        above(
            "FRGA is the most stable (InferiorDefault, RegCost and AvgDistOptim: ScoreStability)",
            pairs("ScoreStability", ("FRGA", "RGA"), ("FRGA", "FGA")),
        ),
        above(
            "resampling has the best total score",
            pairs("Score", ("RGA", "CGA"), ("RGA", "FGA"), ("RGA", "FRGA")),
        ),
        above(
            "each class is before random search, by Score",
            pairs("Score", *((name, "RS") for name in CLASSES[:-1])),
        ),
        above(
            "regression takes longer to compute, s",
            pairs("ElTime", ("FGA", "CGA"), ("FRGA", "RGA")),
        ),
        Claim(
            "in 21 iterations a value is found that is 10.5 % faster than the default, of IOR on a "
            "production cluster",
            UNTRIED,
            "no such cluster; on the instrument's table see figure 5 below",
        ),
    ]


def _one_way(on: Table, place: int) -> float:
    """ANOVA of the time by one parameter, p."""
    pairs = list(zip(on.points, on.truths, strict=True))
    levels = range(on.parameters[place].levels)
    by_level = [[time for point, time in pairs if point[place] == level] for level in levels]
    return float(f_oneway(*by_level).pvalue)


def _dataset(on: Table) -> list[str]:
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
    outliers = [sum(time > _fence(group) for time in group) for group in groups]
    largest = [
        truth
        for point, truth in zip(on.points, on.truths, strict=True)
        if point[2] == on.parameters[2].levels - 1
    ]
    facts = [
        ["optimum", words[0], "workers 10 destagers 8 cache 60 GB threshold 50"],
        ["default", words[1], "workers 10 destagers 10 cache 60 GB threshold 90"],
        [
            "default over the optimum",
            f"{_beyond(on.truths[on.default], on.truths[on.best])}",
            "12 %",
        ],
        [
            "worst over the best, largest cache",
            _beyond(max(largest), min(largest)),
            "41 %",
        ],
        ["single runs of one parametrization vary by", f"{100 * on.scatter:.0f} %", "17 %"],
        [
            "runs beyond Tukey's upper fence, of each parametrization's",
            f"{fmean(outliers):.2f} of {len(groups[0])}",
            "1 of 16",
        ],
        [
            "Levene's and Bartlett's tests of equal variances, p",
            f"{_p(levene(*groups).pvalue)}, {_p(bartlett(*groups).pvalue)}",
            "< 0.00001, < 0.00001",
        ],
        [
            "ANOVA: outliers by parametrization, p",
            _p(f_oneway(*([time > _fence(group) for time in group] for group in groups)).pvalue),
            "< 0.05, and yet called even",
        ],
        ["ANOVA: the time by each parameter (table I), p", _anova(on), "< 0.05 each"],
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


def _anova(on: Table) -> str:
    """Of each parameter by itself."""
    return ", ".join(
        f"{parameter.name} {_p(_one_way(on, place))}"
        for place, parameter in enumerate(on.parameters)
    )


def _sentences(repetitions: list[list[Best]], on: Table) -> list[str]:
    """What the text makes of table VI, of each repetition."""
    mean = fmean(on.truths)

    def saved(metric: str, name: str, than: str) -> list[float]:
        one, other = CLASSES.index(name), CLASSES.index(than)
        pairs = [(best[one].metrics[metric], best[other].metrics[metric]) for best in repetitions]
        return [100.0 * (1.0 - (a or 0.0) / b) for a, b in pairs if b]

    frga = CLASSES.index("FRGA")
    costs = [100.0 * (best[frga].metrics["RegCost"] or 0.0) / mean for best in repetitions]
    rows = [
        ("success rate, RGA over CGA: 1 - CGA / RGA", "78.9 %", saved("SuccessRate", "CGA", "RGA")),
        ("steps, RGA before CGA", "23 %", saved("NbrSteps", "RGA", "CGA")),
        ("steps, FRGA before CGA", "29 %", saved("NbrSteps", "FRGA", "CGA")),
        ("FRGA's regression cost, of the mean time", "3.55 %", costs),
    ]
    told = [
        [
            words,
            theirs,
            f"{median(of):.1f} %, {min(of):.1f} to {max(of):.1f}" if of else "-",
            f"{len(of)} of {len(repetitions)}",
        ]
        for words, theirs, of in rows
    ]
    return table(["", "the paper", "here: median, range", "repetitions that have it"], told)


def _statistics(times: list[float]) -> list[float]:
    return [float(len(times)), fmean(times), stdev(times), min(times), max(times), median(times)]


def _beyond(time: float, other: float) -> str:
    return f"{100.0 * (time / other - 1.0):.0f} %"


def _p(value: float) -> str:
    return "< 0.00001" if value < LEAST_P else f"{value:.5f}"


def _fence(group: list[float]) -> float:
    ordered = sorted(group)

    def quantile(share: float) -> float:
        at = share * (len(ordered) - 1)
        below = int(at)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (at - below) * (ordered[above] - ordered[below])

    return quantile(0.75) + 1.5 * (quantile(0.75) - quantile(0.25))


def _table_vi(repetitions: list[list[Best]]) -> list[str]:
    noise = []
    for place, name in enumerate(CLASSES):
        names = [best[place].name.removeprefix(name).strip() for best in repetitions]
        often = max(dict.fromkeys(names), key=names.count)
        words = f"{often} ({names.count(often)} of {len(names)})" if often else ""
        noise.append(words)
    rows = [["here, most often", *noise], ["the paper's", *TABLE_VI_NOISE]]
    for metric, theirs in TABLE_VI.items():
        cells = []
        for place, their in enumerate(theirs):
            of = [best[place].metrics[metric] or 0.0 for best in repetitions]
            span = f"{number(min(of))}-{number(max(of))}"
            cells.append(f"{number(median(of))}, {span} ({number(their, 4)})")
        rows.append([metric, *cells])
    return table(["", *CLASSES], rows)


def _orders(repetitions: list[list[Best]]) -> list[str]:
    rows = []
    for metric, theirs in TABLE_VI.items():
        if metric == "ElTime":
            continue
        higher = metric in HIGHER
        held: dict[str, list[str]] = {"as": [], "other": [], "open": []}
        for one in range(len(CLASSES)):
            for two in range(one + 1, len(CLASSES)):
                first, last = (one, two) if (theirs[one] > theirs[two]) == higher else (two, one)
                pair = f"{CLASSES[first]} > {CLASSES[last]}"
                signs = {_ahead(best, metric, first, last, higher) for best in repetitions}
                if theirs[one] == theirs[two]:
                    continue
                kind = "as" if signs == {1} else "other" if signs == {-1} else "open"
                held[kind].append(pair)
        rows.append([metric, *(", ".join(pairs) or "-" for pairs in held.values())])
    head = ["", "as the paper, in all", "the other way round, in all", "not in all"]
    return table(head, rows, left=4)


def _ahead(best: list[Best], metric: str, first: int, last: int, higher: bool) -> int:
    a, b = (ranks.rounded(best[place].metrics[metric]) for place in (first, last))
    return 0 if a == b else 1 if (a > b) == higher else -1


def _figure_5(
    program: Program, on: Table, seeds: int
) -> tuple[list[str], dict[str, str], dict[str, list[list[float]]]]:
    """The lines, the drawing, and the true times of each method's studies."""
    words = ["--exploring-only", "--per-seed", "--seeds", str(seeds)]
    result = program.simulate([on.path], [method.text for method in FIGURE_5], words)
    default = on.truths[on.default]
    series = {}
    rows = []
    every = {}
    for method, found in zip(FIGURE_5, result["tables"][0]["methods"], strict=True):
        of = every[method.name] = studies.courses(found, on)
        by_run = studies.medians(of)
        series[method.name] = by_run
        gains = [100.0 * (1.0 - time / default) for time in by_run]
        told = simulated(found)
        rows.append(
            [
                method.name,
                f"{median(gains):.1f} %",
                FIGURE_5_MEDIAN.get(method.name, "-"),
                f"{median(gains[15:]):.1f} %",
                f"{100.0 * (1.0 - (told['OverDefault'] or 1.0)):.1f} %",
                number(told["NbrSteps"]),
            ]
        )
    series["default"] = [default] * max(map(len, series.values()))
    drawn = {"robert2020-figure5.svg": drawing.lines(series, "iteration", "median time, s")}
    head = [
        "faster than the default",
        "median over iterations",
        "the paper's",
        "after the design",
        "what it recommends",
        "found in run",
    ]
    return (
        [
            *prose("robert2020-figure5", seeds=str(seeds)),
            "",
            *table(head, rows),
            "",
            "![figure 5](figures/robert2020-figure5.svg)",
        ],
        drawn,
        every,
    )


def _readings(program: Program, on: Table, seeds: int) -> list[str]:
    rows = []
    for words, settings in READINGS:
        methods = {
            name: text + (f",{settings}" if settings else "")
            for name, text in READ.items()
            if "neighbours_of" not in settings or name.startswith("FGA")
        }
        # A study's budget is the program's, not the method's.
        budget = ["--budget", "65"] if settings == "budget=65" else []
        texts = [text.removesuffix(",budget=65") for text in methods.values()]
        arguments = ["--exploring-only", "--seeds", str(seeds), *budget]
        result = program.simulate([on.path], texts, arguments)
        for name, found in zip(methods, result["tables"][0]["methods"], strict=True):
            told = simulated(found)
            near_best = 100.0 * found["near_by_run"][-1]
            rows.append([words, name, *(number(told[one]) for one in SHOWN), number(near_best)])
    paper = {name: place for place, name in enumerate(CLASSES)}
    for name in READ:
        place = paper[name.split(" ")[0]]
        rows.append(["the paper", name, *(number(TABLE_VI[one][place], 4) for one in SHOWN), "-"])
    return table(["", "", *SHOWN, "a best was run %"], rows, left=2)

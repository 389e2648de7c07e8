"""Robert 2020: tables III to VI, figures 3 to 5, and what the text tells."""

from pathlib import Path
from statistics import fmean, median
from typing import Any

from comparison.markdown import number, table
from comparison.simulate import Method
from comparison.simulate import figures as simulated
from peers.program import Program
from peers.tables import Table

from papers import drawing, ranks, robert2020_claims, robert2020_data, robert2020_steps, studies
from papers.claims import paired
from papers.claims import rows as claimed
from papers.published import CLASSES, FIGURE_5_MEDIAN, TABLE_VI, TABLE_VI_NOISE
from papers.robert2020_claims import (
    SHARES,
    STEPS,
    Best,
    best_of_each,
    judged_elsewhere,
    over_methods,
    with_both,
)
from papers.robert2020_metrics import HIGHER
from papers.text import prose

REPETITIONS = 8
"""Of the paper's whole experiment, each under seeds of its own."""
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
SHOWN = ("SuccessRate", "DistOptim", "NbrSteps", "AvgDistOptim", "InferiorDefault")


def page(program: Program, on: Table, quiet: Path, seeds: int) -> tuple[list[str], dict[str, str]]:
    """The page's lines, and its drawings. `quiet` is the table without noise."""

    def made(preset: str) -> list[dict[str, Any]]:
        words = ["--preset", preset, "--per-seed", "--seeds", str(seeds)]
        return [
            with_both(program.simulate([on.path], [], [*words, "--first-seed", str(seeds * nth)]))
            for nth in range(REPETITIONS)
        ]

    crossed, tested = made(TABLE_V), made(f"{TABLE_V}-of-the-tested")
    repetitions = [best_of_each(result) for result in crossed]
    elsewhere = judged_elsewhere(crossed)
    told, drawn, methods = _figure_5(program, on, seeds * REPETITIONS)
    texts = [method.text for method in FIGURE_5]
    words = ["--exploring-only", "--per-seed", "--seeds", str(seeds * REPETITIONS)]
    after = program.simulate([on.path], texts, [*words, "--budget", str(STEPS)])
    silent = program.simulate([quiet], texts[:1], words)["tables"][0]["methods"][0]
    replays = robert2020_claims.Replays(
        on=on,
        crossed=crossed,
        tested=tested,
        figure_5={name: studies.courses(one, on) for name, one in methods.items()},
        after=dict(zip(methods, after["tables"][0]["methods"], strict=True)),
        noisy=methods[FIGURE_5[0].name],
        quiet=silent,
    )
    said = {
        "repetitions": str(REPETITIONS),
        "seeds": str(seeds),
        "all": str(seeds * REPETITIONS),
        "different": str(different(crossed)),
        "of_the_tested": str(different(tested)),
        "together": str(different(crossed, tested)),
        "quiet": f"{simulated(silent)['SuccessRate'] or 0.0:.0f}",
        "random": f"{_of_random(elsewhere, 'NbrSteps'):.0f}",
        "picked": f"{_of_random(elsewhere, 'DistOptim'):.0f}",
        "convergence": _convergence(elsewhere),
    }
    return [
        *prose("robert2020", **said),
        "",
        *prose("rule", source="the paper", has="has"),
        "",
        *claimed([*robert2020_data.claims(on), *robert2020_claims.claims(replays)]),
        "",
        *robert2020_data.lines(on),
        "",
        *prose("robert2020-table-vi", **said),
        "",
        *_table_vi(repetitions, elsewhere),
        "",
        *prose("robert2020-neighbourhoods", **said),
        "",
        *_neighbourhoods(crossed, tested),
        "",
        *prose("robert2020-orders", **said),
        "",
        *_orders(elsewhere),
        "",
        *prose("robert2020-sentences", **said),
        "",
        *_sentences(elsewhere, on),
        "",
        *told,
        "",
        *prose("robert2020-readings", **said),
        "",
        *_readings(program, on, seeds * REPETITIONS),
        "",
        *prose("robert2020-not-made"),
        "",
        *prose("robert2020-why", **said),
    ], drawn


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


def _of_random(repetitions: list[list[Best]], metric: str) -> float:
    """A metric of the random sampler, the median repetition."""
    place = CLASSES.index("RS")
    return median(best[place].metrics[metric] or 0.0 for best in repetitions)


def _convergence(repetitions: list[list[Best]]) -> str:
    """Resampling's ScoreOptim less the conventional algorithm's, as the paper's table VI has it."""
    resampled, conventional = (
        [best[CLASSES.index(name)].metrics["ScoreOptim"] or 0.0 for best in repetitions]
        for name in ("RGA", "CGA")
    )
    return paired(resampled, conventional).told()


def _neighbourhoods(crossed: list[dict[str, Any]], tested: list[dict[str, Any]]) -> list[str]:
    """Both readings of a neighbourhood's size, of each class, regression and share."""
    rows = []
    for name in ("FGA", "FRGA"):
        for regression in ("weighted", "quadratic"):
            for share in SHARES:
                cells = []
                for metric in ("SuccessRate", "DistOptim", "AvgDistOptim", "InferiorDefault"):
                    cells += [
                        number(fmean(over_methods(results, metric, name, f"{regression} {share}")))
                        for results in (crossed, tested)
                    ]
                rows.append([f"{name} {regression} {share}", *cells])
    head = ["mean over the methods of a share"]
    for metric in ("SuccessRate", "DistOptim", "AvgDistOptim", "InferiorDefault"):
        head += [f"{metric}: of the space", "of the tested"]
    return table(head, rows)


def _sentences(repetitions: list[list[Best]], on: Table) -> list[str]:
    """What the text makes of table VI, of each repetition."""
    mean = fmean(on.truths)

    def saved(metric: str, name: str, than: str) -> list[float]:
        one, other = CLASSES.index(name), CLASSES.index(than)
        pairs = [(best[one].metrics[metric], best[other].metrics[metric]) for best in repetitions]
        return [100.0 * (1.0 - (a or 0.0) / b) for a, b in pairs if b]

    def sooner(name: str, than: str) -> list[float]:
        """The same of the steps to the optimum, where both classes ran it."""
        found = []
        for best in repetitions:
            one, other = (
                robert2020_steps.first_runs(best[CLASSES.index(of)].studies, on.best)
                for of in (name, than)
            )
            if one and other:
                found.append(100.0 * (1.0 - fmean(one) / fmean(other)))
        return found

    frga = CLASSES.index("FRGA")
    costs = [100.0 * (best[frga].metrics["RegCost"] or 0.0) / mean for best in repetitions]
    rows = [
        ("success rate, RGA over CGA: 1 - CGA / RGA", "78.9 %", saved("SuccessRate", "CGA", "RGA")),
        *(
            row
            for name, theirs in (("RGA", "23 %"), ("FRGA", "29 %"))
            for row in (
                (f"steps to the optimum, {name} before CGA", theirs, sooner(name, "CGA")),
                (
                    f"steps to what is recommended, {name} before CGA",
                    theirs,
                    saved("NbrSteps", name, "CGA"),
                ),
            )
        ),
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


def _table_vi(repetitions: list[list[Best]], elsewhere: list[list[Best]]) -> list[str]:
    """Of the same studies that chose the methods, as in the paper, and of others."""
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
            others = number(median(best[place].metrics[metric] or 0.0 for best in elsewhere))
            cells.append(f"{number(median(of))}, {span}; {others} ({number(their, 5)})")
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
) -> tuple[list[str], dict[str, str], dict[str, dict[str, Any]]]:
    """The lines, the drawing, and what was replayed of each method."""
    words = ["--exploring-only", "--per-seed", "--seeds", str(seeds)]
    result = program.simulate([on.path], [method.text for method in FIGURE_5], words)
    default = on.truths[on.default]
    series = {}
    rows = []
    every = {}
    for method, found in zip(FIGURE_5, result["tables"][0]["methods"], strict=True):
        every[method.name] = found
        by_run = studies.medians(studies.courses(found, on))
        series[method.name] = by_run
        gains = [100.0 * (1.0 - time / default) for time in by_run]
        told = simulated(found)
        rows.append(
            [
                method.name,
                f"{median(gains):.1f} %",
                FIGURE_5_MEDIAN.get(method.name, "-"),
                f"{median(gains[robert2020_claims.DESIGN :]):.1f} %",
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

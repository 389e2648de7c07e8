"""Robert 2019: tables 2 and 3, shares, figures 4 and 5."""

from statistics import fmean
from typing import Any

from comparison.markdown import number, table
from comparison.simulate import Method, figures
from peers.program import Program
from peers.tables import Table

from papers import drawing, ranks, studies
from papers.published import HEURISTICS, SHARES, TABLE_2
from papers.text import prose

BUDGET = 100
"""Runs of a study, as in the paper."""
HIGHER = {"S", "Gain"}
"""The metrics of which more is better."""
METRICS = {
    "S": "S (%)",
    "IS": "IS",
    "DistOpt": "Dist Opt (s)",
    "AvgDist": "Avg Dist (s)",
    "EC": "EC (s)",
    "ET": "ET (s)",
    "Gain": "gain (%)",
}
RANKED = ("S", "DistOpt", "AvgDist", "EC", "Gain")
BLOCKS = 8
"""So many parts of the studies are ranked apart."""
_SURROGATE = "robert2019-surrogate:robert2019-surrogate.acquisition="
_SECONDS = "robert2019-surrogate:scale=seconds,robert2019-surrogate.acquisition="
_GENETIC = "robert2020:noise=none,mutation_rate=0.1,crossover=n_point,crossover.points=2"
_ANNEALING = "robert2019-annealing:robert2019-annealing."
VARIANTS = {
    "SM": [
        Method("expected improvement", f"{_SURROGATE}expected_improvement"),
        Method("probability of improvement", f"{_SURROGATE}probability_of_improvement"),
        Method("posterior minimum", f"{_SURROGATE}posterior_minimum"),
        Method("expected improvement, in seconds", f"{_SECONDS}expected_improvement"),
        Method("probability of improvement, in seconds", f"{_SECONDS}probability_of_improvement"),
    ],
    "GA": [
        Method("tournament", _GENETIC),
        Method("probabilistic", f"{_GENETIC},selection=probabilistic"),
    ],
    "SA": [
        Method("exponential", "robert2019-annealing"),
        Method(
            "multiplicative",
            f"{_ANNEALING}cooling=multiplicative,robert2019-annealing.cooling.factor=1",
        ),
        Method(
            "logarithmic", f"{_ANNEALING}cooling=logarithmic,robert2019-annealing.cooling.factor=1"
        ),
        Method(
            "restarts at random",
            f"{_ANNEALING}restart=random,robert2019-annealing.restart.probability=0.05",
        ),
        Method(
            "restarts by energy",
            f"{_ANNEALING}restart=threshold,robert2019-annealing.restart.share=0.9",
        ),
        Method("revisits are free", f"{_ANNEALING}revisits=free"),
    ],
}
"""The variants of each heuristic; the first stands for it in rankings."""


def page(
    program: Program, tables: list[Table], quiet: list[Any], seeds: int
) -> tuple[list[str], dict[str, str]]:
    """The page's lines, and its drawings. `quiet` are the tables without noise."""
    methods = [method for variants in VARIANTS.values() for method in variants]
    each = max(seeds // BLOCKS, 1)
    words = ["--exploring-only", "--per-seed", "--budget", str(BUDGET), "--seeds", str(each)]
    results = [
        program.simulate(
            quiet, [method.text for method in methods], [*words, "--first-seed", str(each * nth)]
        )
        for nth in range(BLOCKS)
    ]
    said = {"budget": str(BUDGET), "seeds": str(each * BLOCKS), "blocks": str(BLOCKS)}
    lines = [*prose("robert2019", **said), "", *_distributed(tables), ""]
    lines += [*prose("robert2019-tables", **said), "", *_of_paper()]
    drawn = {}
    for nth, on in enumerate(tables):
        of = [result["tables"][nth] for result in results]
        lines += ["", *_of_table(of, on)]
        name = f"robert2019-{on.name}.svg"
        drawn[name] = _trajectories(of[0], on)
        lines += ["", f"![trajectories on {on.name}](figures/{name})"]
    lines += ["", *prose("robert2019-ranks", **said), "", *_compared(results, tables)]
    lines += ["", *prose("robert2019-shares"), "", *_shares(results, tables)]
    return [*lines, "", *prose("robert2019-not-made"), "", *prose("robert2019-why")], drawn


def _distributed(tables: list[Table]) -> list[str]:
    """Figures 2 and 3: quantiles of the times, and where the default lies."""
    rows = []
    for on in tables:
        ordered, mean = sorted(on.truths), fmean(on.truths)
        default = on.truths[on.default]
        cells = [
            f"{ordered[int(share * (len(ordered) - 1))] / mean:.2f}"
            for share in (0.0, 0.1, 0.5, 0.9, 1.0)
        ]
        quicker = 100.0 * sum(time < default for time in ordered) / len(ordered)
        rows.append([on.name, *cells, f"{default / mean:.2f}", f"{quicker:.0f} %"])
    head = ["time over the mean", "least", "10 %", "median", "90 %", "most", "the default"]
    return [*prose("robert2019-figures"), "", *table([*head, "quicker than it"], rows)]


def _of_paper() -> list[str]:
    rows = [
        [data, heuristic, *(number(columns[metric][place], 4) for metric in METRICS)]
        for data, columns in TABLE_2.items()
        for place, heuristic in enumerate(HEURISTICS)
    ]
    return table(["the paper", "", *METRICS.values()], rows, left=2)


def _names() -> list[tuple[str, str]]:
    return [(heuristic, method.name) for heuristic in VARIANTS for method in VARIANTS[heuristic]]


def _of_table(of: list[dict[str, Any]], on: Table) -> list[str]:
    rows = []
    for place, (heuristic, name) in enumerate(_names()):
        blocks = [figures(one["methods"][place]) for one in of]
        cells = []
        for metric in METRICS:
            known = [value for found in blocks if (value := found[metric]) is not None]
            cells.append(number(fmean(known) if known else None, 3))
        rows.append([heuristic, name, *cells])
    head = f"{on.name}, {len(on.points)} of {len(on.parameters)}"
    return table([head, "", *METRICS.values()], rows, left=2)


def _first() -> list[int]:
    """The places of the heuristics' first variants."""
    return [sum(len(VARIANTS[h]) for h in HEURISTICS[:nth]) for nth in range(len(HEURISTICS))]


def _trajectories(of: dict[str, Any], on: Table) -> str:
    series = {
        heuristic: studies.courses(of["methods"][place], on)[0]
        for heuristic, place in zip(HEURISTICS, _first(), strict=True)
    }
    series["default"] = [on.truths[on.default]] * BUDGET
    series["optimum"] = [on.truths[on.best]] * BUDGET
    return drawing.lines(series, "iteration", "time, s")


def _compared(results: list[dict[str, Any]], tables: list[Table]) -> list[str]:
    rows = []
    for metric in RANKED:
        higher = metric in HIGHER
        for nth, on in enumerate(tables):
            orders = []
            for result in results:
                methods = result["tables"][nth]["methods"]
                ours = [ranks.rounded(figures(methods[place])[metric]) for place in _first()]
                orders.append(ranks.order(HEURISTICS, ours, higher))
            often = max(dict.fromkeys(orders), key=orders.count)
            rows.append([METRICS[metric], on.name, often, f"{orders.count(often)} of {BLOCKS}"])
        for data, columns in TABLE_2.items():
            order = ranks.order(HEURISTICS, columns[metric], higher)
            rows.append([METRICS[metric], f"the paper's {data}", order, ""])
    return table(["", "", "order, best first", "in"], rows, left=3)


def _shares(results: list[dict[str, Any]], tables: list[Table]) -> list[str]:
    rows = []
    for nth, on in enumerate(tables):
        cells = []
        for below in (on.truths[on.default], fmean(on.truths)):
            of = [
                fmean(
                    studies.share(
                        studies.courses(result["tables"][nth]["methods"][place], on), below
                    )
                    for result in results
                )
                for place in _first()
            ]
            cells += [*(f"{one:.0f}" for one in of), f"{fmean(of):.1f}"]
        rows.append([on.name, *cells])
    for data, (default, mean) in SHARES.items():
        rows.append([f"the paper's {data}", "", "", "", str(default), "", "", "", str(mean)])
    head = [
        "%",
        *(f"{name} below the default" for name in HEURISTICS),
        "all",
        *(f"{name} below the mean" for name in HEURISTICS),
        "all",
    ]
    return table(head, rows)

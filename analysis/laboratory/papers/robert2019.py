"""Tables 2 and 3 of the 2019 paper."""

from pathlib import Path
from typing import Any

from peers.program import Program
from peers.tables import Table

from comparison import ranks
from comparison.markdown import number, table
from comparison.prose import prose
from comparison.published import HEURISTICS, TABLE_2
from comparison.simulate import Method, figures

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
_SURROGATE = "robert2019-surrogate:robert2019-surrogate.acquisition="
_GENETIC = "robert2020:noise=none,mutation_rate=0.1,crossover=n_point,crossover.points=2"
_ANNEALING = "robert2019-annealing:robert2019-annealing."
VARIANTS = {
    "SM": [
        Method("expected improvement", f"{_SURROGATE}expected_improvement"),
        Method("probability of improvement", f"{_SURROGATE}probability_of_improvement"),
        Method("posterior minimum", f"{_SURROGATE}posterior_minimum"),
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
            "exponential, restarts",
            f"{_ANNEALING}restart=random,robert2019-annealing.restart.probability=0.05",
        ),
    ],
}
"""The variants of each heuristic; the first stands for it in rankings."""


def section(program: Program, tables: list[Table], quiet: list[Path], seeds: int) -> list[str]:
    """The section of the report. `quiet` are the tables without noise."""
    methods = [method for variants in VARIANTS.values() for method in variants]
    words = ["--exploring-only", "--budget", str(BUDGET), "--seeds", str(seeds)]
    result = program.simulate(quiet, [method.text for method in methods], words)
    lines = [
        *prose("robert2019", budget=str(BUDGET), seeds=str(seeds)),
        "",
        *_of_paper(),
    ]
    for of, on in zip(result["tables"], tables, strict=True):
        lines += ["", *_of_table(of, on)]
    return [*lines, "", *_compared(result)]


def _of_paper() -> list[str]:
    rows = [
        [data, heuristic, *(number(columns[metric][place], 4) for metric in METRICS)]
        for data, columns in TABLE_2.items()
        for place, heuristic in enumerate(HEURISTICS)
    ]
    return table(["the paper", "", *METRICS.values()], rows, left=2)


def _of_table(of: dict[str, Any], on: Table) -> list[str]:
    names = [(heuristic, method.name) for heuristic in VARIANTS for method in VARIANTS[heuristic]]
    rows = []
    for (heuristic, name), method in zip(names, of["methods"], strict=True):
        found = figures(method)
        rows.append([heuristic, name, *(number(found[metric], 3) for metric in METRICS)])
    head = f"{on.name}, {len(on.points)} of {len(on.parameters)}"
    return table([head, "", *METRICS.values()], rows, left=2)


def representatives(of: dict[str, Any]) -> list[dict[str, float | None]]:
    """The figures of each heuristic's first variant, in the order of the heuristics."""
    places = [sum(len(VARIANTS[h]) for h in HEURISTICS[:nth]) for nth in range(len(HEURISTICS))]
    return [figures(of["methods"][place]) for place in places]


def _compared(result: dict[str, Any]) -> list[str]:
    rows = []
    for metric in RANKED:
        higher = metric in HIGHER
        printed = {data: list(columns[metric]) for data, columns in TABLE_2.items()}
        for of in result["tables"]:
            ours = [ranks.rounded(found[metric]) for found in representatives(of)]
            taus = [number(ranks.tau(ours, theirs), 2) for theirs in printed.values()]
            rows.append([METRICS[metric], of["name"], ranks.order(HEURISTICS, ours, higher), *taus])
        for data, theirs in printed.items():
            taus = [number(ranks.tau(theirs, other), 2) for other in printed.values()]
            rows.append(
                [
                    METRICS[metric],
                    f"the paper's {data}",
                    ranks.order(HEURISTICS, theirs, higher),
                    *taus,
                ]
            )
    head = ["", "", "order, best first", *(f"tau with {data}" for data in TABLE_2)]
    return [
        *prose("robert2019-ranks"),
        "",
        *table(head, rows, left=3),
        "",
        *prose("robert2019-why", budget=str(BUDGET)),
    ]

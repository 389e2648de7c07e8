"""Figure 5 of the 2018 paper: the probability of having found a near-optimal parametrization."""

import shutil
from bisect import bisect_right
from pathlib import Path
from typing import Any

from peers.program import Program
from peers.tables import Table

from comparison import ranks
from comparison.markdown import number, table
from comparison.prose import prose
from comparison.published import FIGURE_5
from comparison.robert2020 import near
from comparison.simulate import Method

BUDGET = 100
"""Runs of a study."""
TIMES = (5, 10, 20, 40, 80)
"""In runs of the default."""
METHODS = [
    Method("SA", "cao2018-annealing"),
    Method("GA", "cao2018-genetic"),
    Method("DQN", "cao2018-dqn"),
    Method("BO", "cao2018-bayesian"),
    Method("RS", "random"),
]
NEAR = 1.0 / 0.99 - 1.0
"""More than 99 % of the best throughput: so much more than the least time."""


def section(
    program: Program, tables: list[Table], quiet: list[Path], seeds: int, output: Path
) -> list[str]:
    """The section of the report `output`; its plots go to the folder beside it."""
    known = program.methods(tables[0].path)
    methods = [method for method in METHODS if method.text in known]
    words = ["--exploring-only", "--budget", str(BUDGET), "--seeds", str(seeds)]
    drawn, plots = quiet[0].parent / "plots", output.with_suffix("")
    result = program.simulate(quiet, [method.text for method in methods], words, drawn)
    plots.mkdir(parents=True, exist_ok=True)
    lines = [
        *prose("cao2018", budget=str(BUDGET), seeds=str(seeds)),
        *(
            []
            if len(methods) == len(METHODS)
            else ["", "This program has no deep Q-network (DQN)."]
        ),
    ]
    for of, on in zip(result["tables"], tables, strict=True):
        name = f"{on.name}-figure5.svg"
        shutil.copyfile(drawn / name, plots / name)
        lines += ["", *_of_table(of, on, methods, seeds), "", f"![{on.name}]({plots.name}/{name})"]
    return [*lines, "", *_compared(result, tables, methods, seeds)]


def _of_table(of: dict[str, Any], on: Table, methods: list[Method], seeds: int) -> list[str]:
    near_best = 100.0 * near(on, NEAR) / len(on.points)
    rows = []
    for method, found in zip(methods, of["methods"], strict=True):
        times = found["near_times"]
        by_time = [100.0 * bisect_right(times, n * of["default"]) / seeds for n in TIMES]
        rows.append(
            [method.name, *(number(s) for s in by_time), number(100.0 * len(times) / seeds)]
        )
    head = [
        f"{on.name}: {number(near_best, 2)} % near-optimal",
        *(f"t = {n}" for n in TIMES),
        "all runs",
    ]
    return table(head, rows)


def _compared(
    result: dict[str, Any], tables: list[Table], methods: list[Method], seeds: int
) -> list[str]:
    names = [method.name for method in methods]
    rows = []
    for of, on in zip(result["tables"], tables, strict=True):
        ends = [100.0 * len(found["near_times"]) / seeds for found in of["methods"]]
        taus = []
        for _, printed in FIGURE_5.values():
            theirs = [-float(printed[name][0]) for name in names]
            taus.append(number(ranks.tau(ends, theirs), 2))
        share = number(100.0 * near(on, NEAR) / len(on.points), 2)
        rows.append([on.name, share, ranks.order(names, ends, higher=True), *taus])
    for system, (near_best, printed) in FIGURE_5.items():
        theirs = [-float(printed[name][0]) for name in names]
        others = ([-float(other[name][0]) for name in names] for _, other in FIGURE_5.values())
        taus = [number(ranks.tau(theirs, other), 2) for other in others]
        rows.append(
            [
                f"the paper's {system}",
                number(near_best, 2),
                ranks.order(names, theirs, higher=True),
                *taus,
            ]
        )
    words = [
        f"- {system}: " + "; ".join(f"{name} {words}" for name, (_, words) in printed.items())
        for system, (_, printed) in FIGURE_5.items()
    ]
    head = ["", "near-optimal %", "order at the end, best first"]
    head += [f"tau with {system.split('-')[1]}" for system in FIGURE_5]
    return [
        "What the paper says of its figure, after five hours:",
        "",
        *words,
        "",
        "Rankings by the last column, and Kendall's tau-b with the paper's:",
        "",
        *table(head, rows, left=3),
        "",
        *prose("cao2018-why"),
    ]

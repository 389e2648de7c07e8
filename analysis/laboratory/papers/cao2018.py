"""Cao 2018: figures 3 to 9, tables 4 and 5."""

from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from comparison.markdown import number, table
from comparison.simulate import Method, near
from peers.program import Program
from peers.tables import Table

from papers import drawing, file_systems, ranks, studies
from papers.published import FIGURE_5
from papers.text import prose

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
RATES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Figure 7's mutation rates."""
NEAR = 1.0 / 0.99 - 1.0
"""More than 99 % of the best throughput: so much more than the least time."""
GENERATION = 8
BEGIN = ("GA", "BO")
"""The methods that begin with each file system's default."""
EXT3 = "ext3"
"""The file system of figures 8 and 9."""


def page(
    program: Program, tables: list[Table], quiet: list[Path], seeds: int, rates_seeds: int
) -> tuple[list[str], dict[str, str]]:
    """The page's lines, and its drawings. `quiet` are the tables without noise."""
    result = {"tables": _replayed(program, tables, quiet, METHODS, seeds, ["--per-seed"])}
    said = {
        "budget": str(BUDGET),
        "seeds": str(seeds),
        "rates_seeds": str(rates_seeds),
        "sparse": str(file_systems.BUDGET),
    }
    systems = next((on for on in tables if on.name == file_systems.NAME), None)
    apart = quiet[0].parent / "systems"
    lines = [*prose("cao2018", **said), "", *_figure_3(tables)]
    drawn = {}
    lines += ["", *prose("cao2018-figure4", **said)]
    for of, on in zip(result["tables"], tables, strict=True):
        name = f"cao2018-{on.name}.svg"
        drawn[name] = _best_so_far(of, on)
        lines += ["", f"![best so far on {on.name}](figures/{name})"]
    lines += ["", *prose("cao2018-figure5", **said)]
    for of, on in zip(result["tables"], tables, strict=True):
        lines += ["", *_figure_5(of, on, seeds)]
    lines += ["", *_compared(result, tables, seeds)]
    lines += ["", *prose("cao2018-figure6"), "", *_figure_6(result, tables)]
    lines += [
        "",
        *prose("cao2018-figure7", **said),
        "",
        *_figure_7(program, tables, quiet, rates_seeds),
    ]
    lines += ["", *prose("cao2018-figure8"), "", *_figure_8(result, tables)]
    if systems is not None:
        ext3 = file_systems.of_system(systems, EXT3, apart)
        genetic = next(method.text for method in METHODS if method.name == "GA")
        lines += ["", *prose("cao2018-alleles", **said)]
        lines += ["", *file_systems.alleles(program, ext3, genetic, seeds)]
        lines += ["", *prose("cao2018-figure9")]
        lines += ["", *file_systems.clusters(ext3, "journal", "block_size")]
    lines += ["", *prose("cao2018-table5"), "", *_table_5(tables)]
    if systems is not None:
        lines += ["", *prose("cao2018-systems"), "", *file_systems.by_system(systems, apart)]
    return [*lines, "", *prose("cao2018-not-made", **said), "", *prose("cao2018-why")], drawn


def _replayed(
    program: Program,
    tables: list[Table],
    quiet: list[Path],
    methods: list[Method],
    seeds: int,
    words: list[str],
) -> list[dict[str, Any]]:
    """What `io-autotune-simulate` says of each table and, there, of each method, in order."""
    dense = [path for path in quiet if path.stem != file_systems.NAME]
    words = ["--exploring-only", *words]
    many = ["--seeds", str(seeds), "--budget", str(BUDGET)]
    whole = program.simulate(dense, [method.text for method in methods], [*words, *many])
    by_name = {of["name"]: of for of in whole["tables"]}
    for path in set(quiet) - set(dense):
        some = ["--seeds", str(_seeds(file_systems.NAME, seeds))]
        by_name[file_systems.NAME] = _sparse(program, path, methods, [*words, *some])
    return [by_name[on.name] for on in tables]


def _seeds(table: str, seeds: int) -> int:
    """The studies of a table: half as many where they are long."""
    return max(seeds // 2, 1) if table == file_systems.NAME else seeds


def _sparse(
    program: Program, path: Path, methods: list[Method], words: list[str]
) -> dict[str, Any]:
    """The same of the table of file systems, where some methods begin with several defaults."""
    by_label: dict[str, Any] = {}
    for begins in (False, True):
        some = [one.text for one in methods if (one.name in BEGIN) == begins]
        if not some:
            continue
        more = ["--budget", str(file_systems.BUDGET), *file_systems.words(begins)]
        answer = program.simulate([path], some, [*words, *more])
        of = answer["tables"][0]
        by_label |= dict(zip(some, of["methods"], strict=True))
    return {**of, "methods": [by_label[one.text] for one in methods]}


def _figure_3(tables: list[Table]) -> list[str]:
    rows = []
    for on in tables:
        ordered = sorted(on.truths)
        default = on.truths[on.default]
        quantiles = [
            ordered[int(share * (len(ordered) - 1))] for share in (0.0, 0.1, 0.5, 0.9, 1.0)
        ]
        better = 100.0 * sum(time < default for time in on.truths) / len(on.truths)
        rows.append(
            [
                on.name,
                *(number(quantiles[0] / time, 3) for time in quantiles),
                f"{better:.0f} %",
                f"{100.0 * near(on, NEAR) / len(on.points):.2g} %",
            ]
        )
    head = ["throughput over the best's, quantiles", "best", "10 %", "50 %", "90 %", "worst"]
    best = [
        [
            on.name,
            ", ".join(
                f"{parameter.name} {parameter.values[level]}"
                for parameter, level in zip(on.parameters, on.points[on.best], strict=True)
            ),
        ]
        for on in tables
    ]
    return [
        *table([*head, "better than the default", "near-optimal"], rows),
        "",
        *prose("cao2018-table4"),
        "",
        *table(["", "the best"], best, left=2),
    ]


def _courses(found: dict[str, Any], on: Table) -> list[list[float]]:
    """The true times of the runs of each study; what is invalid took none."""
    if on.name != file_systems.NAME:
        return studies.courses(found, on)
    return [
        [on.truths[place] for place in study["runs"] if place is not None]
        for study in found["studies"]
    ]


def _best_so_far(of: dict[str, Any], on: Table) -> str:
    series = {}
    for method, found in zip(METHODS, of["methods"], strict=True):
        first = _courses(found, on)[0]
        series[method.name] = [min(first[: nth + 1]) for nth in range(len(first))]
    return drawing.lines(series, "run", "least time so far, s")


def _figure_5(of: dict[str, Any], on: Table, seeds: int) -> list[str]:
    seeds = _seeds(on.name, seeds)
    near_best = 100.0 * near(on, NEAR) / len(on.points)
    rows = []
    for method, found in zip(METHODS, of["methods"], strict=True):
        times = found["near_times"]
        by_time = [100.0 * bisect_right(times, n * of["default"]) / seeds for n in TIMES]
        ends = 100.0 * len(times) / seeds
        rows.append([method.name, *(number(one) for one in by_time), number(ends)])
    if on.name == file_systems.NAME:
        valid, best = len(on.points), near(on, NEAR)
        drawn = [
            file_systems.found_at_random(valid, best, int(n * of["default"] / fmean(on.truths)))
            for n in TIMES
        ]
        rows.append(["RS, valid ones alone", *(number(one) for one in drawn), ""])
    head = [f"{on.name}: {number(near_best, 2)} % near-optimal", *(f"t = {n}" for n in TIMES)]
    return table([*head, "all runs"], rows)


def _compared(result: dict[str, Any], tables: list[Table], seeds: int) -> list[str]:
    names = [method.name for method in METHODS]
    rows = []
    for of, on in zip(result["tables"], tables, strict=True):
        many = _seeds(on.name, seeds)
        ends = [100.0 * len(found["near_times"]) / many for found in of["methods"]]
        share = number(100.0 * near(on, NEAR) / len(on.points), 2)
        rows.append([on.name, share, ranks.order(names, ends, higher=True)])
    for system, (near_best, printed) in FIGURE_5.items():
        theirs = [-float(printed[name][0]) for name in names]
        order = ranks.order(names, theirs, higher=True)
        rows.append([f"the paper's {system}", number(near_best, 2), order])
    words = [
        f"- {system}:\n  " + "; ".join(f"{name} {words}" for name, (_, words) in printed.items())
        for system, (_, printed) in FIGURE_5.items()
    ]
    head = ["", "near-optimal %", "order at the end, best first"]
    return [
        "What the paper says of its figure, after five hours:",
        "",
        *words,
        "",
        *table(head, rows, left=3),
    ]


def _figure_6(result: dict[str, Any], tables: list[Table]) -> list[str]:
    """The mean throughput by quarter of the runs, over the best."""
    rows = []
    for of, on in zip(result["tables"], tables, strict=True):
        for method, found in zip(METHODS, of["methods"], strict=True):
            courses = _courses(found, on)
            most = max(len(times) for times in courses)
            ends = [most * quarter // 4 for quarter in range(5)]
            cells = []
            for begin, end in pairwise(ends):
                times = [time for course in courses for time in course[begin:end]]
                best = on.truths[on.best]
                cells.append(f"{fmean(best / time for time in times):.2f}" if times else "-")
            rows.append([on.name, method.name, str(most), *cells])
    quarters = ["first quarter", "second", "third", "last"]
    head = ["throughput over the best's", "", "runs", *quarters]
    return table(head, rows, left=2)


def _figure_7(program: Program, tables: list[Table], quiet: list[Path], seeds: int) -> list[str]:
    rows = []
    found = {}
    for revisits in ("run", "free"):
        prefix = f"cao2018-genetic:cao2018-genetic.revisits={revisits},cao2018-genetic"
        methods = [Method("GA", f"{prefix}.mutation_rate={rate}") for rate in RATES]
        # As published alone where a study is long.
        some = [path for path in quiet if revisits == "run" or path.stem != file_systems.NAME]
        of = [on for on, path in zip(tables, quiet, strict=True) if path in some]
        found[revisits] = _replayed(program, of, some, methods, seeds, [])
    for nth, on in enumerate(tables):
        for revisits, result in found.items():
            if nth >= len(result):
                continue
            many = _seeds(on.name, seeds)
            ends = [100.0 * len(method["near_times"]) / many for method in result[nth]["methods"]]
            best = max(range(len(ends)), key=ends.__getitem__)
            cells = [number(end) for end in ends]
            cells[best] = f"**{cells[best]}**"
            rows.append([on.name, revisits, *cells])
    head = ["near-optimal found, %", "revisits", *(f"{rate:.0%}" for rate in RATES)]
    return table(head, rows, left=2)


def _figure_8(result: dict[str, Any], tables: list[Table]) -> list[str]:
    """The share of a generation's members that have the best parametrization's value."""
    rows = []
    genetic = [method.name for method in METHODS].index("GA")
    for of, on in zip(result["tables"], tables, strict=True):
        runs = [study["runs"] for study in of["methods"][genetic]["studies"]]
        strength = _importance(on)
        first = max(range(len(strength)), key=lambda place: strength[place])
        last = min(range(len(strength)), key=lambda place: strength[place])
        for place in (first, last):
            cells = []
            for generation in (0, 2, 5, 8):
                begin = generation * GENERATION
                members = [
                    one
                    for study in runs
                    for one in study[begin : begin + GENERATION]
                    if one is not None
                ]
                same = sum(on.points[one][place] == on.points[on.best][place] for one in members)
                cells.append(f"{100.0 * same / len(members):.0f}" if members else "-")
            name = on.parameters[place].name
            rows.append([on.name, f"{name} (R² {strength[place]:.2f})", *cells])
    head = [
        "with the best's value, %",
        "",
        *(f"runs {8 * g + 1}-{8 * g + 8}" for g in (0, 2, 5, 8)),
    ]
    return table(head, rows, left=2)


def _importance(on: Table) -> list[float]:
    """Each parameter's R² of times."""
    pairs = [(tuple(p), time) for p, time in zip(on.points, on.truths, strict=True)]
    return file_systems.shares(pairs, len(on.parameters))


def _table_5(tables: list[Table]) -> list[str]:
    rows = []
    for on in tables:
        shares = _importance(on)
        ordered = sorted(range(len(shares)), key=lambda place: -shares[place])
        told = (f"{on.parameters[place].name} {shares[place]:.2f}" for place in ordered[:4])
        pair = file_systems.told(file_systems.first_and_second(on))
        rows.append([on.name, ", ".join(told), pair])
    head = ["", "R² of times, the four greatest", "of throughput, the first and then the second"]
    return table(head, rows, left=3)

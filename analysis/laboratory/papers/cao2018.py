"""Cao 2018: figures 3 to 9, tables 4 and 5."""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from comparison.markdown import number, table
from comparison.simulate import Method, near
from peers.program import Program
from peers.tables import Table

from papers import cao2018_claims, cao2018_space, drawing, file_systems, ranks, studies
from papers.cao2018_claims import TIMES
from papers.cao2018_rates import RATES, Rates
from papers.cao2018_replays import (
    BEGIN,
    NEAR_OPTIMAL,
    Replayed,
    near_optimal,
    promising,
    share_within,
    when,
)
from papers.claims import mean
from papers.claims import rows as claimed
from papers.published import FIGURE_5
from papers.text import prose

BUDGET = 100
"""Runs of a study."""
_GENETIC = "cao2018-genetic:cao2018-genetic"
METHODS = [
    Method("SA", "cao2018-annealing"),
    Method("GA", "cao2018-genetic"),
    Method("DQN", "cao2018-dqn"),
    Method("BO", "cao2018-bayesian"),
    Method("RS", "random"),
]
SLOW = ("DQN", "BO")
"""The methods whose suggestions take long to compute: of them there may be fewer studies."""
SELECTIONS = ("proportional", "best", "ranks")
"""The readings of how parents are selected: the first is the default."""
NEAR = 1.0 / NEAR_OPTIMAL - 1.0
"""More than 99 % of the best throughput: so much more than the least time."""
NEAR_OF_FIGURE_7 = 0.995
"""Near-optimal in figure 7: above this share of the best throughput."""
GENERATION = 8
EXT3 = "ext3"
"""The file system of figures 8 and 9."""


def page(
    program: Program,
    tables: list[Table],
    quiet: list[Path],
    seeds: int,
    rates_seeds: int,
    slow_seeds: int,
    patterns: list[Table],
) -> tuple[list[str], dict[str, str]]:
    """The page's lines, and its drawings. `quiet` are the tables without noise.

    `patterns` are tables of one space under several works. `slow_seeds` are the studies of those
    methods that take long to compute.
    """
    slow_seeds = min(slow_seeds, seeds)
    result = {"tables": _both(program, tables, quiet, seeds, slow_seeds)}
    systems = next(on for on in tables if on.name == file_systems.NAME)
    apart = quiet[0].parent / "systems"
    figure_7, rates = _figure_7(program, tables, quiet, rates_seeds)
    by_system = file_systems.each(systems, apart)
    alleles = {
        selection: file_systems.alleles(
            program, by_system[EXT3], f"{_GENETIC}.selection={selection}", seeds
        )
        for selection in SELECTIONS
    }
    names = [method.name for method in METHODS]
    replayed = [
        Replayed(on, dict(zip(names, of["methods"], strict=True)))
        for of, on in zip(result["tables"], tables, strict=True)
    ]
    claims = cao2018_claims.claims(
        replayed,
        rates,
        cao2018_space.Systems(
            systems,
            by_system,
            last={selection: of.last for selection, of in alleles.items()},
            settled={selection: of.settled for selection, of in alleles.items()},
            diversity={selection: mean(of.growth) for selection, of in alleles.items()},
            diverse={selection: of.diverse for selection, of in alleles.items()},
            staying={selection: mean(of.staying) for selection, of in alleles.items()},
        ),
        patterns,
    )
    said = {
        "budget": str(BUDGET),
        "seeds": str(seeds),
        "slow_seeds": str(slow_seeds),
        "half": str(_seeds(file_systems.NAME, seeds)),
        "slow_half": str(_seeds(file_systems.NAME, slow_seeds)),
        "rates_seeds": str(rates_seeds),
        "sparse": str(file_systems.BUDGET),
        "fewest": f"{min(map(_near, tables)):.2g}",
        "most": f"{max(map(_near, tables)):.2g}",
        "alone": _alone(tables),
    }
    lines = [
        *prose("cao2018", **said),
        "",
        *prose("rule", source="the paper", has="has"),
        "",
        *claimed(claims),
    ]
    lines += ["", *prose("cao2018-figure3"), "", *_figure_3(tables)]
    drawn = {}
    lines += ["", *prose("cao2018-figure4", **said)]
    for of, on in zip(result["tables"], tables, strict=True):
        name = f"cao2018-{on.name}.svg"
        drawn[name] = _best_so_far(of, on)
        lines += ["", f"![best so far on {on.name}](figures/{name})"]
    lines += ["", *prose("cao2018-figure5", **said)]
    for one in replayed:
        lines += ["", *_figure_5(one)]
    lines += ["", *_compared(replayed)]
    lines += ["", *prose("cao2018-figure6"), "", *_figure_6(result, tables)]
    lines += [
        "",
        *prose("cao2018-figure7", **said),
        "",
        *figure_7,
    ]
    lines += ["", *prose("cao2018-figure8"), "", *_figure_8(result, tables)]
    lines += ["", *prose("cao2018-alleles", **said)]
    for selection, of_selection in alleles.items():
        lines += ["", f"Selection `{selection}`:", "", *of_selection.lines]
    lines += ["", *prose("cao2018-figure9")]
    lines += ["", *file_systems.clusters(by_system[EXT3], "journal", "block_size")]
    lines += ["", *prose("cao2018-table5"), "", *_table_5(tables)]
    lines += ["", *prose("cao2018-systems"), "", *file_systems.by_system(by_system)]
    return [*lines, "", *prose("cao2018-not-made", **said), "", *prose("cao2018-why")], drawn


def _alone(tables: Sequence[Table]) -> str:
    """How many are near-optimal, by the bound of figures 4 and 5 and by that of figure 7."""
    counts = {
        on.name: (len(near_optimal(on)), len(near_optimal(on, NEAR_OF_FIGURE_7))) for on in tables
    }
    others = [
        f"on `{name}` {one} and {other} are"
        for name, (one, other) in counts.items()
        if (one, other) != (1, 1)
    ]
    alone = f"one alone is near-optimal on {len(counts) - len(others)} of {len(counts)} tables"
    return "; ".join([f"{alone}, by either bound", *others])


def _near(on: Table) -> float:
    """How many are near-optimal, %."""
    return 100.0 * near(on, NEAR) / len(on.points)


def _both(
    program: Program, tables: list[Table], quiet: list[Path], seeds: int, slow_seeds: int
) -> list[dict[str, Any]]:
    """All methods in their order, each with as many studies as it has."""
    found: dict[str, list[dict[str, Any]]] = {}
    for many, slow in ((seeds, False), (slow_seeds, True)):
        some = [method for method in METHODS if (method.name in SLOW) == slow]
        for of in _replayed(program, tables, quiet, some, many, ["--per-seed"]):
            for method, one in zip(some, of["methods"], strict=True):
                found.setdefault(of["name"], []).append({**of, "methods": [(method.name, one)]})
    names = [method.name for method in METHODS]
    together = []
    for on in tables:
        by_name = dict(pair for of in found[on.name] for pair in of["methods"])
        together.append({**found[on.name][0], "methods": [by_name[name] for name in names]})
    return together


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
                f"{_near(on):.2g} %",
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


def _figure_5(of: Replayed) -> list[str]:
    on = of.on
    close = near_optimal(on)
    rows = []
    for name, method in of.methods.items():
        when_found = [when(study, on, close) for study in method["studies"]]
        found = [
            100.0 * fmean(time is not None and time <= end for time in when_found)
            for end in [*TIMES, math.inf]
        ]
        rows.append([name, *map(number, found), str(len(when_found))])
    if on.name == file_systems.NAME:
        default = on.truths[on.default]
        drawn = [
            file_systems.found_at_random(
                len(on.points), len(close), int(end * default / fmean(on.truths))
            )
            for end in TIMES
        ]
        rows.append(["RS, valid ones alone", *map(number, drawn), "", "computed"])
    share = number(100.0 * len(close) / len(on.points), 2)
    head = [f"{on.name}: {share} % near-optimal", *(f"t = {end}" for end in TIMES)]
    return table([*head, "all runs", "studies"], rows)


def _compared(replayed: Sequence[Replayed]) -> list[str]:
    names = [method.name for method in METHODS]

    def order(of: Replayed, time: float) -> str:
        found = [ranks.rounded(fmean(of.found(name, near_optimal(of.on), time))) for name in names]
        return ranks.order(names, found, higher=True)

    rows = [
        [
            of.on.name,
            number(100.0 * near(of.on, NEAR) / len(of.on.points), 2),
            f"{of.horizon:.0f}",
            order(of, of.horizon),
        ]
        for of in replayed
    ]
    for system, (near_best, printed) in FIGURE_5.items():
        theirs = [-float(printed[name][0]) for name in names]
        order_of_paper = ranks.order(names, theirs, higher=True, tie=",")
        rows.append([f"the paper's {system}", number(near_best, 2), "100", order_of_paper])
    words = [
        f"- {system}:\n  " + "; ".join(f"{name} {words}" for name, (_, words) in printed.items())
        for system, (_, printed) in FIGURE_5.items()
    ]
    head = ["", "near-optimal %", "equal time, t", "order then, best first"]
    return [
        "What the paper says of its figure, after five hours:",
        "",
        *words,
        "",
        *table(head, rows, left=4),
        "",
        *prose("cao2018-orders"),
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


def _figure_7(
    program: Program, tables: list[Table], quiet: list[Path], seeds: int
) -> tuple[list[str], Rates]:
    """The table, and what the studies did, at each rate."""
    rows = []
    readings = [(selection, "run") for selection in SELECTIONS] + [(SELECTIONS[0], "free")]
    whole, half, until, alleles = (
        {_reading(*one): dict[str, list[list[float]]]() for one in readings} for _ in range(4)
    )
    results = []
    for selection, revisits in readings:
        prefix = f"{_GENETIC}.selection={selection},cao2018-genetic.revisits={revisits}"
        methods = [Method("GA", f"{prefix},cao2018-genetic.mutation_rate={rate}") for rate in RATES]
        # As published alone where a study is long.
        some = [path for path in quiet if revisits == "run" or path.stem != file_systems.NAME]
        of = [on for on, path in zip(tables, quiet, strict=True) if path in some]
        results.append(_replayed(program, of, some, methods, seeds, ["--per-seed"]))
    for nth, on in enumerate(tables):
        for (selection, revisits), result in zip(readings, results, strict=True):
            if nth >= len(result):
                continue
            methods = result[nth]["methods"]
            hits = [_hits(method, on) for method in methods]
            reading = _reading(selection, revisits)
            whole[reading][on.name] = hits
            half[reading][on.name] = [_hits(method, on, share=0.5) for method in methods]
            wanted = promising(on)
            until[reading][on.name] = [_until(method, wanted) for method in methods]
            alleles[reading][on.name] = [
                [share_within(study["runs"], wanted) for study in method["studies"]]
                for method in methods
            ]
            ends = [fmean(of) for of in hits]
            best = max(range(len(ends)), key=ends.__getitem__)
            cells = [number(end) for end in ends]
            cells[best] = f"**{cells[best]}**"
            rows.append([on.name, selection, revisits, *cells])
    rates = [f"{rate:.0%}" for rate in RATES]
    head = ["near-optimal found, %", "selection", "revisits", *rates]
    return table(head, rows, left=3), Rates(whole, half, until, alleles)


def _reading(selection: str, revisits: str) -> str:
    """What the page calls a reading of the genetic algorithm."""
    return f"selection `{selection}`" + ("" if revisits == "run" else f", revisits `{revisits}`")


def _hits(method: dict[str, Any], on: Table, share: float = 1.0) -> list[float]:
    """100 for each study that has run what is near-optimal in figure 7, in a share of its runs."""
    close = near_optimal(on, NEAR_OF_FIGURE_7)
    return [
        100.0 * (not close.isdisjoint(study["runs"][: round(share * len(study["runs"]))]))
        for study in method["studies"]
    ]


def _until(method: dict[str, Any], wanted: frozenset[int]) -> list[float]:
    """The number of each study's first run of one of these; all its runs if there is none."""
    return [
        float(next((nth for nth, at in enumerate(runs, 1) if at in wanted), len(runs)))
        for study in method["studies"]
        for runs in [study["runs"]]
    ]


def _figure_8(result: dict[str, Any], tables: list[Table]) -> list[str]:
    """The share of a generation's members that have the best parametrization's value."""
    rows = []
    genetic = [method.name for method in METHODS].index("GA")
    for of, on in zip(result["tables"], tables, strict=True):
        runs = [study["runs"] for study in of["methods"][genetic]["studies"]]
        strength = file_systems.importance(on)
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
            rows.append([on.name, f"{name} (R² {max(strength[place], 0.0):.2f})", *cells])
    head = [
        "with the best's value, %",
        "",
        *(f"runs {8 * g + 1}-{8 * g + 8}" for g in (0, 2, 5, 8)),
    ]
    return table(head, rows, left=2)


def _table_5(tables: list[Table]) -> list[str]:
    rows = []
    for on in tables:
        shares = file_systems.importance(on)
        ordered = sorted(range(len(shares)), key=lambda place: -shares[place])
        told = (
            f"{on.parameters[place].name} {max(shares[place], 0.0):.2f}" for place in ordered[:4]
        )
        pair = file_systems.told(file_systems.first_and_second(on))
        rows.append([on.name, ", ".join(told), pair])
    head = ["", "the four greatest R²", "the first and then the second"]
    return table(head, rows, left=3)

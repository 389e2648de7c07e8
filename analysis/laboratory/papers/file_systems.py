"""What Cao 2018 shows of one file system, on the measured table of file systems."""

import json
from collections.abc import Sequence
from math import prod
from pathlib import Path
from statistics import fmean, median

from comparison.markdown import table
from peers.program import Program
from peers.tables import Parameter, Table

from papers.published import TABLE_5

NAME = "file-systems"
SYSTEM = "file_system"
BUDGET = 250
"""Runs of a study, those of invalid combinations included, which take no time."""
GENERATION = 8
GENERATIONS = (1, 2, 4, 8)
SIGNIFICANT = 0.6
"""The paper's least R² that is told."""


def words(begins: bool) -> list[str]:
    """How `io-autotune-simulate` replays the table; `begins`: with each file system's default."""
    return ["--outside", "slow", *(["--defaults-first"] if begins else [])]


def of_system(on: Table, system: str, directory: Path) -> Table:
    """The part of the table that is of one file system, written without noise."""
    described = on.described
    default = next(first for first in described["first"] if first[SYSTEM] == system)
    place = [p.name for p in on.parameters].index(SYSTEM)
    level = on.parameters[place].values.index(system)
    rows = [
        (point, time)
        for point, time in zip(on.points, on.truths, strict=True)
        if point[place] == level
    ]
    used = [
        (nth, parameter, sorted({point[nth] for point, _ in rows}))
        for nth, parameter in enumerate(on.parameters)
    ]
    varied = [(nth, parameter, levels) for nth, parameter, levels in used if len(levels) > 1]
    parameters = [
        {
            "name": parameter.name,
            "kind": "ordinal" if parameter.ordered else "categorical",
            "values": [parameter.values[one] for one in levels],
        }
        for _, parameter, levels in varied
    ]
    names = [str(parameter["name"]) for parameter in parameters]
    lines = [",".join([*names, "time"])]
    for point, time in rows:
        fields = [str(parameter.values[point[nth]]) for nth, parameter, _ in varied]
        lines.append(",".join([*fields, repr(time)]))
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{system}.json"
    small = {"name": system, "parameters": parameters, "default": {n: default[n] for n in names}}
    path.write_text(json.dumps(small), "utf-8")
    path.with_suffix(".csv").write_text("\n".join(lines) + "\n", "utf-8")
    return Table(path)


def found_at_random(valid: int, near: int, runs: int) -> float:
    """The share of studies, %, whose `runs` draws without replacement have a near-optimal one."""
    missed = prod((valid - near - nth) / (valid - nth) for nth in range(min(runs, valid - near)))
    return 100.0 * (1.0 - missed if runs <= valid - near else 1.0)


def alleles(
    program: Program, on: Table, method: str, seeds: int
) -> tuple[list[str], dict[str, float]]:
    """Figure 8: the share of each value in a generation's members, on one file system's table.

    Also, by parameter and value, the shares in the last generation, %.
    """
    result = program.simulate(
        [on.path],
        [method],
        [
            "--exploring-only",
            "--per-seed",
            *("--budget", str(GENERATION * max(GENERATIONS))),
            *("--seeds", str(seeds)),
            *words(begins=False),
        ],
    )
    runs = [study["runs"] for study in result["tables"][0]["methods"][0]["studies"]]
    rows = []
    last = {}
    for nth, parameter in enumerate(on.parameters):
        for level, value in enumerate(parameter.values):
            cells = []
            for generation in GENERATIONS:
                begin = (generation - 1) * GENERATION
                members = [
                    place
                    for study in runs
                    for place in study[begin : begin + GENERATION]
                    if place is not None
                ]
                share = 100.0 * fmean(on.points[place][nth] == level for place in members)
                cells.append(f"{share:.0f}")
                last[f"{parameter.name} {value}"] = share
            best = " (the best's)" if on.points[on.best][nth] == level else ""
            rows.append([parameter.name, f"{value}{best}", *cells])
    head = ["% of the valid members", "", *(f"generation {g}" for g in GENERATIONS)]
    return table(head, rows, left=2), last


def clusters(on: Table, across: str, coloured: str) -> list[str]:
    """Figure 9: throughput over the best's under each pair of two parameters' values."""
    names = [parameter.name for parameter in on.parameters]
    x, colour = names.index(across), names.index(coloured)
    best = on.truths[on.best]
    rows = []
    for row, value in enumerate(on.parameters[x].values):
        cells = []
        for level in range(on.parameters[colour].levels):
            of = [
                best / time
                for point, time in zip(on.points, on.truths, strict=True)
                if (point[x], point[colour]) == (row, level)
            ]
            cells.append(f"{median(of):.2f} ({min(of):.2f} to {max(of):.2f})" if of else "-")
        rows.append([str(value), *cells])
    head = [f"{across}, {coloured}", *map(str, on.parameters[colour].values)]
    return table(head, rows)


def medians(on: Table, across: str, coloured: str) -> dict[tuple[str, str], float]:
    """The median throughput over the best's under each pair of two parameters' values."""
    names = [parameter.name for parameter in on.parameters]
    places = [names.index(across), names.index(coloured)]
    under: dict[tuple[str, str], list[float]] = {}
    for point, time in zip(on.points, on.truths, strict=True):
        one, other = (str(on.parameters[place].values[point[place]]) for place in places)
        under.setdefault((one, other), []).append(on.truths[on.best] / time)
    return {pair: median(of) for pair, of in under.items()}


def strongest_of_each(on: Table, directory: Path) -> dict[str, str]:
    """The parameter that matters most to each file system."""
    place = [p.name for p in on.parameters].index(SYSTEM)
    systems = [str(value) for value in on.parameters[place].values]
    found = {system: first_and_second(of_system(on, system, directory)) for system in systems}
    return {system: f"{of[0][0].name} {of[0][1]:.2f}" for system, of in found.items()}


def shares(points: Sequence[tuple[tuple[int, ...], float]], parameters: int) -> list[float]:
    """R² of a one-way analysis of variance of each parameter, 0 to 1."""
    mean = fmean(time for _, time in points)
    total = sum((time - mean) ** 2 for _, time in points)
    found = []
    for place in range(parameters):
        under: dict[int, list[float]] = {}
        for point, time in points:
            under.setdefault(point[place], []).append(time)
        between = sum(len(of) * (fmean(of) - mean) ** 2 for of in under.values())
        found.append(between / total if total else 0.0)
    return found


def first_and_second(on: Table) -> list[tuple[Parameter, float]]:
    """Section 4.4: the parameter of the highest R² of throughput, and the next with that fixed.

    Of the latter the highest over the values of the former.
    """
    pairs = [(tuple(p), 1.0 / time) for p, time in zip(on.points, on.truths, strict=True)]
    count = len(on.parameters)
    alone = shares(pairs, count)
    first = max(range(count), key=alone.__getitem__)
    rest = [0.0] * count
    for level in {point[first] for point, _ in pairs}:
        some = [pair for pair in pairs if pair[0][first] == level]
        rest = [max(old, new) for old, new in zip(rest, shares(some, count), strict=True)]
    rest[first] = 0.0
    second = max(range(count), key=rest.__getitem__)
    return [(on.parameters[first], alone[first]), (on.parameters[second], rest[second])]


def told(found: list[tuple[Parameter, float]]) -> str:
    """The two, as the paper's table 5: below 0.6 it leaves blank."""
    cells = [f"{parameter.name} {share:.2f}" for parameter, share in found if share >= SIGNIFICANT]
    weaker = ", ".join(f"{parameter.name} {share:.2f}" for parameter, share in found)
    return ", then ".join(cells) if cells else f"- ({weaker})"


def by_system(on: Table, directory: Path) -> list[str]:
    """Table 5: each file system's two parameters that matter most, beside the paper's."""
    place = [p.name for p in on.parameters].index(SYSTEM)
    systems = [str(value) for value in on.parameters[place].values]
    rows = []
    for system in systems:
        small = of_system(on, system, directory)
        rows.append([system, told(first_and_second(small)), *TABLE_5.get(system, ("", ""))])
    others = [name for name in TABLE_5 if name not in systems]
    rows += [[name, "not in this kernel", *TABLE_5[name]] for name in others]
    return table(["", "here", "the paper's File-SSD", "Db-SSD"], rows, left=4)

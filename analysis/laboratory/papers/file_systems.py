"""What Cao 2018 shows of one file system, on the measured table of file systems."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
LEAST_MEMBERS = 2
"""Of a generation, of which a commonest value is told."""
DIVERSE = ("block_size", "journal")
"""The parameters of which the paper tells that the first generation has all values."""
SIGNIFICANT = 0.6
"""The paper's least R² that is told."""
ENOUGH = 10
"""Configurations of which an R² of parameters tells something: our bound."""


def defaults(on: Table) -> list[int]:
    """The places of the table's defaults: several if it has file systems."""
    found = [
        place
        for first in on.described.get("first", [])
        for place, point in enumerate(on.points)
        if all(
            str(parameter.values[level]) == str(first[parameter.name])
            for parameter, level in zip(on.parameters, point, strict=True)
        )
    ]
    return sorted({on.default, *found})


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


@dataclass(frozen=True)
class Alleles:
    """Figure 8, of one selection on one file system's table."""

    lines: list[str]
    last: dict[str, float]
    """By parameter and value, the shares in the last generation, %."""
    settled: dict[str, list[bool]]
    """By parameter and value, in which studies all of the last generation have it."""
    growth: list[float]
    """By study, how much the commonest values' share grows from the first generation on."""
    diverse: dict[str, list[bool]]
    """By parameter of figure 8, in which studies the first generation has all of its values."""
    staying: list[float]
    """By study, after the first generation: how often, %, a commonest value stays the commonest."""


def alleles(program: Program, on: Table, method: str, seeds: int) -> Alleles:
    """The share of each value in a generation's members."""
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
    settled = {}
    ended = [some for study in runs if (some := _members(study, GENERATIONS[-1]))]
    for nth, parameter in enumerate(on.parameters):
        for level, value in enumerate(parameter.values):
            cells = []
            for generation in GENERATIONS:
                members = [place for study in runs for place in _members(study, generation)]
                share = 100.0 * fmean(on.points[place][nth] == level for place in members)
                cells.append(f"{share:.0f}")
                last[f"{parameter.name} {value}"] = share
            settled[f"{parameter.name} {value}"] = [
                all(on.points[place][nth] == level for place in members) for members in ended
            ]
            best = " (the best's)" if on.points[on.best][nth] == level else ""
            rows.append([parameter.name, f"{value}{best}", *cells])
    head = ["% of the valid members", "", *(f"generation {g}" for g in GENERATIONS)]
    ends = [
        [_commonest(on, _members(study, generation)) for study in runs]
        for generation in (GENERATIONS[0], GENERATIONS[-1])
    ]
    growth = [
        late - early
        for early, late in zip(*ends, strict=True)
        if early is not None and late is not None
    ]
    diverse = {
        name: [_has_all(on, name, _members(study, GENERATIONS[0])) for study in runs]
        for name in DIVERSE
    }
    staying = [stays for study in runs if (stays := _staying(on, study)) is not None]
    return Alleles(table(head, rows, left=2), last, settled, growth, diverse, staying)


def _has_all(on: Table, name: str, members: Sequence[int]) -> bool:
    nth = [parameter.name for parameter in on.parameters].index(name)
    return len({on.points[place][nth] for place in members}) == on.parameters[nth].levels


def _staying(on: Table, runs: Sequence[int | None]) -> float | None:
    """Over parameters and steps between generations with enough valid members; %, or none."""
    generations = [_members(runs, nth) for nth in range(2, GENERATIONS[-1] + 1)]
    same = [
        bool(_most(on, before, nth) & _most(on, after, nth))
        for before, after in pairwise(generations)
        if min(len(before), len(after)) >= LEAST_MEMBERS
        for nth in range(len(on.parameters))
    ]
    return 100.0 * fmean(same) if same else None


def _most(on: Table, members: Sequence[int], nth: int) -> set[int]:
    """A parameter's commonest levels among members: several if they tie."""
    levels = [on.points[place][nth] for place in members]
    most = max(map(levels.count, levels))
    return {level for level in levels if levels.count(level) == most}


def _members(runs: Sequence[int | None], generation: int) -> list[int]:
    begin = (generation - 1) * GENERATION
    return [place for place in runs[begin : begin + GENERATION] if place is not None]


def _commonest(on: Table, members: Sequence[int]) -> float | None:
    """The mean over parameters of the commonest value's share, %; none of a single member."""
    if len(members) < LEAST_MEMBERS:
        return None
    shares = []
    for nth in range(len(on.parameters)):
        levels = [on.points[place][nth] for place in members]
        shares.append(100.0 * max(map(levels.count, levels)) / len(levels))
    return fmean(shares)


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


def importance(on: Table) -> list[float]:
    """Each parameter's R² of throughput, without what as many values explain by chance."""
    return _beyond_chance(_throughputs(on), len(on.parameters))


def _throughputs(on: Table) -> list[tuple[tuple[int, ...], float]]:
    return [(tuple(p), 1.0 / time) for p, time in zip(on.points, on.truths, strict=True)]


def first_and_second(on: Table) -> list[tuple[Parameter, float]]:
    """Section 4.4: the parameter of the highest R² of throughput, and the next with that fixed.

    Of the latter the highest over the values of the former that `ENOUGH` configurations have, if
    any has. Both without what as many values explain by chance: of as many configurations as there
    are values they explain all.
    """
    pairs = _throughputs(on)
    count = len(on.parameters)
    alone = importance(on)
    first = max(range(count), key=alone.__getitem__)
    rest = [0.0] * count
    levels = {point[first] for point, _ in pairs}
    fixed = [[pair for pair in pairs if pair[0][first] == level] for level in levels]
    for some in [some for some in fixed if len(some) >= ENOUGH] or fixed:
        found = _beyond_chance(some, count)
        rest = [max(old, new) for old, new in zip(rest, found, strict=True)]
    rest[first] = -1.0
    second = max(range(count), key=rest.__getitem__)
    return [(on.parameters[first], alone[first]), (on.parameters[second], rest[second])]


def _beyond_chance(pairs: Sequence[tuple[tuple[int, ...], float]], parameters: int) -> list[float]:
    found = []
    for place, share in enumerate(shares(pairs, parameters)):
        values = len({point[place] for point, _ in pairs})
        found.append(adjusted(share, len(pairs), values) if len(pairs) > values else 0.0)
    return found


def adjusted(share: float, points: int, levels: int) -> float:
    """R² without what as many levels explain by chance."""
    return 1.0 - (1.0 - share) * (points - 1) / (points - levels)


def told(found: list[tuple[Parameter, float]]) -> str:
    """The two, as the paper's table 5, which tells nothing of what is below 0.6."""
    cells = [f"{parameter.name} {share:.2f}" for parameter, share in found]
    (_, first), (_, second) = found
    if first < SIGNIFICANT:
        return f"none alone above {SIGNIFICANT} ({', then '.join(cells)})"
    return f"{cells[0]}, then {cells[1]}" if second >= SIGNIFICANT else f"{cells[0]} ({cells[1]})"


def each(on: Table, directory: Path) -> dict[str, Table]:
    """The tables of the file systems."""
    place = [p.name for p in on.parameters].index(SYSTEM)
    systems = [str(value) for value in on.parameters[place].values]
    return {system: of_system(on, system, directory) for system in systems}


def by_system(of: Mapping[str, Table]) -> list[str]:
    """Table 5: each file system's two parameters that matter most, beside the paper's."""
    rows = [
        [system, str(len(on.points)), told(first_and_second(on)), *TABLE_5.get(system, ("", ""))]
        for system, on in of.items()
    ]
    others = [name for name in TABLE_5 if name not in of]
    rows += [[name, "-", "not in this kernel", *TABLE_5[name]] for name in others]
    return table(["", "configurations", "here", "the paper's File-SSD", "Db-SSD"], rows, left=5)

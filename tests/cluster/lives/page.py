"""lives.md: what was recorded of every kind of job and every kind of end. Pure: text and rows.

The page is written by the tests alone, and read back by them: its tables are the expectation that
a later run is compared with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields

NOTHING = "-"
"""What stands in a cell of the table where there is nothing to say."""

_HEAD = """\
# Every kind of job, every kind of end

Written by the tests (`make lives`); do not edit. Each row is what was recorded of a job that ran
on a real cluster of Slurm {version}. Where there is no row nothing was run, and nothing is said.
The tests know by themselves which state, elapsed and reason each is to have, compare what
`io-autotune history` and `io-autotune explain` show, and fail where this page says otherwise.

`make test` runs the rows marked `test`, which take seconds, and an array of 20 tasks.
`make test-slow` runs those marked `slow`: time limits, dead nodes, and clusters of another make-up.
`make test-array` runs an array of 1,000 tasks.
Jobs with a burst buffer have [rows of their own](../burst-buffers.md#how-it-goes).

| column | meaning |
| --- | --- |
| kind | how the job was submitted, and where its work runs: [kinds](#kinds) |
| cluster | the cluster's make-up, and where Slurm's word comes from: [clusters](#clusters) |
| launch | 1 is the first; each restart is a run of its own |
| Slurm | the word that the run has for its end; of a job without a run, squeue's |
| state | `counted`; `censored`: its elapsed is a lower bound; `not_counted`; `no run` |
| elapsed | whether the run has one |
| applied | what was in force: the `parametrization`, the `default`, the `user`'s, `incomplete` |
| role | the run's part in its study; studies are pinned where hints are to be seen in the job |
| why | the verdict's sentence, each number written as N |
| run by | `test` or `slow` |
"""


@dataclass(frozen=True)
class Row:
    """What was recorded of one launch of one job."""

    kind: str
    end: str
    cluster: str
    launch: str
    slurm: str
    state: str
    elapsed: str
    applied: str
    role: str
    why: str
    runs_in: str
    """The target that runs it: ``test`` or ``slow``."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What identifies the row; the rest is what was recorded."""
        return (self.kind, self.end, self.cluster, self.launch)


@dataclass(frozen=True)
class Legend:
    """The words of the page and what they mean, in the order in which they are shown."""

    version: str
    """Slurm's, such as ``22.05.8``."""
    kinds: Mapping[str, str]
    ends: Mapping[str, str]
    clusters: Mapping[str, str]

    def knows(self, row: Row) -> bool:
        """Tell whether the tests still have the row's kind, end and cluster."""
        return row.kind in self.kinds and row.end in self.ends and row.cluster in self.clusters


_TABLED = [field.name for field in fields(Row) if field.name != "end"]
_TITLES = {"slurm": "Slurm", "runs_in": "run by"}
_HEADER = [_TITLES.get(name, name) for name in _TABLED]


def normalised(sentence: str) -> str:
    """Return a verdict's sentence with what differs from run to run taken out."""
    sentence = re.sub(r"\bn\d+\b", "NODE", sentence)
    return re.sub(r"\d+(\.\d+)?", "N", sentence)


def render(rows: Iterable[Row], legend: Legend) -> str:
    """Return the page: an overview, then one table for each kind of end."""
    known = sorted(filter(legend.knows, rows), key=_order(legend))
    parts = [_HEAD.format(version=legend.version), _overview(known, legend)]
    for end, means in legend.ends.items():
        of_end = [row for row in known if row.end == end]
        if of_end:
            table = [_cells(row) for row in of_end]
            parts.append(f"## {end}\n\n{means}\n\n{_table(_HEADER, table)}")
    parts.append(f"## Kinds\n\n{_meanings('kind', legend.kinds)}")
    parts.append(f"## Clusters\n\n{_meanings('cluster', legend.clusters)}")
    return "\n".join(parts)


def parse(text: str) -> list[Row]:
    """Return the rows of a page.

    Raises:
        ValueError: a table of ends has a row that is not one.

    """
    rows = []
    end = ""
    for line in text.splitlines():
        if line.startswith("## "):
            end = line.removeprefix("## ")
        elif line.startswith("| ") and end not in {"", "Overview", "Kinds", "Clusters"}:
            cells = [cell.strip().replace("&#124;", "|") for cell in line.strip("|").split(" | ")]
            if cells == _HEADER or set(cells) == {"---"}:
                continue
            if len(cells) != len(_TABLED):
                raise ValueError(f"lives.md has a row that is not one: {line}")
            rows.append(Row(end=end, **dict(zip(_TABLED, cells, strict=True))))
    return rows


def merged(
    committed: Iterable[Row], recorded: Sequence[Row], jobs: set[tuple[str, str, str]]
) -> list[Row]:
    """Return the committed rows with those of the jobs that ran, by (kind, end, cluster), renewed.

    A launch that a job no longer has goes with the job's old rows.
    """
    kept = [row for row in committed if row.key[:3] not in jobs]
    return [*kept, *recorded]


def differences(committed: Iterable[Row], recorded: Iterable[Row]) -> list[str]:
    """Return how what was recorded of one job differs from what the page says, one a line."""
    old = {row.key: row for row in committed}
    new = {row.key: row for row in recorded}
    told = []
    for key in sorted(old.keys() | new.keys()):
        before, now = old.get(key), new.get(key)
        if before != now:
            told.append(f"{', '.join(key)}: lives.md has {_shown(before)}, now {_shown(now)}")
    return told


def _shown(row: Row | None) -> str:
    return "no row" if row is None else " | ".join(_cells(row))


def _order(legend: Legend) -> Callable[[Row], tuple[int, int, int, str]]:
    places = [list(words) for words in (legend.ends, legend.kinds, legend.clusters)]

    def key(row: Row) -> tuple[int, int, int, str]:
        ends, kinds, clusters = places
        return (ends.index(row.end), kinds.index(row.kind), clusters.index(row.cluster), row.launch)

    return key


def _overview(rows: Sequence[Row], legend: Legend) -> str:
    """Kinds down, ends across: the states that were seen, on whatever cluster."""
    ends = [end for end in legend.ends if any(row.end == end for row in rows)]
    table = []
    for kind in legend.kinds:
        seen = [
            ", ".join(
                dict.fromkeys(row.state for row in rows if (row.kind, row.end) == (kind, end))
            )
            for end in ends
        ]
        if any(seen):
            table.append([kind, *seen])
    blank = "Where there is nothing, nothing was run."
    return f"## Overview\n\n{blank}\n\n{_table(['', *ends], table)}"


def _cells(row: Row) -> list[str]:
    return [
        cell.replace("|", "&#124;")
        for field, cell in zip(fields(row), astuple(row), strict=True)
        if field.name != "end"
    ]


def _meanings(title: str, meanings: Mapping[str, str]) -> str:
    return _table([title, "meaning"], [list(item) for item in meanings.items()])


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)

"""Writes docs/measurements/series.md from what the cells of the matrix gave."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from series.suites import Cell, Suite

PACKAGES = {
    "munge": "MUNGE",
    "postgresql": "PostgreSQL",
    "mpich": "MPICH",
    "openmpi-bin": "Open MPI",
}
"""What a root has beside Slurm, and how it is called."""

NAMED = 12
"""More failed tests of one cell are only counted."""

HEAD = """# Series of Slurm

`make test-series` writes this page: the tests of `tests/cluster` on each series, in roots of
Debian's suites with their own Slurm, MPI, MUNGE and PostgreSQL. A plain cell runs the whole suite.
Any other runs one job of every kind with every end that is not a time limit, and compares it with
[lives.md](lives.md), which Slurm 22.05 wrote.
"""


@dataclass(frozen=True)
class Result:
    """What a cell gave."""

    suite: Suite
    cell: Cell
    passed: int
    failed: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    """Tests and why."""
    at: str


def read(suite: Suite, cell: Cell, directory: Path) -> Result | None:
    """Return the result that pytest wrote into the files of a directory, if it did."""
    files = sorted(directory.glob("*.xml"))
    if not files:
        return None
    cases = [case for file in files for case in ET.parse(file).getroot().iter("testcase")]
    failed = [_name(case) for case in cases if _has(case, "failure") or _has(case, "error")]
    skipped = [
        (_name(case), found.get("message", ""))
        for case in cases
        for found in case.findall("skipped")
    ]
    at = datetime.fromtimestamp(files[0].stat().st_mtime, UTC).strftime("%Y-%m-%d")
    passed = len(cases) - len(failed) - len(skipped)
    return Result(suite, cell, passed, tuple(failed), tuple(skipped), at)


def _name(case: ET.Element) -> str:
    module = (case.get("classname") or "").rsplit(".", 1)[-1]
    return f"{module}::{case.get('name')}"


def _has(case: ET.Element, what: str) -> bool:
    return case.find(what) is not None


def versions(root: Path) -> dict[str, str]:
    """Return the versions of what a root has, Slurm's first."""
    names = ["slurmd", *PACKAGES]
    argv = ["chroot", str(root), "dpkg-query", "--show", "--showformat=${Package} ${Version}\\n"]
    shown = subprocess.run([*argv, *names], check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(line.split() for line in shown.splitlines())


def render(results: Sequence[Result], known: dict[str, dict[str, str]]) -> str:
    """Return the page."""
    return "\n".join([*_head(known), *_table(results), *_notes(results)]) + "\n"


def _head(known: dict[str, dict[str, str]]) -> Iterator[str]:
    yield HEAD
    yield f"| suite | Slurm | {' | '.join(PACKAGES.values())} |"
    yield f"| --- | --- |{' --- |' * len(PACKAGES)}"
    for suite, packages in known.items():
        row = [packages["slurmd"], *(packages.get(name, "-") for name in PACKAGES)]
        yield f"| {suite} | {' | '.join(row)} |"
    yield ""


def _table(results: Sequence[Result]) -> Iterator[str]:
    yield "| Slurm | cell | passed | failed | skipped | on |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for each in results:
        counts = f"{each.passed} | {len(each.failed)} | {len(each.skipped)}"
        yield f"| {each.suite.slurm} | {each.cell.name} | {counts} | {each.at} |"
    yield ""


def _notes(results: Sequence[Result]) -> Iterator[str]:
    yield "## What failed"
    yield ""
    for each in results:
        names = sorted(set(each.failed))
        for name in names if len(names) <= NAMED else []:
            yield f"- {each.suite.slurm}, {each.cell.name}: `{name}`"
        if len(names) > NAMED:
            yield f"- {each.suite.slurm}, {each.cell.name}: {len(names)} tests"
    if not any(each.failed for each in results):
        yield "Nothing."
    yield ""
    yield "## What was skipped"
    yield ""
    why: dict[str, set[str]] = {}
    for each in results:
        for name, reason in each.skipped:
            module = name.split("::")[0]
            why.setdefault(f"`{module}`: {reason}", set()).add(each.suite.slurm)
    for reason, series in sorted(why.items()):
        yield f"- {', '.join(sorted(series))}: {reason}"
    if not why:
        yield "Nothing."

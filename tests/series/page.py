"""Writes docs/measurements/series.md from what the cells of the matrix gave.

What each gave last is kept beside the page, in series.json: a run of some leaves the others' rows.
"""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from series.suites import SUITES, Cell, Suite

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

    suite: str
    cell: str
    passed: int
    failed: int
    skipped: int
    failures: tuple[str, ...]
    """The tests that failed, each once."""
    reasons: tuple[str, ...]
    """Modules with tests that were skipped, and why, each once."""
    at: str
    """The day."""

    @property
    def key(self) -> tuple[str, str]:
        """Whose it is."""
        return (self.suite, self.cell)


Versions = Mapping[str, Mapping[str, str]]
"""Of each suite the versions of what its root has."""


@dataclass(frozen=True)
class Kept:
    """What the last runs gave."""

    versions: Versions = field(default_factory=dict)
    results: tuple[Result, ...] = ()


def read(suite: Suite, cell: Cell, directory: Path) -> Result | None:
    """Return the result that pytest wrote into the files of a directory, if it did."""
    files = sorted(directory.glob("*.xml"))
    if not files:
        return None
    cases = [case for file in files for case in ET.parse(file).getroot().iter("testcase")]
    failed = [_name(case) for case in cases if _has(case, "failure") or _has(case, "error")]
    skipped = [
        f"`{_name(case).split('::')[0]}`: {found.get('message', '')}"
        for case in cases
        for found in case.findall("skipped")
    ]
    return Result(
        suite=suite.name,
        cell=cell.name,
        passed=len(cases) - len(failed) - len(skipped),
        failed=len(failed),
        skipped=len(skipped),
        failures=tuple(sorted(set(failed))),
        reasons=tuple(sorted(set(skipped))),
        at=datetime.fromtimestamp(files[0].stat().st_mtime, UTC).strftime("%Y-%m-%d"),
    )


def load(text: str) -> Kept:
    """Return what ``dump`` made."""
    read_back = json.loads(text)
    results = [
        Result(**{**one, "failures": tuple(one["failures"]), "reasons": tuple(one["reasons"])})
        for one in read_back["results"]
    ]
    return Kept(read_back["versions"], tuple(results))


def dump(kept: Kept) -> str:
    """Return what is kept as text, a result a line, so that two runs' changes can be merged."""
    versions = json.dumps(kept.versions, indent=1)
    results = ",\n".join(json.dumps(asdict(result)) for result in kept.results)
    return f'{{"versions": {versions},\n"results": [\n{results}\n]}}\n'


def renewed(
    kept: Kept, versions: Versions, found: Sequence[Result], ran: Collection[tuple[str, str]]
) -> Kept:
    """Return what is to be kept now, of the cells that there are, in their order.

    A cell that was run just now (``ran``) has what was found, or nothing. Another has what was
    kept, unless files of a later day were found: they may be of a few chosen tests of that day.
    """
    results = {result.key: result for result in kept.results if result.key not in ran}
    for result in found:
        known = results.get(result.key)
        if known is None or known.at < result.at:
            results[result.key] = result
    keys = [(suite.name, cell.name) for suite in SUITES for cell in suite.cells()]
    return Kept(
        {**kept.versions, **versions}, tuple(results[key] for key in keys if key in results)
    )


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


def render(kept: Kept) -> str:
    """Return the page."""
    return "\n".join([*_head(kept.versions), *_table(kept.results), *_notes(kept.results)]) + "\n"


def _series(result: Result) -> str:
    return next(suite.slurm for suite in SUITES if suite.name == result.suite)


def _head(known: Versions) -> Iterator[str]:
    yield HEAD
    yield f"| suite | Slurm | {' | '.join(PACKAGES.values())} |"
    yield f"| --- | --- |{' --- |' * len(PACKAGES)}"
    for suite in SUITES:
        if packages := known.get(suite.name):
            row = [packages["slurmd"], *(packages.get(name, "-") for name in PACKAGES)]
            yield f"| {suite.name} | {' | '.join(row)} |"
    yield ""


def _table(results: Sequence[Result]) -> Iterator[str]:
    yield "| Slurm | cell | passed | failed | skipped | on |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for each in results:
        counts = f"{each.passed} | {each.failed} | {each.skipped}"
        yield f"| {_series(each)} | {each.cell} | {counts} | {each.at} |"
    yield ""


def _notes(results: Sequence[Result]) -> Iterator[str]:
    yield "## What failed"
    yield ""
    for each in results:
        names = each.failures
        for name in names if len(names) <= NAMED else []:
            yield f"- {_series(each)}, {each.cell}: `{name}`"
        if len(names) > NAMED:
            yield f"- {_series(each)}, {each.cell}: {len(names)} tests"
    if not any(each.failed for each in results):
        yield "Nothing."
    yield ""
    yield "## What was skipped"
    yield ""
    why: dict[str, set[str]] = {}
    for each in results:
        for reason in each.reasons:
            why.setdefault(reason, set()).add(_series(each))
    for reason, series in sorted(why.items()):
        yield f"- {', '.join(sorted(series))}: {reason}"
    if not why:
        yield "Nothing."

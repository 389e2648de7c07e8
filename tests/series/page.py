"""Writes docs/measurements/series.md from what the cells of the matrix gave.

What each gave last is kept beside the page, in series.json: a run of some leaves the others' rows.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

from series.functions import of_cell
from series.suites import SUITES, Cell, Suite

PACKAGES = {
    "Slurm": "slurmd",
    "MUNGE": "munge",
    "PostgreSQL": "postgresql-[0-9]*",
    "MariaDB": "mariadb-server-core",
    "MPICH": "mpich",
    "Open MPI": "openmpi-bin",
}
"""What a root has, and whose version tells which: a name, or dpkg-query's pattern of one."""

VERSIONS = "packages.json"
"""Beside what pytest wrote of a cell: the versions with which it ran."""

LAG = 17
"""As many test functions a cell may lack before a unit test fails.

A cell takes minutes and a root, so that not every commit that adds a test can run the matrix; that
many tests ran on one series alone is what nobody should believe of this page. A date is no
limit: a tree that nobody changed stays green.
"""

NAMED = 12
"""More failed tests of one cell are only counted."""

HEAD = """# Series of Slurm

`make test-series` writes this page: the tests of `tests/cluster` on each series, in roots of
Debian's suites with their own Slurm, MPI, MUNGE, MariaDB and PostgreSQL. A plain cell runs the
whole suite. Any other runs one job of every kind with every end that is not a time limit, and
compares it with [lives.md](lives.md), which Slurm 22.05 wrote.
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
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of what ``PACKAGES`` has, with which it ran; empty where that was not recorded."""
    tests: tuple[str, ...] = ()
    """The test functions that it had, those skipped included; empty where that was not recorded."""
    alone: tuple[str, ...] = ()
    """The tests that failed beside others, and passed when they were run again without them."""

    @property
    def key(self) -> tuple[str, str]:
        """Whose it is."""
        return (self.suite, self.cell)


@dataclass(frozen=True)
class Kept:
    """What the last runs gave."""

    results: tuple[Result, ...] = ()
    tests: tuple[str, ...] = ()
    """The test functions that there were when the page was written."""


def read(suite: Suite, cell: Cell, directory: Path) -> Result | None:
    """Return the result that pytest wrote into the files of a directory, if it did."""
    files = sorted(directory.glob("*.xml"))
    versions = directory / VERSIONS
    if not files:
        return None
    by_name: dict[str, list[ET.Element]] = {}
    failed_once: set[str] = set()
    for file in sorted(files, key=lambda file: file.stat().st_mtime):
        of_file: dict[str, list[ET.Element]] = {}
        for case in ET.parse(file).getroot().iter("testcase"):
            of_file.setdefault(_name(case), []).append(case)
        failed_once.update(name for name, its in of_file.items() if any(map(_failed, its)))
        # What was run again counts as it came out then.
        by_name.update(of_file)
    cases = [case for its in by_name.values() for case in its]
    failed = [_name(case) for case in cases if _failed(case)]
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
        versions=json.loads(versions.read_text(encoding="utf-8")) if versions.exists() else {},
        tests=tuple(sorted({name.split("[")[0] for name in by_name})),
        alone=tuple(sorted(failed_once - set(failed))),
    )


def load(text: str) -> Kept:
    """Return what ``dump`` made."""
    read_back = json.loads(text)
    lists = {key: tuple(tests) for key, tests in read_back["tests"].items()}
    results = tuple(
        Result(
            **{
                **one,
                "failures": tuple(one["failures"]),
                "reasons": tuple(one["reasons"]),
                "tests": lists[one["tests"]],
                "alone": tuple(one["alone"]),
            }
        )
        for one in read_back["results"]
    )
    return Kept(results, lists[read_back["suite"]])


def dump(kept: Kept) -> str:
    """Return what is kept as text, a result a line, so that two runs' changes can be merged.

    Most cells have had the same tests: a list is kept once, by a digest of it.
    """
    lists = {_digest(tests): tests for tests in (kept.tests, *(one.tests for one in kept.results))}
    tests = json.dumps(dict(sorted(lists.items())), indent=1)
    results = ",\n".join(
        json.dumps({**asdict(result), "tests": _digest(result.tests)}) for result in kept.results
    )
    suite = json.dumps(_digest(kept.tests))
    return f'{{"suite": {suite},\n"tests": {tests},\n"results": [\n{results}\n]}}\n'


def _digest(tests: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(tests).encode()).hexdigest()[:12]


def renewed(
    kept: Kept, found: Sequence[Result], ran: Collection[tuple[str, str]], tests: Sequence[str]
) -> Kept:
    """Return what is to be kept now, of the cells that there are, in their order.

    A cell that was run just now (``ran``) has what was found, or nothing. Another has what was
    kept, unless files of a later day were found: they may be of a few chosen tests of that day.
    ``tests``: the functions that there are.
    """
    results = {result.key: result for result in kept.results if result.key not in ran}
    for result in found:
        known = results.get(result.key)
        if known is None or known.at < result.at:
            results[result.key] = result
    keys = [(suite.name, cell.name) for suite in SUITES for cell in suite.cells()]
    return Kept(tuple(results[key] for key in keys if key in results), tuple(tests))


def lacking(kept: Kept, suite_tests: Sequence[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return which of the suite's tests each cell has not had, of the cells that lack any.

    A cell that has no result lacks all that it would run, and so does one of which it is not known.
    """
    had = {result.key: set(result.tests) for result in kept.results}
    cells = [(suite, cell) for suite in SUITES for cell in suite.cells()]
    lacks = {
        (suite.name, cell.name): tuple(
            test
            for test in of_cell(cell, suite_tests)
            if test not in had.get((suite.name, cell.name), ())
        )
        for suite, cell in cells
    }
    return {key: tests for key, tests in lacks.items() if tests}


def _name(case: ET.Element) -> str:
    module = (case.get("classname") or "").rsplit(".", 1)[-1]
    return f"{module}::{case.get('name')}"


def _failed(case: ET.Element) -> bool:
    return any(case.find(what) is not None for what in ("failure", "error"))


def versions(root: Path) -> dict[str, str]:
    """Return the versions of what a root has, as ``PACKAGES`` calls it."""
    argv = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show"]
    argv += ["--showformat=${Package} ${Version}\\n", *PACKAGES.values()]
    shown = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout
    # A package that another one only names has no version.
    lines = (line.split() for line in shown.splitlines())
    found = {name: version[0] for name, *version in lines if version}
    return {
        called: next(version for name, version in found.items() if fnmatch(name, package))
        for called, package in PACKAGES.items()
    }


def since(before: Result | None, now: Mapping[str, str]) -> str:
    """Return which versions are others than those that a cell is kept with, to be put behind it."""
    if before is None:
        return ""
    changed = [
        f"{called} {before.versions[called]} is now {version}"
        for called, version in now.items()
        if before.versions.get(called, version) != version
    ]
    return f"; since {before.at}: {', '.join(changed)}" if changed else ""


def render(kept: Kept) -> str:
    """Return the page."""
    parts = (_head(kept.results), _table(kept.results), _notes(kept.results), _not_run(kept))
    return "\n".join(line for part in parts for line in part) + "\n"


def _series(result: Result) -> str:
    return _slurm_of(result.suite)


def _slurm_of(suite: str) -> str:
    return next(each.slurm for each in SUITES if each.name == suite)


def _head(results: Sequence[Result]) -> Iterator[str]:
    yield HEAD
    yield f"| suite | {' | '.join(PACKAGES)} | cells |"
    yield f"| --- |{' --- |' * len(PACKAGES)} --- |"
    for suite in SUITES:
        mine = [result for result in results if result.suite == suite.name]
        rows: dict[tuple[str, ...], list[Result]] = {}
        for result in mine:
            row = tuple(result.versions.get(called, "not recorded") for called in PACKAGES)
            rows.setdefault(row, []).append(result)
        for row, of_row in rows.items():
            whose = "all" if len(rows) == 1 else "; ".join(result.cell for result in of_row)
            yield f"| {suite.name} | {' | '.join(row)} | {whose} |"
    yield ""


def _table(results: Sequence[Result]) -> Iterator[str]:
    yield "| Slurm | cell | passed | failed | skipped | on |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for each in results:
        counts = f"{each.passed} | {each.failed} | {each.skipped}"
        yield f"| {_series(each)} | {each.cell} | {counts} | {each.at} |"
    yield ""


def _alone(results: Sequence[Result]) -> Iterator[str]:
    if not any(each.alone for each in results):
        return
    yield ""
    yield "## What passed only when it was run again"
    yield ""
    yield "These failed beside other clusters, and passed alone (`SERIES_ARGS=--again`):"
    yield ""
    for each in results:
        yield from (f"- {_series(each)}, {each.cell}: `{name}`" for name in each.alone)


def _not_run(kept: Kept) -> Iterator[str]:
    yield ""
    yield "## What was not run"
    yield ""
    recorded = {result.key for result in kept.results if result.tests}
    lacks = lacking(kept, kept.tests)
    without: dict[str, list[str]] = {}
    for (suite, cell), tests in lacks.items():
        where = f"{_slurm_of(suite)}, {cell}"
        if (suite, cell) not in recorded:
            yield f"- {where}: not known, it ran before that was recorded, or never"
            continue
        for test in tests:
            without.setdefault(test, []).append(where)
    for test, places in without.items():
        yield f"- `{test}`: {'; '.join(places)}"
    if not lacks:
        yield f"Nothing of the {len(kept.tests)} test functions that there were."
    yield ""
    yield (
        f"Tests that were written since are in none of these numbers. From the {LAG + 1}th on that"
    )
    yield "a cell lacks, `tests/unit_series` fails."


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
    yield from _alone(results)
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

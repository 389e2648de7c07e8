"""What the runners of `make test` wrote down: each test, how long it took, and how it ended.

    python3 tests/results.py slowest DIRECTORY
    python3 tests/results.py page DIRECTORY FILE

pytest writes NAME.xml, tests/timed NAME.log, and the Makefile NAME.minutes for what is no test.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

SHOWN = 10
"""How many tests are called the slowest."""

_LINE = re.compile(r"^test (\S+)(?: - .*)? \.\.\. (ok|FAILED|ignored)\b.*?(?:<([\d.]+)s>)?$")
"""A line of the Rust test harness."""


@dataclass(frozen=True)
class Result:
    """One test."""

    part: str
    """The file that tells of it, without its suffix."""
    name: str
    outcome: str
    """``passed``, ``failed`` or ``skipped``."""
    seconds: float
    """What it waited for first, such as its cluster, included."""


def results(directory: Path) -> list[Result]:
    """Return all tests of a directory."""
    found = [test for path in sorted(directory.glob("*.log")) for test in _rust(path)]
    found += [test for path in sorted(directory.glob("*.xml")) for test in _pytest(path)]
    return found


def slowest(found: list[Result]) -> list[str]:
    """Return the lines that tell of the slowest tests."""
    first = sorted(found, key=lambda test: test.seconds, reverse=True)[:SHOWN]
    told = [f"{test.seconds:7.1f} s  {test.part}: {test.name}" for test in first]
    return [f"the {len(first)} slowest of {len(found)} tests:", *told]


def page(found: list[Result], date: str, commit: str) -> str:
    """Return the page of the last complete run."""
    parts = dict.fromkeys(test.part for test in found)
    rows = [_row(part, [test for test in found if test.part == part]) for part in parts]
    return "\n".join(
        [
            "# The last complete run of the tests",
            "",
            f"`make test-nightly` wrote it for {commit} of {date}; {os.cpu_count()} processors.",
            "Minutes are the sum over a part's tests, of which several run at once.",
            "",
            "| part | passed | failed | skipped | minutes | slowest test |",
            "| --- | ---: | ---: | ---: | ---: | --- |",
            *rows,
            _row("all", found),
            "",
        ]
    )


def _row(part: str, tests: list[Result]) -> str:
    ends = Counter(test.outcome for test in tests)
    counts = " | ".join(str(ends[outcome]) for outcome in ("passed", "failed", "skipped"))
    minutes = sum(test.seconds for test in tests) / 60
    last = max(tests, key=lambda test: test.seconds)
    name = last.name.replace("|", "\\|")
    return f"| {part} | {counts} | {minutes:.1f} | `{name}`, {last.seconds / 60:.1f} |"


def _rust(path: Path) -> Iterator[Result]:
    outcomes = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
    for line in path.read_text(encoding="utf-8").splitlines():
        match = _LINE.match(line)
        if match is not None:
            name, outcome, seconds = match.groups()
            yield Result(path.stem, name, outcomes[outcome], float(seconds or 0))


def _pytest(path: Path) -> Iterator[Result]:
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        failed = kinds & {"failure", "error"}
        outcome = "failed" if failed else "skipped" if "skipped" in kinds else "passed"
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        yield Result(path.stem, name, outcome, float(case.get("time", 0)))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def main(argv: list[str]) -> int:
    """Do what the command line asks for, and return the exit status."""
    match argv:
        case ["slowest", directory]:
            print("\n".join(slowest(results(Path(directory)))))
        case ["page", directory, file]:
            date, commit = _git("log", "-1", "--format=%cs %h").split()
            text = page(results(Path(directory)), date, commit)
            Path(file).write_text(text, encoding="utf-8")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

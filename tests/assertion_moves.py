"""Where each assertion of the cluster tests went when the service got tests of its own.

    python3 tests/assertion_moves.py            # checks the table against today's tree

docs/decisions/0046-assertions.tsv has a row for each assertion that no longer stands in the test in
which it stood at BASE: module, test, assertion, and the test that has it now, or why it stays.
"""

from __future__ import annotations

import ast
import csv
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
TABLE = TREE / "docs/decisions/0046-assertions.tsv"
CLUSTER = "tests/cluster"
BASE = "c7153e18"
"""The commit before the change."""

_AWAITED = frozenset({"await_state", "await_true", "await_value", "counted", "counted_run"})
"""What fails a test by itself."""
_PLACE = re.compile(r"(?P<file>[\w./-]+\.(?:rs|py))::(?P<test>\w+)")

Assertions = dict[tuple[str, str], Counter[str]]
"""By module and test, how often each assertion stands there."""


def assertions(sources: dict[str, str]) -> Assertions:
    """Return the assertions of all tests, by the text of each module."""
    found: Assertions = {}
    for module, text in sources.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[module, node.name] = Counter(_of(node))
    return found


def _of(test: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(test):
        if isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and _is_awaited(node)):
            yield " ".join(ast.unparse(node).split())


def _is_awaited(call: ast.Call) -> bool:
    name = call.func
    called = name.id if isinstance(name, ast.Name) else getattr(name, "attr", "")
    return called in _AWAITED or called == "raises"


def missing(before: Assertions, now: Assertions, told: Assertions) -> list[str]:
    """Return the assertions that are neither where they were nor in the table."""
    gone = []
    for (module, test), wanted in before.items():
        left = wanted - now.get((module, test), Counter())
        untold = left - told.get((module, test), Counter())
        gone += [f"{module}::{test}: {assertion}" for assertion in untold.elements()]
    return gone


def not_kept(rows: list[list[str]], now: dict[str, str]) -> list[str]:
    """Return the assertions that the table says stay, and that their module does not have."""
    kept = {module: ast.unparse(ast.parse(text)) for module, text in now.items()}
    lost = []
    for module, test, assertion, place in rows:
        if place.startswith("stays") and assertion not in kept.get(module, ""):
            lost.append(f"{module}::{test}: {assertion}")
    return lost


def nowhere(places: Iterator[str]) -> list[str]:
    """Return the places that the tree does not have."""
    lacking = []
    for place in sorted(set(places)):
        for match in _PLACE.finditer(place):
            file = TREE / match["file"]
            defined = rf"\b(?:fn|def) {match['test']}\b"
            if not file.is_file() or not re.search(defined, file.read_text(encoding="utf-8")):
                lacking.append(match[0])
    return lacking


def _table() -> list[list[str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        _head, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    return rows


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=TREE, check=True, capture_output=True, text=True)
    return done.stdout


def _before() -> dict[str, str]:
    names = _git("ls-tree", "--name-only", BASE, f"{CLUSTER}/").split()
    tests = [name for name in names if Path(name).name.startswith("test_")]
    return {Path(name).stem: _git("show", f"{BASE}:{name}") for name in tests}


def main() -> int:
    """Compare; say what is missing."""
    rows = _table()
    told: Assertions = {}
    for module, test, assertion, _place in rows:
        told.setdefault((module, test), Counter())[assertion] += 1
    paths = sorted((TREE / CLUSTER).glob("test_*.py"))
    now = {path.stem: path.read_text(encoding="utf-8") for path in paths}
    before = assertions(_before())
    gone = missing(before, assertions(now), told)
    lacking = nowhere(row[3] for row in rows)
    for line in gone:
        print(f"not in the table: {line}")
    lost = not_kept(rows, now)
    for line in lost:
        print(f"does not stay: {line}")
    for place in lacking:
        print(f"not in the tree: {place}")
    total = sum(counted.total() for counted in before.values())
    print(f"{total} assertions of {len(before)} tests; {len(rows)} rows")
    return 1 if gone or lacking or lost else 0


if __name__ == "__main__":
    sys.exit(main())

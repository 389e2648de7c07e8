"""docs/never.md names tests and invariants that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from soak.invariants import INVARIANTS

TREE = Path(__file__).resolve().parents[2]
CLAUSES = (
    "a job fails",
    "a job hangs, or waits longer than the deadline",
    "a node drains",
    "a setting stays changed after a job",
    "a variable that the user set is overwritten",
    "a failed run is taken for a fast one",
    "a report is lost",
    "a report is counted twice",
    "a user steers another user's study",
    "a user reads another user's study",
    "a wrong gain is reported",
)
"""What must never happen."""


def rows() -> list[list[str]]:
    text = (TREE / "docs/never.md").read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_promise_has_tests_that_exist() -> None:
    assert {row[0] for row in rows()} >= set(CLAUSES)
    for promise, tests, _ in rows():
        named = re.findall(r"`(\w+\.py)::(\w+)`", tests)
        assert named, f"no test shows that never {promise}"
        for file, function in named:
            path = TREE / "tests/cluster" / file
            assert path.is_file(), f"{promise}: there is no {path}"
            assert function in functions(path), f"{promise}: {file} has no {function}"


def test_the_invariants_are_the_soaks_and_all_are_named() -> None:
    named = [name for row in rows() for name in re.findall(r"`([^`]+)`", row[2])]
    assert set(named) == {one.name for one in INVARIANTS}

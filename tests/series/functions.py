"""The test functions of tests/cluster that a cell runs, as they are written now.

They are read and not collected: what a module imports need not be there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from series.suites import Cell

DIRECTORY = Path(__file__).resolve().parents[1] / "cluster"
LIVES = "test_lives"
"""The module of the cells that do not run the whole suite."""
LEFT_OUT = ("slow", "array")
"""Marks of tests that no cell runs."""


def functions(directory: Path = DIRECTORY) -> tuple[str, ...]:
    """Return the functions of all modules, each ``MODULE::FUNCTION``, in their order."""
    return tuple(
        f"{path.stem}::{name}"
        for path in sorted(directory.glob("test_*.py"))
        for name in _of(path.read_text(encoding="utf-8"))
    )


def of_cell(cell: Cell, suite: Sequence[str]) -> tuple[str, ...]:
    """Return those of the suite's functions that a cell runs."""
    return tuple(each for each in suite if cell.whole or each.startswith(f"{LIVES}::"))


def _of(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    marks = [each.value for each in tree.body if isinstance(each, ast.Assign) and _is_mark(each)]
    if any(_leaves_out(mark) for mark in marks):
        return
    for each in tree.body:
        if not isinstance(each, ast.FunctionDef) or not each.name.startswith("test_"):
            continue
        if not any(_leaves_out(decorator) for decorator in each.decorator_list):
            yield each.name


def _is_mark(each: ast.Assign) -> bool:
    return any(isinstance(name, ast.Name) and name.id == "pytestmark" for name in each.targets)


def _leaves_out(mark: ast.expr) -> bool:
    """Whether a mark, or one of a list, is ``pytest.mark.slow`` or the like; not a parameter's."""
    if isinstance(mark, ast.List | ast.Tuple):
        return any(_leaves_out(each) for each in mark.elts)
    return isinstance(mark, ast.Attribute) and mark.attr in LEFT_OUT

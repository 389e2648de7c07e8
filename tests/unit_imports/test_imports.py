"""Which Python imports which: arrows point one way, and nothing imports itself in a circle."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ROOT / "analysis/report"
PACKAGE = ROOT / "analysis/python"
LABORATORY = ROOT / "analysis/laboratory"
TESTS = ROOT / "tests"


def modules(root: Path) -> dict[str, Path]:
    """The modules that are imported with a root in Python's path, by name."""
    found = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        if len(parts) == 1 or (root / parts[0] / "__init__.py").is_file():
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imported(path: Path) -> set[str]:
    """What a module names in its imports, those within functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def graph(root: Path) -> dict[str, set[str]]:
    """Each module of a root with those of the same root that it imports."""
    known = modules(root)
    return {
        name: {each if each in known else each.rpartition(".")[0] for each in imported(path)}
        & known.keys()
        for name, path in known.items()
    }


def packages(root: Path) -> set[str]:
    return {name.partition(".")[0] for name in modules(root)}


def test_the_product_imports_neither_the_laboratory_nor_the_private_cluster() -> None:
    others = packages(LABORATORY) | packages(TESTS)
    assert {"comparison", "guarantees", "devcluster", "demo"} <= others
    paths = modules(PRODUCT)
    assert "io_autotune_report.command" in paths
    for name, path in paths.items():
        used = {each.partition(".")[0] for each in imported(path)}
        assert not used & others, f"{name} imports {used & others}"


def test_what_is_imported_outside_slurm_needs_nothing_else_of_the_tree() -> None:
    others = packages(LABORATORY) | packages(TESTS) | packages(PRODUCT)
    paths = modules(PACKAGE / "io_autotune")
    assert "study" in paths
    for name, path in paths.items():
        used = {each.partition(".")[0] for each in imported(path)}
        assert not used & others, f"{name} imports {used & others}"


def test_the_product_loads_then_analyses_then_renders() -> None:
    stages = ["load", "analyse", "render"]
    for name, used in graph(PRODUCT).items():
        stage = name.split(".")[1:2]
        if stage and stage[0] in stages:
            allowed = {"load": ["load"], "analyse": ["load", "analyse"], "render": ["render"]}
            for each in used:
                other = each.split(".")[1]
                assert other not in stages or other in allowed[stage[0]], f"{name} imports {each}"


def test_nothing_imports_itself_in_a_circle() -> None:
    for root in (PRODUCT, PACKAGE, LABORATORY, TESTS):
        drawn = graph(root)
        assert any(drawn.values()), f"nothing is seen in {root}"
        # A circle raises CycleError, which names its modules.
        TopologicalSorter(drawn).prepare()

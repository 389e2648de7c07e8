"""Crates depend in one direction, the engine's rooms too, and no two modules need each other.

A module may use its own children; a test may use what it likes. Tables of settings stand beside
what they set, and are the lowest layer of the engine all the same: they are plain data.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "tuner-service"

# A crate may depend on those before it.
CRATES = [
    "configuration",
    "console",
    "fuzzing",
    "model",
    "search",
    "baselines",
    "engine",
    "online",
    "test-certificates",
    "protocol",
    "catalogue",
    "optimize",
    "store",
    "test-database",
    "test-trace",
    "collector",
    "node",
    "service",
    "cli",
]
# These pass on what others decide: no engine below them.
WITHOUT_ENGINE = ["protocol", "catalogue", "store", "node", "collector"]
# A room may use those before it.
ROOMS = {
    "search": [
        *("checks", "math", "settings", "history", "surrogate", "regret", "method"),
        *("neighbourhood", "random", "replay", "acquisition", "latin_hypercube"),
    ],
    "engine": ["search", "settings", "guards", "settled", "study"],
}
# Programs: what is in the crate's root is the entry, which uses all modules and is used by none.
ENTRIES = ["collector", "node", "service"]

Graph = dict[str, set[str]]


def production(text: str) -> str:
    """Return a source file without comments, and without the tests at its end."""
    text = re.sub(r"//.*", "", text)
    return text.split("#[cfg(test)]\nmod tests {")[0]


def modules(source: Path) -> dict[str, str]:
    """Return the text of each module under a crate's `src`, by its path in the crate; no tests."""
    found = {}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        if parts[-1] in ("main", "lib") or parts[-1] == "testing" or "tests" in parts:
            continue
        if parts[-1] == "mod":
            parts = parts[:-1]
        found["::".join(parts)] = production(file.read_text(encoding="utf-8"))
    return found


def leaves(tree: str) -> Iterator[str]:
    """Yield the paths of a `use` tree: `a::{b, c::d}` has `a::b` and `a::c::d`."""
    prefix, brace, rest = tree.partition("{")
    if not brace:
        yield tree.strip().split(" as ")[0]
        return
    depth, start = 0, 0
    inner = rest[: rest.rindex("}")] + ","
    for place, letter in enumerate(inner):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if item := inner[start:place].strip():
                for leaf in leaves(item):
                    yield prefix.strip() + leaf
            start = place + 1


def mentioned(name: str, text: str) -> Iterator[list[str]]:
    """Yield the paths from the crate's root that a module mentions."""
    parent = name.split("::")[:-1]
    for tree in re.findall(r"^ *(?:pub(?:\(\w+\))? )?use ([^;]+);", text, re.MULTILINE):
        for leaf in leaves(" ".join(tree.split())):
            head, *path = leaf.split("::")
            if head == "crate":
                yield path
            elif head == "super":
                yield parent + path
    for path in re.findall(r"(?<!use )\bcrate::((?:\w+::)*\w+)", text):
        yield path.split("::")
    for path in re.findall(r"(?<!use )(?<!::)\bsuper::((?:\w+::)*\w+)", text):
        yield parent + path.split("::")


def uses(texts: dict[str, str]) -> Graph:
    """Return which modules each module uses, apart from those that it is made of."""
    graph: Graph = {}
    for name, text in texts.items():
        graph[name] = set()
        for mention in mentioned(name, text):
            path = mention
            while path and "::".join(path) not in texts:
                path = path[:-1]
            other = "::".join(path)
            if other and other != name and not other.startswith(f"{name}::"):
                graph[name].add(other)
    return graph


def folded(graph: Graph, fold: dict[str, str]) -> Graph:
    """Return the graph of what modules are folded into."""
    result: Graph = {group: set() for group in fold.values()}
    for name, others in graph.items():
        result[fold[name]] |= {fold[other] for other in others} - {fold[name]}
    return result


def circle(graph: Graph) -> list[str]:
    """Return modules that need each other in a row, or nothing."""
    done: set[str] = set()

    def walk(name: str, way: list[str]) -> list[str]:
        if name in way:
            return way[way.index(name) :]
        if name not in done:
            for other in sorted(graph[name]):
                if found := walk(other, [*way, name]):
                    return found
            done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := walk(name, []))), [])


def room(name: str) -> str:
    """Return the engine's room of a module, its tables of settings being one."""
    parts = name.split("::")
    return "settings" if parts[-1] == "settings" else parts[0]


@pytest.mark.parametrize("crate", CRATES)
def test_no_modules_of_a_crate_need_each_other(crate: str) -> None:
    texts = modules(SOURCES / crate / "src")
    graph = uses(texts)
    is_small = crate == "console" or crate.startswith("test-")
    assert texts or is_small, "a small crate may be one file"
    assert not circle(graph)
    fold = {name: room(name) if crate in ROOMS else name.split("::")[0] for name in graph}
    assert not circle(folded(graph, fold))


@pytest.mark.parametrize(("crate", "order"), ROOMS.items())
def test_rooms_use_those_before_them(crate: str, order: list[str]) -> None:
    graph = uses(modules(SOURCES / crate / "src"))
    rooms = folded(graph, {name: room(name) for name in graph})
    assert set(rooms) == set(order)
    upwards = [
        (one, other)
        for one, others in rooms.items()
        for other in others
        if order.index(one) <= order.index(other)
    ]
    assert not upwards


@pytest.mark.parametrize("crate", ENTRIES)
def test_no_module_uses_the_entry(crate: str) -> None:
    texts = modules(SOURCES / crate / "src")
    upwards = [
        (name, "::".join(path))
        for name, text in texts.items()
        for path in mentioned(name, text)
        if path[0] not in texts
    ]
    assert not upwards


def dependencies(crate: str) -> set[str]:
    """Return the crates of ours that a crate is built with."""
    manifest = tomllib.loads((SOURCES / crate / "Cargo.toml").read_text(encoding="utf-8"))
    ours = "io-autotune-"
    return {
        name.removeprefix(ours)
        for name in manifest.get("dependencies", {})
        if name.startswith(ours)
    }


def stated(crate: str) -> set[str]:
    """Return the crates that docs/architecture.md lets a crate depend on."""
    text = (SOURCES.parent / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(rf"(?m)^\| `tuner-service/{crate}` \|.*\| ([a-z, ]*)\|$", text)
    assert len(rows) == 1, f"docs/architecture.md has {len(rows)} rows of {crate}"
    return {name.strip() for name in rows[0].split(",") if name.strip()}


def test_crates_depend_on_those_before_them() -> None:
    assert {path.parent.name for path in SOURCES.glob("*/Cargo.toml")} == set(CRATES)
    below: dict[str, set[str]] = {}
    for place, crate in enumerate(CRATES):
        direct = dependencies(crate)
        assert direct <= set(CRATES[:place]), crate
        below[crate] = direct.union(*(below[one] for one in direct))
        assert direct == stated(crate), f"{crate}: docs/architecture.md says otherwise"
    for crate in WITHOUT_ENGINE:
        assert not below[crate] & {"search", "engine"}, crate


def test_a_circle_is_found() -> None:
    texts = {
        "a": "use crate::{b::Thing, c};",
        "b": "fn one() { super::c::two() }",
        "c": "use crate::{\n    other,\n    a::{One, Two},\n};",
        "d": "use crate::a;",
    }
    assert uses(texts) == {"a": {"b", "c"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert circle(uses(texts)) == ["a", "b", "c"]
    assert not circle(uses(texts | {"c": "use crate::other;"}))

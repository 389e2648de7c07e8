"""What keeps a tree from being released."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from release_check import Tree, problems

READY = Tree(
    cargo='[workspace.package]\nversion = "1.2.0"\n',
    lock=(
        '[[package]]\nname = "ours"\nversion = "1.2.0"\n'
        '[[package]]\nname = "another"\nversion = "7.0.0"\nsource = "registry"\n'
    ),
    packages={"report/pyproject.toml": '[project]\nversion = "1.2.0"\n'},
    changelog=(
        "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-12-01\n\n- New.\n\n## 1.1.0 - 2026-11-01\n"
    ),
    tags={"1.1.0": "aaa"},
    head="bbb",
    migrations=["A\tmigrations/0012_more.sql"],
)


def test_a_tree_that_is_ready_has_no_problem() -> None:
    assert problems("1.2.0", READY) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cargo": '[workspace.package]\nversion = "1.1.0"\n'}, "Cargo.toml says 1.1.0"),
        ({"lock": READY.lock.replace('"1.2.0"', '"1.1.0"')}, "Cargo.lock says 1.1.0"),
        ({"packages": {"p.toml": '[project]\nversion = "1.1.0"\n'}}, "p.toml says 1.1.0"),
        ({"changelog": READY.changelog.replace("## Unreleased\n", "")}, "does not begin"),
        (
            {"changelog": READY.changelog.replace("Unreleased\n", "Unreleased\n\n- Later.\n")},
            "move what is under Unreleased",
        ),
        ({"changelog": READY.changelog.replace("2026-12-01", "soon")}, "a heading is no"),
        ({"changelog": READY.changelog.replace("1.2.0", "1.3.0")}, "the latest release is 1.3.0"),
        ({"changelog": READY.changelog.replace("1.1.0", "1.2.1")}, "not in order"),
        ({"changelog": "## Unreleased\n"}, "the latest release is none"),
        ({"status": [" M Makefile"]}, "not clean: commit, or revert:  M Makefile"),
        ({"tags": {"1.10.0": "aaa"}}, "1.10.0 was released already"),
        ({"tags": {"1.2.0": "aaa"}}, "the tag 1.2.0 is at another commit"),
        ({"migrations": ["M\tmigrations/0001_first.sql"]}, "changed: migrations/0001_first.sql"),
    ],
)
def test_each_problem_is_said(change: dict[str, Any], said: str) -> None:
    (problem,) = problems("1.2.0", dataclasses.replace(READY, **change))
    assert said in problem


def test_what_is_no_version_is_refused() -> None:
    assert "is no version" in problems("", READY)[0]
    assert "is no version" in problems("1.2", READY)[0]


def test_a_tag_that_is_there_may_be_checked_again() -> None:
    tagged = dataclasses.replace(READY, tags={"1.1.0": "aaa", "1.2.0": "bbb"})
    assert problems("1.2.0", tagged) == []

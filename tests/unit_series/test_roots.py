"""What a root has is what the host has: one list of packages, and all that the build makes."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest
from series import __main__ as program
from series import page, roots
from series.suites import GROUPS, SUITES, Suite

MAKEFILE = (roots.TREE / "Makefile").read_text(encoding="utf-8")


def _recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)
    assert found is not None, target
    return found[1]


@pytest.mark.parametrize("target", ["test-cluster", "test-slow", "test-array"])
def test_the_host_and_the_roots_install_the_same_group(target: str) -> None:
    installed = re.findall(r"deploy/install-deps (.+)", _recipe(target))
    assert installed == ["cluster-test"]
    assert "cluster-test" in GROUPS


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_root_has_what_cluster_tests_call(suite: Suite) -> None:
    packages = set(roots.packages(suite))
    # mkfs.ext4, losetup, pgrep, setpriv, script: a host has them without being asked.
    assert {"e2fsprogs", "mount", "procps", "util-linux", "bsdutils"} <= packages
    assert {"slurmctld", "slurmdbd", "mariadb-server-core", "strace"} <= packages


def test_every_program_that_the_host_builds_is_in_a_root() -> None:
    recipes = _recipe("build") + _recipe("test-tools")
    made = re.findall(r"^\tinstall .*?target/release.*\s(\S+)$", recipes, flags=re.MULTILINE)
    places = [place.replace("$(STAGE)", "build/stage").rstrip("/") for place in made]
    assert len(places) >= 3
    for place in places:
        staged = any(f"{place}/".startswith(f"build/{part}/") for part in program.STAGED)
        assert staged, f"{place} is not among {program.STAGED}: no root's cluster would have it"


def test_the_newest_two_series_run_each_night() -> None:
    """What Debian's packages of a day break is seen the next morning, in no commit's tests."""
    nightly = (roots.TREE / ".github/workflows/nightly.yml").read_text(encoding="utf-8")
    job = nightly.partition("\n  series:\n")[2]
    newest = sorted(SUITES, key=lambda suite: [int(part) for part in suite.slurm.split(".")])[-2:]
    assert f"suite: [{', '.join(suite.name for suite in newest)}]" in job
    assert 'make test-series SERIES_ARGS="--suite ${{ matrix.suite }}"' in job


def test_a_suite_that_has_gone_on_to_another_series_is_not_taken_for_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pull of Debian's packages gives testing another Slurm, whose results have no row."""
    suite = SUITES[-1]
    installed = [f"{suite.slurm}.9-1", f"{suite.slurm}1.0-1"]
    monkeypatch.setattr(roots, "ensure", lambda _suite, directory: directory / suite.name)
    monkeypatch.setattr(page, "versions", lambda _root: {"Slurm": installed.pop(0)})
    options = argparse.Namespace(directory=tmp_path, fresh=False)
    assert program._root(suite, options) == tmp_path / suite.name
    with pytest.raises(ValueError, match=re.escape(f"{suite.name} has Slurm {installed[0]} now")):
        program._root(suite, options)

"""The command that stripes a user's directory, with a stand-in that keeps what lfs is told."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

COMMAND = Path(__file__).resolve().parents[2] / "deploy/contrib/commands/lustre-stripe"

LFS = """#!/bin/bash
# A directory's own layout is in the file "layouts"; each call that changes one is in "calls".
cd "$(dirname "$0")" || exit 1
directory=${!#}
case "$1" in
getstripe)
    [[ "$*" = "getstripe --directory --raw --stripe-count $directory" ]] || exit 64
    if [[ -e layout ]]; then cat layout; else echo "$directory has no stripe info"; fi
    ;;
setstripe)
    echo "$*" >>calls
    [[ ! -e broken ]] || exit 1
    if [[ "$2" = --delete ]]; then rm layout; else echo "$3" >layout; fi
    ;;
esac
"""


@dataclass
class Node:
    """A node of a job, with its place and an lfs."""

    place: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, verb: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run the command as the helper does; an empty variable is not set."""
        environment = {
            "PATH": os.environ["PATH"],
            "LFS": str(self.place / "lfs"),
            "IO_AUTOTUNE_DIRECTORY": str(self.place),
            "IO_AUTOTUNE_FIRST_NODE": "yes",
            "IO_AUTOTUNE_DIR": "/lustre/out",
            "STRIPE_COUNT": "8",
            "STRIPE_SIZE": "4M",
            **more,
        }
        given = {name: value for name, value in environment.items() if value}
        return subprocess.run(
            [COMMAND, verb], env=given, check=False, capture_output=True, text=True, timeout=60
        )

    def calls(self) -> list[str]:
        """Return what lfs was told to change."""
        path = self.place / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Return a node on whose directory nothing is set."""
    lfs = tmp_path / "lfs"
    lfs.write_text(LFS, encoding="utf-8")
    lfs.chmod(0o755)
    return Node(tmp_path)


SET = "setstripe --stripe-count 8 --stripe-size 4M /lustre/out"
DELETED = "setstripe --delete /lustre/out"


def test_a_directory_is_striped_for_a_job_and_has_none_of_its_own_again(node: Node) -> None:
    assert node.run("start").returncode == 0
    assert node.calls() == [SET]
    # The job's user may have another working directory, and the job another environment by then.
    assert node.run("stop", IO_AUTOTUNE_DIR="/elsewhere").returncode == 0
    assert node.calls() == [SET, DELETED]
    assert node.run("stop").returncode == 0, "nothing to do is no failure"
    assert node.calls() == [SET, DELETED]


def test_one_node_does_it_for_all(node: Node) -> None:
    for verb in ("start", "stop"):
        assert node.run(verb, IO_AUTOTUNE_FIRST_NODE="no").returncode == 0
    assert not node.calls()


@pytest.mark.parametrize("own", ["4", "-1", "1\n16\n-1", "what is this"])
def test_a_striping_of_its_own_is_left_as_it_is(node: Node, own: str) -> None:
    (node.place / "layout").write_text(f"{own}\n", encoding="utf-8")
    done = node.run("start")
    assert done.returncode == 1
    assert "has a striping of its own" in done.stderr
    assert node.run("stop").returncode == 0
    assert not node.calls()


def test_a_job_that_names_no_directory_is_told_how_to(node: Node) -> None:
    done = node.run("start", IO_AUTOTUNE_DIR="")
    assert done.returncode == 1
    assert "dir=PATH" in done.stderr


def test_what_was_not_undone_is_tried_again(node: Node) -> None:
    node.run("start")
    (node.place / "broken").touch()
    assert node.run("stop").returncode != 0
    (node.place / "broken").unlink()
    assert node.run("stop").returncode == 0
    assert node.calls()[-1] == DELETED
    assert not (node.place / "layout").exists()

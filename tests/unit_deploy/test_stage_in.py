"""The command that copies a job's input to a disk of its node."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

COMMAND = Path(__file__).resolve().parents[2] / "deploy/contrib/commands/stage-in"


@dataclass
class Node:
    """A node of a job that names a directory."""

    named: Path
    place: Path

    def run(self, verb: str, most: str = "4", **more: str) -> subprocess.CompletedProcess[str]:
        """Run the command as the helper does."""
        environment = {
            "PATH": os.environ["PATH"],
            "IO_AUTOTUNE_DIRECTORY": str(self.place),
            "IO_AUTOTUNE_DIR": str(self.named),
            **more,
        }
        argv = [str(COMMAND), verb, most]
        return subprocess.run(
            argv, env=environment, check=False, capture_output=True, text=True, timeout=60
        )


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Return a node of a job whose input is two files and a link."""
    node = Node(tmp_path / "input", tmp_path / "place")
    node.place.mkdir()
    (node.named / "below").mkdir(parents=True)
    (node.named / "a").write_text("first", encoding="utf-8")
    (node.named / "below" / "b").write_text("second", encoding="utf-8")
    (node.named / "link").symlink_to("below/b")
    return node


def test_the_input_is_copied_and_stays_as_it_is(node: Node) -> None:
    done = node.run("start")
    assert (done.returncode, done.stdout) == (0, f"STAGED_DIR={node.place}/input\n"), done.stderr
    copy = node.place / "input"
    assert sorted(path.name for path in copy.rglob("*")) == ["a", "b", "below", "link"]
    assert (copy / "link").read_text(encoding="utf-8") == "second"
    for path in (copy, copy / "a", copy / "below", copy / "below" / "b"):
        assert path.stat().st_mode & 0o222 == 0, f"{path} can be written to"
    assert node.run("stop").returncode == 0
    assert (node.named / "a").stat().st_mode & 0o200, "the original is as it was"
    assert (node.named / "a").read_text(encoding="utf-8") == "first"


def test_what_is_put_into_the_copy_is_never_copied_back(node: Node) -> None:
    node.run("start")
    copied = node.place / "input" / "a"
    copied.chmod(0o600)
    copied.write_text("changed", encoding="utf-8")
    assert node.run("stop").returncode == 0
    assert (node.named / "a").read_text(encoding="utf-8") == "first"


def test_more_than_the_site_allows_is_not_copied(node: Node) -> None:
    (node.named / "large").write_bytes(os.urandom(5 * 1024 * 1024))
    done = node.run("start")
    assert done.returncode == 1
    assert "at most 4 are copied" in done.stderr
    assert not list(node.place.iterdir())


@pytest.mark.parametrize(
    ("named", "why"),
    [("", "names no directory"), ("/nowhere", "/nowhere"), ("-x", "-x")],
)
def test_a_directory_that_is_none_is_refused(node: Node, named: str, why: str) -> None:
    done = node.run("start", IO_AUTOTUNE_DIR=named)
    assert done.returncode != 0
    assert why in done.stderr
    assert done.stdout == ""


def test_a_pipe_in_the_input_keeps_nobody_waiting(node: Node) -> None:
    os.mkfifo(node.named / "pipe")
    done = node.run("start")
    assert done.returncode == 1
    assert "pipe is no file and no directory" in done.stderr
    assert not list(node.place.iterdir())

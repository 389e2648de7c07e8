"""The command line, and commands that end."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from devcluster import __main__ as command_line
from devcluster import command, process
from devcluster.cluster import Cluster, PartStatus
from devcluster.errors import ClusterError, CommandFailed, PartFailed
from devcluster.variant import Variant


def test_table_columns_are_aligned() -> None:
    statuses = [
        PartStatus("munged", "running", 12345, None, Path("/log/munged.log")),
        PartStatus("slurmctld", "died", None, 10242, Path("/log/slurmctld.log")),
    ]
    assert command_line.table(statuses).splitlines() == [
        "PART       STATE    PID    PORT   LOG",
        "munged     running  12345  -      /log/munged.log",
        "slurmctld  died     -      10242  /log/slurmctld.log",
    ]


def test_only_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert command_line.main(["status"]) == 1
    assert capsys.readouterr().err == (
        "devcluster: the development cluster can only be run by root; try with sudo\n"
    )


def test_a_directory_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("devcluster.cluster.check_root", lambda _root, _nodes: None)
    (tmp_path / "theirs").write_text("", encoding="utf-8")
    with pytest.raises(ClusterError, match="not a development cluster's"):
        Cluster(tmp_path).up()
    assert [item.name for item in tmp_path.iterdir()] == ["theirs"]


@pytest.mark.parametrize("name", ["down", "destroy"])
def test_nothing_to_end_is_no_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert command_line.main([name, "--root", str(tmp_path)]) == 0
    assert "there is no cluster" in capsys.readouterr().out
    assert tmp_path.is_dir()


def test_options_of_a_variant_are_added_to_what_is_known() -> None:
    parser = command_line._parser()
    known = Variant(jobcomp=True, slurmd_timeout=6)
    options = parser.parse_args(["up", "--memory", "--sources", "jobcomp, squeue"])
    assert command_line.variant_of(options, known) == Variant(
        jobcomp=True, memory=True, slurmd_timeout=6, sources=("jobcomp", "squeue")
    )
    options = parser.parse_args(["up", "--no-jobcomp", "--sources", "none"])
    assert command_line.variant_of(options, known) == Variant(slurmd_timeout=6, sources=())


def test_environment_is_only_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANGER", "1")
    done = command.run(["env"], env={"PATH": command.PATH, "MINE": "2"})
    assert sorted(done.stdout.split()) == ["MINE=2", f"PATH={command.PATH}"]


def test_a_failure_carries_status_and_output() -> None:
    with pytest.raises(CommandFailed, match="status 3: bad") as caught:
        command.run(["sh", "-c", "echo out; echo bad >&2; exit 3"])
    assert (caught.value.status, caught.value.stdout) == (3, "out\n")


def test_a_command_that_takes_too_long() -> None:
    with pytest.raises(CommandFailed, match="ran out of time") as caught:
        command.run(["sleep", "60"], timeout=0.1)
    assert caught.value.status is None
    # It was looked at before it was killed.
    assert re.search(
        r"process \d+ below \d+: \S*sleep 60\n  thread \d+: state S, waits in ", caught.value.doing
    )
    assert caught.value.doing in str(caught.value)


def test_what_it_has_started_is_looked_at_and_not_waited_for() -> None:
    began = time.monotonic()
    script = "sleep 60 & echo $!; wait"
    with pytest.raises(CommandFailed) as caught:
        command.run(["sh", "-c", script], timeout=2.0)
    child = int(caught.value.stdout)
    assert time.monotonic() - began < 30.0
    assert f"process {child} below " in caught.value.doing
    identity = process.identify(child)
    assert identity is not None
    process.kill(identity)


def test_a_program_that_is_missing() -> None:
    with pytest.raises(ClusterError, match="install-deps"):
        command.run(["no-such-program-anywhere"])


def test_part_failure_shows_only_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(1, 101)), encoding="utf-8")
    text = str(PartFailed("munged", "ended", log))
    assert "line 100" in text
    assert "line 86" in text
    assert "line 85\n" not in text

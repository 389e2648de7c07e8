"""Starting, restarting and ending parts, with real processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from devcluster import command, process
from devcluster.errors import ClusterError, PartFailed
from devcluster.parts import Part
from devcluster.supervisor import Supervisor

FOREVER = ["/bin/sleep", "1000"]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, said: list[str]) -> Iterator[Supervisor]:
    made = Supervisor(tmp_path / "processes.json", said.append)
    yield made
    made.end_all()


def part(tmp_path: Path, name: str, argv: list[str] | None = None) -> Part:
    log = tmp_path / f"{name}.log"
    return Part(name, argv or FOREVER, command.base_env(), log, log)


def pids(supervisor: Supervisor) -> dict[str, int]:
    return {name: item.identity.pid for name, item in supervisor.alive().items()}


def test_starts_in_order_and_only_once(tmp_path: Path, supervisor: Supervisor) -> None:
    parts = [part(tmp_path, "one"), part(tmp_path, "two")]
    assert supervisor.converge(parts) == ["one", "two"]
    before = pids(supervisor)
    assert list(before) == ["one", "two"]
    assert supervisor.converge(parts) == []
    assert pids(supervisor) == before


def test_another_command_knows_what_runs(tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.converge([part(tmp_path, "one")])
    other = Supervisor(tmp_path / "processes.json", print)
    assert pids(other) == pids(supervisor)
    assert other.end_all() == ["one"]
    assert pids(supervisor) == {}


def test_restarts_what_died_and_nothing_else(
    tmp_path: Path, supervisor: Supervisor, said: list[str]
) -> None:
    parts = [part(tmp_path, "one"), part(tmp_path, "two")]
    supervisor.converge(parts)
    before = supervisor.alive()
    process.kill(before["one"].identity)
    with pytest.raises(PartFailed, match="one"):
        supervisor.check(parts)
    assert supervisor.converge(parts) == ["one"]
    supervisor.check(parts)
    assert supervisor.alive()["two"] == before["two"]
    assert list(supervisor.running()) == ["one", "two"]
    assert "one had died" in said


def test_restarts_when_an_input_changes(tmp_path: Path, supervisor: Supervisor) -> None:
    configuration = tmp_path / "conf"
    configuration.mkdir()
    (configuration / "a").write_text("1", encoding="utf-8")
    parts = [replace(part(tmp_path, "one"), inputs=[configuration]), part(tmp_path, "two")]
    supervisor.converge(parts)
    (configuration / "a").write_text("2", encoding="utf-8")
    assert supervisor.converge(parts) == ["one"]
    (configuration / "b").write_text("", encoding="utf-8")
    assert supervisor.converge(parts) == ["one"]
    assert supervisor.converge(parts) == []


def test_ends_what_is_no_part_any_more(tmp_path: Path, supervisor: Supervisor) -> None:
    parts = [part(tmp_path, "one"), part(tmp_path, "two")]
    supervisor.converge(parts)
    assert supervisor.converge(parts[:1]) == []
    assert list(pids(supervisor)) == ["one"]


def test_a_failure_shows_the_end_of_the_log(tmp_path: Path, supervisor: Supervisor) -> None:
    broken = part(tmp_path, "broken", ["/bin/sh", "-c", "echo no luck; exec sleep 0.1"])
    broken = replace(broken, probe=lambda: "not yet", ready_seconds=30.0)
    with pytest.raises(PartFailed, match="no luck") as caught:
        supervisor.converge([broken])
    assert caught.value.part == "broken"
    assert str(broken.log) in str(caught.value)


def test_a_damaged_list_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "processes.json"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ClusterError, match="cannot be read"):
        Supervisor(path, print).alive()

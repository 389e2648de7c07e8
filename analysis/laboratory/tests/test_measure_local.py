"""Measuring programs: what they spend, their spaces, and interruptions."""

import json
import sys
from pathlib import Path

import measure_local.__main__ as command
import pytest
from measure_local.programs import PROGRAMS, Program, RunFailed
from measure_local.programs.program import Chosen
from measure_local.programs.spent import Spent, spent
from peers.tables import Table


def test_a_child_s_processor_time_counts_and_waiting_does_not(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.2: pass\ntime.sleep(0.5)"
    command = ["sh", "-c", f"{sys.executable} -c '{busy}'; true"]
    assert 0.2 <= spent(command, tmp_path).processor < 0.6
    assert Spent(1.5, 3e6).seconds(2e6) == 3.0


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"sort.*no-such-file"):
        spent(["sort", str(tmp_path / "no-such-file")], tmp_path)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_default_is_of_the_space(program: Program) -> None:
    assert list(program.default) == list(program.levels)
    assert all(value in program.levels[name] for name, value in program.default.items())
    assert program.categories <= set(program.levels)
    assert program.integers <= set(program.levels) - program.categories
    assert all(type(level) is int for name in program.integers for level in program.levels[name])


def test_an_interrupted_measurement_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[Chosen] = []

    def run(_folder: Path, chosen: Chosen) -> float:
        runs.append(chosen)
        if len(runs) == 10:
            raise KeyboardInterrupt
        if chosen["size"] == 3:
            raise RunFailed("too large")
        return float(chosen["size"])

    program = Program(
        "tried",
        "a trial",
        {"size": [1, 2, 3], "on": ["yes", "no"]},
        frozenset({"on"}),
        {"size": 2, "on": "yes"},
        run,
        integers=frozenset({"size"}),
    )
    monkeypatch.setattr(command, "PROGRAMS", [program])
    words = ["measure_local", str(tmp_path), "--kept", str(tmp_path / "kept"), "--blocks", "3"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(KeyboardInterrupt):
        command.main()
    assert command.main() == 0
    # Six of the first block, four of the second, and two whole ones.
    assert len(runs) == 6 + 4 + 2 * 6
    table = Table(tmp_path / "held-out" / "tried.json")
    assert [len(of) for of in table.samples] == [3] * 4
    assert table.truths[table.default] == 2.0
    written = json.loads(table.path.read_text("utf-8"))
    assert written["domain"] == "a trial"
    kinds = {one["name"]: one["kind"] for one in written["parameters"]}
    assert kinds == {"size": "int", "on": "categorical"}


def test_a_missing_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Program("tried", "", {}, frozenset(), {}, lambda *_: 1.0, needs=("no-such-command",))
    monkeypatch.setattr(command, "PROGRAMS", [program])
    monkeypatch.setattr(sys, "argv", ["measure_local", str(tmp_path)])
    assert command.main() == 1
    assert "no no-such-command: run deploy/install-deps measure" in capsys.readouterr().err

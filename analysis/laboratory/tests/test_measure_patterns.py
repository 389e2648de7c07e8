"""The twelve access patterns: the plan, one job, and the published tables."""

import csv
import json
from pathlib import Path

import pytest
from measure.side_by_side import RunFailed
from measure_patterns.grid import HELD_OUT, PATTERNS, plan
from measure_patterns.job import Pattern, run
from peers.tables import Table

ROOT = Path(__file__).parents[3]
CATALOGUE = (ROOT / "deploy/accelerators.d/romio.toml").read_text("utf-8")
DATA = ROOT / "analysis/data/patterns"


def test_there_are_twelve_patterns_over_one_grid_of_which_four_are_held_out() -> None:
    names = {pattern.name for pattern in PATTERNS}
    assert len(names) == len(PATTERNS) == 12
    assert len(HELD_OUT) == 4
    assert names > HELD_OUT
    assert min(pattern.ranks for pattern in PATTERNS) == 2
    assert max(pattern.ranks for pattern in PATTERNS) == 8
    plans = [plan(CATALOGUE, pattern, 4, 1) for pattern in PATTERNS]
    assert len({tuple(one.points) for one in plans}) == 1
    assert all(one.default in one.points for one in plans)


def test_a_pattern_is_told_as_the_program_takes_it() -> None:
    some = Pattern("some", 4, 128, 64, nested=16, reads=0, collective=False)
    words = "--block-size=128 --blocks=64 --nested=16 --write-only --independent"
    assert " ".join(some.options()) == words
    assert str(some) == f"4 ranks on one node: strided {words}"


@pytest.mark.parametrize("program", ["/bin/false", "/bin/true"])
def test_a_run_that_fails_or_tells_no_time_is_no_run(program: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"--block-size=64 .* with {'romio_cb_read': 'disable'}"):
        run(Path(program), Pattern("x", 2, 64, 8), {"romio_cb_read": "disable"}, tmp_path)
    assert (tmp_path / "hints").read_text("utf-8") == "romio_cb_read disable\n"


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda one: one.name)
def test_the_published_table_is_whole(pattern: Pattern) -> None:
    path = DATA / f"{pattern.name}.json"
    told = json.loads(path.read_text("utf-8"))
    of = plan(CATALOGUE, pattern, told["blocks"], told["seed"])
    assert told["workload"] == str(pattern)
    assert told["held_out"] == (pattern.name in HELD_OUT)
    assert told["default"] == of.named(of.default)
    assert all(value > 0 for value in told["default_measures"].values())
    table = Table(path)
    assert len(table.truths) == len(of.points)
    with path.with_suffix(".csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = [parameter.name for parameter in of.parameters]
    made = {(tuple(row[name] for name in names), int(row["rep"])) for row in rows}
    wanted = {(tuple(map(str, one)), block) for one in of.points for block in range(of.blocks)}
    assert made == wanted
    assert len(rows) == len(wanted)

"""The split of tables, the generated families, and the ablation's figures."""

import tomllib
from itertools import pairwise
from pathlib import Path

from comparison.ablation import METHODS, figures
from generated_tables.families import FAMILIES, table
from peers.studies import Study
from peers.tables import Table

ROOT = Path(__file__).resolve().parents[3]
SPLIT = ROOT / "analysis/laboratory/comparison/tables.toml"


def test_each_table_is_in_one_part_and_the_projects_own_are_there() -> None:
    parts = tomllib.loads(SPLIT.read_text("utf-8"))
    names = [name for part in parts.values() for name in part]
    assert len(set(names)) == len(names)
    own = {path.stem for path in (ROOT / "analysis/data").glob("*.json")}
    assert own <= set(parts["development"])
    held_out = {path.stem for path in (ROOT / "analysis/data/held-out").glob("*.json")}
    assert held_out <= set(parts["held_out"])
    assert {f"{family}-2" for family in FAMILIES} <= set(parts["held_out"])


def test_a_generated_table_is_the_same_each_time_and_half_of_a_failing_one_fails() -> None:
    for family in FAMILIES:
        (world, runs), (_, again) = table(family, 1), table(family, 1)
        points = world.points()
        assert [runs(point) for point in points] == [again(point) for point in points]
        assert runs(world.default)
    world, runs = table("failing", 1)
    fails = [not runs(point) for point in world.points()]
    assert 0.3 < sum(fails) / len(fails) < 0.8


def test_figures_are_by_the_tables_means() -> None:
    on = Table(ROOT / "analysis/data/romio.json")
    best, default = on.best, on.default
    study = Study(0, (default, best, None, best), best)
    found = figures(on, study)
    assert (found.score.recommended, found.failed) == (1.0, 1)
    assert (found.score.loss, found.worst) == (0.0, 1.0)


def test_each_line_adds_one_part() -> None:
    settings = [set(method.text.split(",")) for method in METHODS]
    for before, after in pairwise(settings):
        assert len(after - before) == 1

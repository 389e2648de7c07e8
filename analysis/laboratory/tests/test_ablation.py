"""The generated families, and the ablation's figures."""

import re
from itertools import pairwise
from pathlib import Path

from comparison.ablation import DEFAULT, METHODS, OUTSIDE, figures
from generated_tables.families import FAMILIES, table
from peers.studies import Study
from peers.tables import Table

ROOT = Path(__file__).resolve().parents[3]


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
    assert (found.score.recommended, found.score.failed) == (1.0, 1.0)
    assert (found.score.loss, found.worst) == (0.0, 1.0)


def test_each_line_adds_one_part() -> None:
    settings = [set(method.text.split(",")) for method in METHODS]
    for before, after in pairwise(settings):
        assert len(after - before) == 1


def test_a_line_sets_all_that_the_method_has_and_the_defaults_line_as_the_engine_does() -> None:
    source = ROOT / "tuner-service/engine/src/search/surrogate_genetic.rs"
    written = source.read_text("utf-8").partition("impl Default for SurrogateGenetic {")[2]
    defaults = written.partition("        SurrogateGenetic {")[2].partition("}")[0]
    engine = dict(re.findall(r"(\w+): (\w+),", defaults))
    method, _, settings = DEFAULT.text.partition(":")
    assert method == "surrogate-genetic"
    assert dict(setting.split("=") for setting in settings.split(",")) == engine


def test_outside_slurm_the_default_is_compared() -> None:
    assert [method for method in METHODS if method not in OUTSIDE] == [METHODS[1]]
    assert DEFAULT in OUTSIDE

"""The comparison report: rankings, interpretations, tables; without the program or a library."""

import json
import math
import re
from pathlib import Path

import pytest
from comparison import cao2018, published, robert2019, robert2020
from comparison.baselines import METHODS
from comparison.interpretations import Course, Interpretation, figures, replay, sample
from comparison.markdown import number, table
from comparison.prose import prose
from comparison.ranks import order, tau
from comparison.simulate import without_noise
from peers.tables import Table, TableError, named

SIZE = 16


def bowl(directory: Path, noise: float = 0.0, name: str = "bowl") -> Table:
    """Two parameters of sixteen levels; the time grows with the distance from (4, 1)."""
    path = directory / f"{name}.json"
    values = list(range(SIZE))
    parameters = [{"name": word, "kind": "int", "values": values} for word in "ab"]
    described = {"name": name, "parameters": parameters, "default": {"a": 0, "b": 15}}
    path.write_text(json.dumps(described), "utf-8")
    rows = ["a,b,time"]
    for a in values:
        for b in values:
            truth = 100.0 + 20.0 * ((a - 4) ** 2 + (b - 1) ** 2)
            rows += [f"{a},{b},{truth * (1.0 + sign * noise)}" for sign in (-1, 1)]
    path.with_suffix(".csv").write_text("\n".join(rows), "utf-8")
    return Table(path)


def test_tau_by_hand() -> None:
    assert tau([1, 2, 3, 4], [10, 20, 30, 40]) == 1.0
    assert tau([1, 2, 3, 4], [4, 3, 2, 1]) == -1.0
    # One of six pairs the other way round.
    assert tau([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(4 / 6)
    # Five pairs agree, one is tied in the first column: 5 / sqrt(5 * 6).
    assert tau([1, 1, 3, 4], [1, 2, 3, 4]) == pytest.approx(5 / math.sqrt(30))
    assert tau([1, 1], [1, 2]) is None


def test_an_order_shows_ties() -> None:
    assert order("abc", [1.0, 3.0, 3.0], higher=True) == "b = c > a"
    assert order("abc", [1.0, 3.0, 2.0], higher=False) == "a > c > b"


def test_numbers_and_tables_read_well() -> None:
    numbers = [number(value) for value in (None, 0.0, 0.03456, 12.345, 98765.4, 1e-5)]
    assert numbers == ["-", "0", "0.0346", "12.3", "98800", "0.00001"]
    lines = table(["", "x"], [["a", "1"], ["b", "2"]])
    assert lines == ["|  | x |", "| --- | ---: |", "| a | 1 |", "| b | 2 |"]


def test_without_noise_two_runs_suffice(tmp_path: Path) -> None:
    course = replay(bowl(tmp_path), Interpretation("as is"), 0.1, 3)
    assert len(course.runs) == 50
    design, search = course.runs[:15], course.runs[15:]
    children = [place for place in search if place not in design]
    assert children[0:-1:2] == children[1::2], "each child twice in a row"
    assert all(search.count(place) <= 1 for place in design), "a design point once more"
    once = replay(bowl(tmp_path), Interpretation("as is"), None, 3)
    assert len(set(once.runs)) == len(once.runs) <= SIZE * SIZE


def test_noise_takes_more_runs_and_the_threshold_ends_them(tmp_path: Path) -> None:
    noisy = bowl(tmp_path, 0.3)
    tight = replay(noisy, Interpretation("as is"), 0.02, 1)
    loose = replay(noisy, Interpretation("as is"), 10.0, 1)
    assert len(set(tight.runs)) < len(set(loose.runs))
    assert len(tight.runs) == len(loose.runs) == 50


def test_what_counts_as_an_iteration(tmp_path: Path) -> None:
    wide = bowl(tmp_path)
    free = replay(wide, Interpretation("free", budget=25, resamples_count=False), 0.1, 2)
    # Ten children; some may be design points, which run once more.
    design = set(free.runs[:15])
    assert len(free.runs) > 25 >= len(set(free.runs)) > 15
    assert all(free.runs.count(place) == 2 for place in set(free.runs) - design), "the last too"
    picked = replay(wide, Interpretation("picked", picks=True), None, 2)
    assert len(set(picked.runs)) == 50
    back = replay(wide, Interpretation("back", budget=200, returns=True), None, 2)
    assert len(back.runs) == 200


def test_a_search_that_has_run_everything_ends(tmp_path: Path) -> None:
    course = replay(bowl(tmp_path), Interpretation("all", budget=1000), None, 2)
    assert sorted(course.runs) == list(range(SIZE * SIZE))


def test_figures_of_readings_by_hand(tmp_path: Path) -> None:
    on = bowl(tmp_path)
    best = on.best
    next_to = on.place((4, 2))
    assert next_to is not None
    of = figures(on, [Course([next_to, best], best), Course([next_to, next_to], next_to)])
    assert (of.success, of.tried, of.steps) == (50.0, 50.0, 1.5)
    assert of.distance == pytest.approx(20.0 / 2)
    assert of.average == pytest.approx((10.0 + 20.0) / 2)
    assert of.nearest == pytest.approx((0.0 + 20.0) / 2)
    assert of.levels == pytest.approx(1 / 15 / 2)


def test_the_random_sampler_repeats_nothing(tmp_path: Path) -> None:
    runs = sample(bowl(tmp_path), Interpretation("few", budget=20), 5).runs
    assert len(set(runs)) == len(runs) == 20


def test_a_table_without_noise_keeps_truth_and_default(tmp_path: Path) -> None:
    noisy = bowl(tmp_path, 0.3)
    quiet = Table(without_noise(noisy, tmp_path / "quiet"))
    assert quiet.points == noisy.points
    assert quiet.truths == pytest.approx(noisy.truths)
    assert (quiet.default, quiet.name) == (noisy.default, noisy.name)
    assert noisy.scatter == pytest.approx(0.3 * math.sqrt(2.0))
    assert quiet.scatter == 0.0


def test_folders_are_read_and_nothing_twice(tmp_path: Path) -> None:
    bowl(tmp_path)
    bowl(tmp_path, name="other")
    tables = named([tmp_path / "other.json", tmp_path])
    assert [one.name for one in tables] == ["other", "bowl"]
    with pytest.raises(TableError, match="there is no table"):
        named([])


def test_the_best_of_each_class_is_taken() -> None:
    labels = ["CGA a", "CGA b", "RGA a", "FGA a", "FRGA a", "RS"]
    of = [
        {
            "figures": [{"metric": "SuccessRate", "value": float(nth)}],
            "scores": {"optim": 0.1, "stability": 0.2, "score": nth / 10},
        }
        for nth in range(len(labels))
    ]
    best = robert2020.best_of_each({"methods": labels, "tables": [{"methods": of}]})
    assert [one.name for one in best] == ["CGA b", "RGA a", "FGA a", "FRGA a", "RS"]
    assert best[0].metrics == {
        "SuccessRate": 1.0,
        "ScoreOptim": 0.1,
        "ScoreStability": 0.2,
        "Score": 0.1,
    }


def test_the_published_tables_are_whole() -> None:
    assert {len(row) for row in published.TABLE_VI.values()} == {len(published.CLASSES)}
    for columns in published.TABLE_2.values():
        assert set(columns) == set(robert2019.METRICS)
        assert {len(row) for row in columns.values()} == {len(published.HEURISTICS)}
    methods = {method.name for method in cao2018.METHODS}
    assert all(set(printed) == methods for _, printed in published.FIGURE_5.values())
    assert len({method.name for method in METHODS}) == len(METHODS)


_PEERS = ("packages", "total", "cores", "most", "kept")


def test_a_text_has_all_its_figures() -> None:
    assert "at most 3 hours" in " ".join(prose("peers", **dict.fromkeys(_PEERS, "3")))
    with pytest.raises(KeyError):
        prose("peers")
    directory = Path(__file__).parents[1] / "comparison" / "prose"
    for path in directory.glob("*.md"):
        names = set(re.findall(r"\$\{(\w+)\}", path.read_text("utf-8")))
        assert "$" not in "".join(prose(path.stem, **dict.fromkeys(names, "1")))

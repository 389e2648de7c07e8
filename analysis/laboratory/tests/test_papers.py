"""The papers' pages: statistics, rankings, orders, drawings; without the program."""

import json
import re
from pathlib import Path

import pytest
from papers import (
    alabed2021,
    cao2018,
    claims,
    drawing,
    file_systems,
    published,
    ranks,
    robert2019,
    robert2020,
    studies,
)
from papers.text import prose
from peers.tables import Table


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
        assert set(columns) == set(robert2019.METRICS) - {"ECBest"}, "that reading is ours"
        assert {len(row) for row in columns.values()} == {len(published.HEURISTICS)}
    methods = {method.name for method in cao2018.METHODS}
    assert all(set(printed) == methods for _, printed in published.FIGURE_5.values())


def test_an_order_is_claimed_if_it_holds_in_every_repetition() -> None:
    def best(*successes: float) -> list[robert2020.Best]:
        metrics = dict.fromkeys(published.TABLE_VI, 0.0)
        return [robert2020.Best("", metrics | {"SuccessRate": one}) for one in successes]

    lines = robert2020._orders([best(1, 9, 5, 5, 0), best(2, 8, 5, 6, 0)])
    [row] = [line for line in lines if "SuccessRate" in line]
    cells = [cell.strip() for cell in row.split("|")]
    assert {"RGA > CGA", "RGA > FRGA"} <= set(cells[2].split(", "))
    assert cells[3] == "-", "nothing is the other way round"
    assert cells[4] == "FRGA > FGA", "a tie in one repetition"


def test_ranks_by_hand() -> None:
    assert ranks.order("abc", [1.0, 3.0, 3.0], higher=True) == "b = c > a"
    assert ranks.order("abc", [1.0, 3.0, 2.0], higher=False) == "a > c > b"
    assert ranks.rounded(None) == 0.0
    assert ranks.rounded(1.2345) == 1.23


def two_by_two(directory: Path) -> Table:
    """The first parameter decides nearly all."""
    path = directory / "small.json"
    parameters = [{"name": word, "kind": "int", "values": [0, 1]} for word in "ab"]
    path.write_text(json.dumps({"name": "small", "parameters": parameters}), "utf-8")
    path.with_suffix(".csv").write_text("a,b,time\n0,0,1\n0,1,2\n1,0,9\n1,1,10\n", "utf-8")
    return Table(path)


def test_studies_are_times_by_run(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)
    method = {"studies": [{"runs": [0, 3, None]}, {"runs": [1, 1, 2]}, {"runs": [1, 3, 2]}]}
    of = studies.courses(method, on)
    assert of[0] == [1.0, 10.0, on.truths[on.default]], "what the table lacks takes the default's"
    assert studies.medians(of[:3])[:2] == [2.0, 10.0]
    assert studies.share([[1.0, 2.0], [3.0, 4.0]], 2.5) == 50.0


def test_what_matters_is_the_share_of_the_variance(tmp_path: Path) -> None:
    # Between: 4 * 4^2 and 4 * 0.5^2, of 65.
    assert cao2018._importance(two_by_two(tmp_path)) == pytest.approx([64 / 65, 1 / 65])


def test_a_fence_by_hand() -> None:
    # Quartiles 2 and 4.
    assert robert2020._fence([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(7.0)


def test_a_drawing_has_a_line_for_each_series() -> None:
    text = drawing.lines({"a < b": [1.0, 2.0], "c": [3.0]}, "run", "time, s")
    assert text.count("<polyline") == 2
    assert "a &lt; b" in text


def test_a_text_has_all_its_figures() -> None:
    directory = Path(__file__).parents[1] / "papers" / "prose"
    with pytest.raises(KeyError):
        prose("robert2020-table-vi")
    for path in directory.glob("*.md"):
        names = set(re.findall(r"\$\{(\w+)\}", path.read_text("utf-8")))
        assert "$" not in "".join(prose(path.stem, **dict.fromkeys(names, "1")))


SYSTEMS = Path(__file__).parents[3] / "analysis/data/papers/file-systems.json"


def test_draws_without_replacement_by_hand() -> None:
    assert file_systems.found_at_random(valid=4, near=1, runs=2) == pytest.approx(50.0)
    assert file_systems.found_at_random(valid=4, near=2, runs=2) == pytest.approx(100 - 100 / 6)
    assert file_systems.found_at_random(valid=4, near=1, runs=4) == 100.0
    assert file_systems.found_at_random(valid=4, near=1, runs=0) == 0.0


def test_the_second_is_what_matters_with_the_first_fixed(tmp_path: Path) -> None:
    """Cao 2018, section 4.4: "with the value of the most important one fixed"."""
    on = two_by_two(tmp_path)
    [(first, one), (second, other)] = file_systems.first_and_second(on)
    assert (first.name, second.name) == ("a", "b")
    assert one < 1.0, "throughputs 1, 1/2, 1/9, 1/10"
    assert other == pytest.approx(1.0), "with `a` fixed `b` decides all"
    assert file_systems.told([(first, 0.7), (second, 0.61)]) == "a 0.70, then b 0.61"
    assert file_systems.told([(first, 0.5), (second, 0.4)]) == "- (a 0.50, b 0.40)"


def test_a_file_system_by_itself_has_its_own_parameters(tmp_path: Path) -> None:
    on = Table(SYSTEMS)
    ext3 = file_systems.of_system(on, "ext3", tmp_path)
    names = [parameter.name for parameter in ext3.parameters]
    assert names == ["block_size", "inode_size", "groups", "journal", "atime"]
    assert len(ext3.points) == 108
    default = {
        p.name: p.values[level]
        for p, level in zip(ext3.parameters, ext3.points[ext3.default], strict=True)
    }
    assert default["journal"] == "ordered"
    btrfs = file_systems.of_system(on, "btrfs", tmp_path)
    assert [parameter.name for parameter in btrfs.parameters] == ["atime", "special"]
    lines = file_systems.clusters(ext3, "journal", "block_size")
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["journal", "ordered", "writeback"]


def test_table_5_has_the_paper_s_file_systems() -> None:
    assert set(published.TABLE_5) == {
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "nilfs2", "reiserfs")
    }


def test_a_study_that_finds_nothing_is_later_than_all() -> None:
    assert alabed2021._steps([3, None, 5]) == "5 (3 to none)"
    assert alabed2021._steps([None, None, 5]) == "none (5 to none)"


def test_a_claim_holds_where_every_interval_lies_on_its_side() -> None:
    # Differences -1, -2, -3: a mean of -2, t = 4.303 of two degrees of freedom, an error of 1/√3.
    surely = claims.paired([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert (surely.mean, surely.low, surely.high) == pytest.approx((-2.0, -4.484, 0.484), abs=1e-3)
    below = claims.Difference(-1.0, -1.5, -0.5)
    assert claims.below("a", {"x": below}).verdict == claims.HOLDS
    assert claims.above("a", {"x": below}).verdict == claims.NOT
    both = claims.below("a", {"x": below, "y": surely})
    assert both.verdict == "does not hold here (1 of 2)"
    assert both.figure == "x -1 (-1.5 to -0.5); y -2 (-4.48 to 0.484)"


def test_methods_that_run_alike_are_one() -> None:
    def crossed(*runs: list[int]) -> list[dict[str, object]]:
        methods = [{"studies": [{"runs": one, "recommended": 0}]} for one in runs]
        labels = [f"FGA {nth}" for nth in range(len(runs) - 1)] + ["RS"]
        return [{"methods": labels, "tables": [{"methods": methods}]}]

    assert robert2020.different(crossed([1, 2], [1, 2], [3, 4], [5, 6])) == 2
    assert robert2020.different(crossed([1, 2], [5, 6]), crossed([1, 2], [5, 6])) == 1


def test_a_posterior_is_off_by_the_logarithm() -> None:
    study = {
        "elapsed": [0.2, 0.4, None],
        "predicted": [None, 0.2, 0.2],
        "factor": [None, 2.0, 2.0],
        "measures": [0, 1, 0],
    }
    [(off, expected, measures)] = alabed2021._surprises(study)
    assert off == pytest.approx(expected)
    assert measures == 1
    assert alabed2021._so_far(study) == [0.2, 0.2, 0.2]
    assert alabed2021._reached([study, {**study, "elapsed": [0.3, 0.21, None]}], 0.1) == [1, 2]

"""The papers' pages: statistics, rankings, orders, drawings; without the program."""

import json
import re
from pathlib import Path

import pytest
from papers import cao2018, drawing, published, ranks, robert2019, robert2020, studies
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
        assert set(columns) == set(robert2019.METRICS)
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

"""Tables and draws: the same as in Rust."""

import csv
import json
from pathlib import Path

import pytest
from peers.tables import Table, TableError

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "analysis/simulation/tests/fixtures"


def test_draws_and_places_are_those_that_rust_writes_down() -> None:
    table = Table(FIXTURES / "draws.json")
    lines = (FIXTURES / "draws-expected.csv").read_text("utf-8").splitlines()
    assert lines[0] == f"# default {table.default} best {table.best}"
    rows = list(csv.DictReader(lines[1:]))
    assert len(rows) == 4 * 4 * len(table.points)
    for row in rows:
        time = table.draw(int(row["place"]), int(row["nth"]), int(row["seed"]))
        assert time == float(row["time"]), row


def test_the_project_s_own_table_is_read() -> None:
    table = Table(ROOT / "analysis/data/burst-buffer.json")
    assert (table.name, len(table.points)) == ("burst-buffer", 540)
    default = table.truths[table.default] / table.truths[table.best]
    assert default == pytest.approx(1.332, abs=0.001)


SPACE = {
    "parameters": [
        {"name": "size", "kind": "int", "values": [1, 2]},
        {"name": "on", "kind": "categorical", "values": [True, "maybe"]},
    ],
    "default": {"size": 2, "on": "maybe"},
}


@pytest.mark.parametrize(
    ("space", "rows", "words"),
    [
        ({}, "size,time\n1,10\n", "line 1: there is no column 'on'"),
        ({}, "size,on,time\n3,True,10\n", "line 2, column 'size': '3'"),
        ({}, "size,on,time\n1,maybe,nan\n", "column 'time': 'nan'"),
        ({}, "size,on,time\n1,maybe,0\n", "above 0 seconds"),
        ({}, "size,on,time,rel_sd\n1,maybe,1,-1\n", "column 'rel_sd'"),
        ({}, "size,on,time\n", "no row"),
        ({"default": {"size": 7, "on": True}}, "size,on,time\n1,true,1\n", "default's 'size'"),
        ({"constraints": [{}]}, "size,on,time\n1,true,1\n", "constraints"),
        ({"parameters": 3}, "size,on,time\n1,true,1\n", "docs/papers/simulate.md"),
        (
            {"parameters": [{"name": "size", "kind": "int", "valeus": [1]}]},
            "size,time\n1,1\n",
            "'valeus': did you mean 'values'?",
        ),
        (
            {"parameters": [{"name": "time", "kind": "int", "values": [1]}], "default": None},
            "time\n1\n",
            "a parameter is called time",
        ),
        ({}, "size,on,time,size\n1,true,1,2\n", "there are 2 columns 'size'"),
        ({}, "size,on,time,time\n1,true,1,2\n", "there are 2 columns 'time'"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, space: dict[str, object], rows: str, words: str
) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SPACE | space), "utf-8")
    path.with_suffix(".csv").write_text(rows, "utf-8")
    with pytest.raises(TableError, match="small") as error:
        Table(path)
    assert words in str(error.value)


def test_a_default_that_was_not_measured_gives_way_to_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SPACE), "utf-8")
    # Another category and another size are equally far in a range of two values: the first wins.
    rows = "size,on,time\n1,True,9\n1,maybe,8\n2,true,7\n"
    path.with_suffix(".csv").write_text(rows, "utf-8")
    assert Table(path).default == 1


def test_a_space_in_toml_is_that_in_json_and_r_s_words_are_read(tmp_path: Path) -> None:
    own = """
        [[parameters]]
        name = "size"
        kind = "integer"
        min = 2
        max = 7
        step = 2
        default = 4
        [[parameters]]
        name = "on"
        kind = "categories"
        values = ["true", "false"]
        default = "false"
        [[parameters]]
        name = "list"
        kind = "ordered"
        values = [0.5, 8]
        default = 8
    """
    path = tmp_path / "small.toml"
    path.write_text("\ufeff" + own.replace("\n", "\r\n"), "utf-8")
    rows = "\ufeffsize,on,list,time\r\n2,TRUE,0.5,9\r\n4,False,8,8\r\n"
    path.with_suffix(".csv").write_text(rows, "utf-8")
    table = Table(path)
    assert [p.values for p in table.parameters] == [(2, 4, 6), ("true", "false"), (0.5, 8)]
    assert [p.ordered for p in table.parameters] == [True, False, True]
    assert (table.points, table.default) == ([(0, 0, 0), (1, 1, 1)], 1)
    path.with_suffix(".csv").write_bytes(b"size,on,list,time,Gr\xf6\xdfe\n2,true,8,1,1\n")
    with pytest.raises(TableError, match="line 1 is not in UTF-8"):
        Table(path)
    path.with_suffix(".csv").write_text(rows, "utf-8")
    path.write_text(own.replace("step", "stpe"), "utf-8")
    with pytest.raises(TableError, match="'stpe': did you mean 'step'"):
        Table(path)


def test_a_key_of_json_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    text = json.dumps(SPACE)
    path.write_text(text[:-2] + ', "size": 1}}', "utf-8")
    path.with_suffix(".csv").write_text("size,on,time\n1,true,1\n", "utf-8")
    with pytest.raises(TableError, match="'size' is given twice"):
        Table(path)

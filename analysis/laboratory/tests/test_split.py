"""The split of tables into what constants are chosen on and what is held out."""

import tomllib
from pathlib import Path

import pytest
from comparison.split import is_of_the_tree, split
from generated_tables.families import FAMILIES
from measure_local.programs import PROGRAMS
from peers.tables import Table, TableError

ROOT = Path(__file__).resolve().parents[3]
SPLIT = ROOT / "analysis/laboratory/comparison/tables.toml"


def copy(directory: Path, name: str) -> Table:
    text = (ROOT / "analysis/data/romio.json").read_text("utf-8")
    path = directory / f"{name}.json"
    path.write_text(text.replace('"romio"', f'"{name}"'), "utf-8")
    path.with_suffix(".csv").write_bytes((ROOT / "analysis/data/romio.csv").read_bytes())
    return Table(path)


def test_each_table_is_in_one_part_and_the_projects_own_are_there() -> None:
    parts = tomllib.loads(SPLIT.read_text("utf-8"))
    names = [name for part in parts.values() for name in part]
    assert len(set(names)) == len(names)
    own = {path.stem for path in (ROOT / "analysis/data").glob("*.json")}
    assert own <= set(parts["development"])
    measured = {path.stem for path in (ROOT / "analysis/data/held-out").glob("*.json")}
    assert measured == {program.name for program in PROGRAMS if program.folder == "held-out"}
    assert measured <= set(names)
    generated = {f"{family}-{number}" for family in FAMILIES for number in range(1, 5)}
    assert generated <= set(parts["development"])
    assert {f"{family}-5" for family in FAMILIES} <= set(parts["held_out"])


def test_parts_have_what_was_given_and_say_what_was_not(tmp_path: Path) -> None:
    development, held_out = split([copy(tmp_path, "flags-5"), copy(tmp_path, "romio")])
    assert [on.name for on in development.tables] == ["romio"]
    assert [on.name for on in held_out.tables] == ["flags-5"]
    assert held_out.title == "Held out"
    assert "burst-buffer" in development.missing()[-1]
    assert "romio" not in development.missing()[-1]


def test_a_table_of_no_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"mine .*mine.json.* in no part of .*tables.toml: add"):
        split([copy(tmp_path, "romio"), copy(tmp_path, "mine")])


def test_other_folders_are_not_of_the_tree(tmp_path: Path) -> None:
    assert is_of_the_tree(Table(ROOT / "analysis/data/romio.json"))
    assert not is_of_the_tree(copy(tmp_path, "romio"))

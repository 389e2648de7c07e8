"""The comparison report: rankings, interpretations, tables; without the program or a library."""

import json
import math
import re
from pathlib import Path

import pytest
from comparison.baselines import METHODS
from comparison.markdown import number, table
from comparison.prose import prose
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


def test_numbers_and_tables_read_well() -> None:
    numbers = [number(value) for value in (None, 0.0, 0.03456, 12.345, 98765.4, 1e-5)]
    assert numbers == ["-", "0", "0.0346", "12.3", "98800", "0.00001"]
    lines = table(["", "x"], [["a", "1"], ["b", "2"]])
    assert lines == ["|  | x |", "| --- | ---: |", "| a | 1 |", "| b | 2 |"]


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


def test_no_two_methods_have_one_name() -> None:
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

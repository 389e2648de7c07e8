"""What the comparison says of one part's tables, with a program that stands for ours."""

import json
import sys
from pathlib import Path

import pytest
from comparison import baselines
from comparison.baselines import Baselines
from comparison.split import Part
from peers.optimizers import PEERS
from peers.program import Program
from peers.tables import Table

_PROGRAM = """#!{python}
import json, sys
words = sys.argv[1:]
of = lambda name: [after for word, after in zip(words, words[1:]) if word == name]
if of("--method") == ["?"]:
    sys.exit("must be one of default, surrogate-genetic, another")
study = lambda seed: dict(seed=seed, runs=[2, 0, None, 0], recommended=0)
studies = [study(seed) for seed in range(int(of("--seeds")[0]))]
method = dict(figures=[dict(metric="ET", value=0.5)], studies=studies)
methods = [method for _ in of("--method")]
tables = [dict(best=1.0, default=3.0, methods=methods) for _ in of("--table")]
print(json.dumps(dict(tables=tables)))
"""


def failing(directory: Path, name: str) -> Table:
    """Three sizes that take 1, 2 and 3 s; with another switch all fail."""
    path = directory / f"{name}.json"
    parameters = [
        {"name": "size", "kind": "int", "values": [1, 2, 3]},
        {"name": "switch", "kind": "categorical", "values": ["on", "off"]},
    ]
    default = {"size": 3, "switch": "on"}
    path.write_text(json.dumps({"parameters": parameters, "default": default}), "utf-8")
    rows = ["size,switch,time", *(f"{size},on,{size}" for size in (1, 2, 3))]
    path.with_suffix(".csv").write_text("\n".join(rows), "utf-8")
    return Table(path)


def test_aims_failed_runs_and_tables_of_elsewhere_are_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "io-autotune"
    program.write_text(_PROGRAM.format(python=sys.executable), "utf-8")
    program.chmod(0o755)
    tables = [failing(tmp_path, "one"), failing(tmp_path, "two")]
    monkeypatch.setattr(baselines, "PEERS", {"random": PEERS["random"]})
    of = Baselines(
        Program(program, 1),
        Part("Held out", tables, []),
        seeds=30,
        method_seeds=20,
        peer_seeds=20,
        costly_peer_seeds=0,
        kept=tmp_path / "kept",
        progress=lambda _done, _of: None,
    )
    summary = "\n".join(of.summary())
    assert summary.startswith("### Held out: in short")
    assert "*average run*, `default` divided by each peer: ahead: random 0." in summary
    # One failed run of four against half of fifty less the first.
    assert "*failed runs*, those of `default` divided by random's: 0.0" in summary
    assert "ahead; the aim, 0.33, is reached" in summary
    section = of.section()
    rows = [line for line in section if line.startswith("| one \\* |")]
    assert len(rows) == 4, "three ratios, and failed runs"
    assert rows[-1].startswith("| one \\* | 1.0 | 2")
    assert any(line.startswith("| another | 20 |") for line in section)
    assert not any("surrogate-genetic" in line for line in section), "it has a row as default"
    assert of.seconds["random"] > 0.0


def test_nothing_is_divided_by_no_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "io-autotune"
    program.write_text(_PROGRAM.replace("None", "0").format(python=sys.executable), "utf-8")
    program.chmod(0o755)
    table = failing(tmp_path, "one")
    with table.path.with_suffix(".csv").open("a", encoding="utf-8") as file:
        file.writelines(f"\n{size},off,{size}" for size in (1, 2, 3))
    monkeypatch.setattr(baselines, "PEERS", {"random": PEERS["random"]})
    of = Baselines(
        Program(program, 1),
        Part("Held out", [Table(table.path)], []),
        seeds=2,
        method_seeds=2,
        peer_seeds=2,
        costly_peer_seeds=0,
        kept=tmp_path / "kept",
        progress=lambda _done, _of: None,
    )
    assert of.summary()[-1].endswith("random's runs do not fail.")
    assert not any("failed runs of 50" in line for line in of.section())


def test_a_table_without_peers_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "io-autotune"
    program.write_text(_PROGRAM.format(python=sys.executable), "utf-8")
    program.chmod(0o755)
    tables = [failing(tmp_path, "one"), failing(tmp_path, "two")]
    monkeypatch.setattr(baselines, "PEERS", {"random": PEERS["random"]})

    def compared(tables: list[Table], peer_seeds: int) -> Baselines:
        return Baselines(
            Program(program, 1),
            Part("Development", tables, []),
            seeds=2,
            method_seeds=2,
            peer_seeds=peer_seeds,
            costly_peer_seeds=0,
            kept=tmp_path / "kept",
            progress=lambda _done, _of: None,
        )

    none = compared(tables, 0)
    assert (none.peers, none.left_out) == ([], [])
    assert none.summary()[-1] == "There are no studies of other optimisers."
    assert none.section()[0] == "### Development: all methods"
    compared(tables[:1], 2)
    some = compared(tables, 0)
    assert (some.peers, some.left_out) == (["random"], ["two"])
    assert [on.name for on in some.tables] == ["one"]

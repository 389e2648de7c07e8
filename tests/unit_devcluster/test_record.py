"""The cluster's memory: names, round trip, damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from devcluster import record
from devcluster.errors import ClusterError
from devcluster.record import Ports, Record
from devcluster.variant import Variant

RECORD = Record(
    name="dev",
    nodes=2,
    prolog_alloc=False,
    ports=Ports(10241, 10242, 10243, slurmd=(10244, 10245), slurmdbd=10246),
    variant=Variant(jobcomp=True, sources=("jobcomp", "squeue")),
    study_settings={"p": 0.1, "levels": [1, 2]},
    installed={"bin/io-autotuned": "ab"},
)


@pytest.mark.parametrize(
    ("root", "name"),
    [
        ("/var/lib/io-autotune-dev", "dev"),
        ("/var/lib/io-autotune-Test.1", "test_1"),
        ("/var/lib/io-autotune", "io_autotune"),
        ("/srv/7of9", "c7of9"),
        ("/srv/---", "c"),
        ("/srv/" + "x" * 60, "x" * 40),
    ],
)
def test_cluster_name(root: str, name: str) -> None:
    assert record.cluster_name(Path(root)) == name


def test_round_trip() -> None:
    assert record.parse(record.dump(RECORD), Path("cluster.json")) == RECORD


def test_ports_are_all_there() -> None:
    assert sorted(RECORD.ports.all()) == [10241, 10242, 10243, 10244, 10245, 10246]


def damaged(**changes: object) -> str:
    return json.dumps({**json.loads(record.dump(RECORD)), **changes})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        damaged(version=2),
        damaged(nodes=3),
        damaged(ports=[]),
        damaged(nodes="x"),
        damaged(variant={"jobcomp": True, "magic": 1}),
        damaged(variant=3),
    ],
)
def test_damage_is_an_error_that_names_the_file(text: str) -> None:
    with pytest.raises(ClusterError, match=r"^cluster\.json cannot be read"):
        record.parse(text, Path("cluster.json"))


def test_a_record_from_before_the_variants_is_a_plain_clusters() -> None:
    data = json.loads(record.dump(RECORD))
    del data["variant"]
    del data["ports"]["slurmdbd"]
    known = record.parse(json.dumps(data), Path("cluster.json"))
    assert known.variant == Variant()
    assert known.ports.slurmdbd is None


@pytest.mark.parametrize("nodes", [-1, 0, 65])
def test_refuses_a_senseless_number_of_nodes(nodes: int) -> None:
    with pytest.raises(ClusterError, match="1 to 64"):
        record.check_nodes(nodes)


def test_no_file_is_no_record(tmp_path: Path) -> None:
    assert record.load(tmp_path / "cluster.json") is None


def test_a_neighbour_of_another_version_still_holds_its_ports(tmp_path: Path) -> None:
    data = json.loads(record.dump(RECORD))
    data["variant"] = {"memory": True, "of_a_later_version": 1}
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ClusterError):
        record.load(path)
    neighbour = record.load_neighbour(path)
    assert neighbour is not None
    assert neighbour.memory
    assert neighbour.ports == set(RECORD.ports.all())
    assert record.load_neighbour(tmp_path / "none.json") is None

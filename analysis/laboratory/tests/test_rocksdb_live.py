"""Alabed's methods on db_bench: what it says, and what is kept of a study; without the program."""

import json

import pytest
from measure_local.programs.program import RunFailed
from rocksdb_live import bench, study

SAID = """
fillrandom   :       5.451 micros/op 183383 ops/sec 0.109 seconds 20000 operations;   72.8 MB/s
mixgraph     :       4.536 micros/op 220449 ops/sec 0.172 seconds 37600 operations;  113.7 MB/s
deleterandom :       3.000 micros/op 333333 ops/sec 0.007 seconds 2400 operations;
rocksdb.block.cache.data.miss COUNT : 26771
rocksdb.compact.write.bytes COUNT : 0
rocksdb.flush.write.bytes COUNT : 3799768
"""


def test_the_filling_is_not_timed_and_measures_are_positive() -> None:
    run = bench.read(SAID)
    assert run.elapsed == pytest.approx(0.179)
    assert run.measures == {
        "compacted_bytes": 1.0,
        "flushed_bytes": 3799769.0,
        "missed_blocks": 26772.0,
    }


@pytest.mark.parametrize("lost", ["deleterandom", "rocksdb.block.cache.data.miss"])
def test_a_run_that_does_not_say_all_has_failed(lost: str) -> None:
    lines = [line for line in SAID.splitlines() if not line.startswith(lost)]
    with pytest.raises(RunFailed, match=lost):
        bench.read("\n".join(lines))


def test_all_ten_parameters_of_the_slides_have_their_default_among_their_levels() -> None:
    described = json.loads(bench.space())
    assert len(described["parameters"]) == 10
    for parameter in described["parameters"]:
        assert bench.DEFAULT[parameter["name"]] in parameter["values"]
        assert parameter["values"] == sorted(parameter["values"])


def test_of_a_study_its_times_and_expectations_are_kept() -> None:
    runs = [
        {"values": bench.DEFAULT, "elapsed": 0.2},
        {
            "values": bench.DEFAULT,
            "elapsed": None,
            "predicted": 0.123456,
            "factor": 1.1,
            "measures": ["flushed_bytes"],
        },
    ]
    assert study.kept({"method": "BO", "seed": 3, "runs": runs}) == {
        "method": "BO",
        "seed": 3,
        "elapsed": [0.2, None],
        "predicted": [None, 0.1235],
        "factor": [None, 1.1],
        "measures": [0, 1],
    }

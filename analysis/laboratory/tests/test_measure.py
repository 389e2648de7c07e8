"""The exhaustive measurement, without a cluster: grid, order, journal, agreement, table."""

import csv
import json
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from measure import publish
from measure.agreement import agreement, kendall_w, ranks
from measure.grid import romio
from measure.journal import Journal, Measured
from measure.plan import Plan, PlanError, Planned, parameters_of
from measure.side_by_side import RunFailed
from measure_burst_buffer import job
from measure_burst_buffer.grid import JOB, burst_buffer
from peers.tables import Table

ROOT = Path(__file__).parents[3]
CATALOGUE = (ROOT / "deploy/accelerators.d/romio.toml").read_text("utf-8")
DATA = ROOT / "analysis/data"
DAEMON = ROOT / "target/release/burst-buffer"


def plan(blocks: int = 3, seed: int = 5) -> Plan:
    whole = romio(CATALOGUE, blocks, seed)
    small = parameters_of(
        CATALOGUE,
        {"cb_buffer_size": [1048576, 16777216], "romio_cb_read": ["disable", "automatic"]},
    )
    return replace(whole, parameters=small)


def made(runs: Sequence[Planned], elapsed: float = 1.5) -> list[Measured]:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Measured(run, 10 + i, began + timedelta(seconds=0.5 * i), elapsed)
        for i, run in enumerate(runs)
    ]


def everything(of: Plan) -> list[Planned]:
    return [run for block in range(of.blocks) for run in of.block(block)]


def test_the_grid_is_large_enough_and_holds_the_default() -> None:
    whole = romio(CATALOGUE, 8, 1)
    assert len(set(whole.points)) == len(whole.points) >= 200
    assert whole.default in whole.points
    assert whole.named(whole.default)["romio_cb_write"] == "automatic"


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({"cb_moods": [1]}, "no parameter 'cb_moods'; it has cb_buffer_size"),
        ({"cb_buffer_size": [7, 16777216]}, "different ones of [1048576"),
        ({"cb_buffer_size": [16777216, 16777216]}, "different ones"),
        ({"cb_buffer_size": [1048576]}, "the default, 16777216, must be among"),
    ],
)
def test_a_grid_that_the_catalogue_does_not_allow_is_refused(
    levels: dict[str, list[int]], words: str
) -> None:
    with pytest.raises(PlanError) as error:
        parameters_of(CATALOGUE, levels)
    assert words in str(error.value)


def test_every_block_holds_every_parametrization_once_in_an_order_of_its_own() -> None:
    whole = romio(CATALOGUE, 8, 1)
    orders = [[run.place for run in whole.block(number)] for number in range(whole.blocks)]
    assert all(sorted(order) == list(range(len(whole.points))) for order in orders)
    assert len({tuple(order) for order in orders}) == whole.blocks
    assert {run.block for run in whole.block(3)} == {3}
    assert romio(CATALOGUE, 8, 1).block(7) == whole.block(7)
    assert romio(CATALOGUE, 8, 2).block(7) != whole.block(7)


def test_an_interrupted_measurement_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    runs = everything(plan())
    journal = Journal(tmp_path, plan())
    journal.append(made(runs[:5]))
    journal.append([])
    journal.sync()
    with (tmp_path / "runs.csv").open("a") as file:
        file.write("2,0,99,2026-01-01T0")
    again = Journal(tmp_path, plan())
    assert again.measured == made(runs[:5])
    assert again.missing(runs) == runs[5:]
    again.append(made(runs)[5:])
    assert Journal(tmp_path, plan()).missing(runs) == []


def test_runs_of_two_plans_are_not_mixed(tmp_path: Path) -> None:
    Journal(tmp_path, plan(seed=5))
    with pytest.raises(PlanError, match="another plan"):
        Journal(tmp_path, plan(seed=6))


def test_a_row_that_is_no_run_is_named(tmp_path: Path) -> None:
    Journal(tmp_path, plan())
    with (tmp_path / "runs.csv").open("a") as file:
        file.write("0,zero,10,2026-01-01T00:00:00Z,1.5\n")
    with pytest.raises(PlanError, match=r"runs\.csv, line 2"):
        Journal(tmp_path, plan())


def test_the_table_is_read_as_any_other(tmp_path: Path) -> None:
    small = plan()
    runs = everything(small)
    measured = [replace(run, elapsed=1.0 + run.planned.place) for run in made(runs)]
    publish.write(tmp_path, small, measured, {"cores": "2"})
    table = Table(tmp_path / "romio.json")
    assert table.truths == [1.0, 2.0, 3.0, 4.0]
    assert table.points[table.default] == (1, 1)
    with (tmp_path / "romio.csv").open() as file:
        rows = list(csv.DictReader(file))
    orders = {(int(row["rep"]), int(row["order"])): row for row in rows}
    assert len(orders) == len(runs)
    for order, run in enumerate(runs):
        row = orders[run.block, order]
        assert row["cb_buffer_size"] == str(small.points[run.place][0])
    assert publish.matrix(small, measured) == [[1.0 + place] * 3 for place in range(4)]
    assert json.loads((tmp_path / "romio.json").read_text())["machine"] == {"cores": "2"}


def test_ranks_of_equal_values_are_shared() -> None:
    assert ranks([3.0, 1.0, 3.0, 2.0]) == [3.5, 1.0, 3.5, 2.0]


def test_concordance_is_that_of_a_worked_example() -> None:
    # Siegel and Castellan, Nonparametric Statistics (1988): three judges rank six applicants.
    judges = [[1, 6, 3, 2, 5, 4], [1, 5, 6, 4, 2, 3], [6, 3, 2, 5, 4, 1]]
    assert kendall_w(list(zip(*judges, strict=True))) == pytest.approx(0.16, abs=0.005)


def test_blocks_that_agree_are_told_from_drift_and_from_noise() -> None:
    generator = random.Random(1)

    def times(effect: float, drift: float, noise: float) -> list[list[float]]:
        rows = [generator.gauss(0.0, effect) for _ in range(200)]
        return [
            [2.0 ** (row + drift * block + generator.gauss(0.0, noise)) for block in range(8)]
            for row in rows
        ]

    quiet = agreement(times(1.0, 0.0, 0.1))
    assert quiet.parametrization > 0.97
    assert min(quiet.icc_run, quiet.kendall_w) > 0.97
    assert quiet.icc_mean > quiet.icc_run
    drifting = agreement(times(1.0, 0.5, 0.1))
    assert drifting.block > 0.4
    assert drifting.icc_run < 0.7 < drifting.kendall_w
    assert drifting.medians[0] < 0.5
    assert drifting.medians[-1] > 2.0
    noisy = agreement(times(0.0, 0.0, 1.0))
    assert noisy.rest > 0.9
    assert noisy.kendall_w < 0.2
    assert noisy.friedman == pytest.approx(8 * 199 * noisy.kendall_w)
    assert 0.02 < noisy.outliers < 0.2


@pytest.mark.parametrize("name", ["romio", "burst-buffer"])
def test_the_table_that_is_shipped_is_what_the_plan_says(name: str) -> None:
    path = DATA / f"{name}.json"
    described = json.loads(path.read_text("utf-8"))
    blocks, seed = described["blocks"], described["seed"]
    whole = romio(CATALOGUE, blocks, seed) if name == "romio" else burst_buffer(blocks, seed)
    assert blocks >= 8
    assert [p["name"] for p in described["parameters"]] == [p.name for p in whole.parameters]
    assert described["default"] == whole.named(whole.default)
    assert described["workload"] == str(whole.workload)
    with path.with_suffix(".csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(everything(whole)) >= 1600
    orders = {int(row["order"]) for row in rows}
    assert orders == set(range(len(rows)))
    for index, row in enumerate(rows):
        place, block = divmod(index, whole.blocks)
        named = {name: str(value) for name, value in whole.named(whole.points[place]).items()}
        assert {name: row[name] for name in named} == named
        # Within its block: a run that did not count was made again at the block's end.
        assert (int(row["rep"]), int(row["order"]) // len(whole.points)) == (block, block)


def test_more_blocks_go_on_with_the_same_journal(tmp_path: Path) -> None:
    few, more = burst_buffer(1, 1), burst_buffer(2, 1)
    made_before = [replace(run, job_id=0, load=1.25) for run in made(few.block(0))]
    Journal(tmp_path, few).append(made_before)
    again = Journal(tmp_path, more)
    assert again.measured == made_before, "with the load of each run"
    assert again.missing(everything(more)) == more.block(1)


@pytest.mark.skipif(
    os.geteuid() != 0 or not DAEMON.exists() or not Path("/dev/fuse").exists(),
    reason="it needs root, /dev/fuse and the instrument: make test-tools",
)
def test_a_run_of_the_instrument_takes_what_its_slow_side_needs() -> None:
    small = replace(JOB, each_mib=4, read_mib=2, computes=0.0, instrument=("--rate=20",))
    four = {"workers": 4, "destagers": 4, "cache_mib": 2, "threshold": 50}
    elapsed = job.run(small, DAEMON, four, 1)
    assert 0.3 < elapsed < 10.0, "6 MiB at the least at 20 MB/s"
    with pytest.raises(RunFailed, match="does not start"):
        job.run(replace(small, instrument=("--nonsense",)), DAEMON, four, 1)

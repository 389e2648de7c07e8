"""A study that has nothing to win says so and stops: no I/O, or none by the accelerator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusters import STUDY_SETTINGS, cluster_of_its_own
from harness import ALICE, Json, Site, asked, roles

LITTLE_IO = (
    "stop.little_io.share=0.05",
    "stop.little_io.call_ms=0.5",
    "stop.little_io.mb_per_second=10",
    "stop.unread_runs=2",
)
COMPUTING = "end=$((SECONDS + 3)); while ((SECONDS < end)); do :; done"
"""Two to three seconds in the shell itself."""
WRITING = "dd if=/dev/zero of=$HOME/$SLURM_JOB_ID.data bs=1M count=40 status=none"


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster whose studies end where I/O cannot matter."""
    settings = (*STUDY_SETTINGS, *LITTLE_IO)
    with cluster_of_its_own(request, "little io", study_settings=settings) as site:
        site.introduce_nodes()
        yield site


def test_a_job_that_only_computes_is_told_that_there_is_nothing_to_win(site: Site) -> None:
    app = "little-io-computes"
    runs: list[Json] = []
    # After its baseline every other run is a control run, by a draw.
    while "settled" not in roles(runs):
        assert len(runs) < 20, f"no run of what was chosen: {roles(runs)}"
        job = site.sbatch(COMPUTING, asked(app))
        assert site.judged(job)["state"] == "counted"
        runs = site.history(app, ALICE)
    assert roles(runs)[:2] == ["baseline", "baseline"]
    assert {run["phase"] for run in runs[2:]} == {"settled"}, "it explores what cannot matter"
    assert all(run["differs"] == {} for run in runs)
    told = "there is nothing to win: the default reads and writes 0."
    assert told in site.tuner(ALICE, "explain", str(job.job_id)).stdout
    (replay,) = site.ask(ALICE, "explain", str(job.job_id), "--replay")
    assert replay["same"], replay


def test_a_script_without_mpi_io_is_told_that_romio_cannot_help_it(site: Site) -> None:
    app = "little-io-no-mpi"
    runs: list[Json] = []
    while "settled" not in roles(runs):
        assert len(runs) < 20, f"no run of what was chosen: {roles(runs)}"
        job = site.sbatch(f"{COMPUTING}; {WRITING}", asked(app))
        assert site.judged(job)["state"] == "counted"
        runs = site.history(app, ALICE)
    assert roles(runs)[:2] == ["baseline", "baseline"]
    assert not {"design", "search"} & set(roles(runs)), "it explores what nothing reads"
    assert all(run["applied"] == {"kind": "default"} for run in runs), "empty files are none"
    given = [run["measures"].get("delivered_files") for run in runs]
    assert given[:2] == [1, 1]
    assert set(given[2:]) == {None}, "once it is known nothing is given"
    told = "in 2 runs nothing read the accelerator's settings"
    assert told in site.tuner(ALICE, "explain", str(job.job_id)).stdout
    (study,) = site.ask(ALICE, "status", app)
    assert [one for one in study["warnings"] if told in one], study["warnings"]
    (replay,) = site.ask(ALICE, "explain", str(job.job_id), "--replay")
    assert replay["same"], replay


def test_a_job_that_reads_what_it_is_given_is_tuned_as_ever(site: Site) -> None:
    app = "little-io-reads"
    reading = 'if [ -n "${ROMIO_HINTS:-}" ]; then cat "$ROMIO_HINTS" > /dev/null; fi'
    for _ in range(7):
        assert site.run(f"{WRITING}; {reading}", asked(app))["state"] == "counted"
    runs = site.history(app, ALICE)
    assert roles(runs)[:2] == ["baseline", "baseline"]
    assert not {"settled", "control"} & set(roles(runs)), "it ended before its eight runs"
    given = [run for run in runs if run["differs"] or run["role"] == "baseline"]
    assert all(run["measures"]["delivered_files_read"] == 1 for run in given), given

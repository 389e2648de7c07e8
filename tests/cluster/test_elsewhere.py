"""A job that names no accelerator gets one that can matter to it, or is told that none can."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusters import STUDY_SETTINGS, cluster_of_its_own
from devcluster import Variant
from harness import ALICE, Json, Site, asked, roles
from page_cache import allowed

SETTINGS = ("stop.unread_runs=2", "stop.little_io.share=0.03")
PYTHON = """
/usr/bin/python3 -c '
import sys, time
with open(sys.argv[1], "wb") as file:
    for _ in range({mebibytes}):
        file.write(bytes(1 << 20))
end = time.process_time() + 1
while time.process_time() < end:
    pass
' $HOME/$SLURM_JOB_ID.data
"""
"""Writes so much through the page cache, without MPI, and computes for a second."""
STRIDED = (
    "srun --mpi=pmi2 strided --file $HOME/$SLURM_JOB_ID.data --block-size 512 --blocks 500"
    " --collective"
)
CACHE = "page-cache"


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster that has the page cache to offer where ROMIO cannot matter."""
    settings, variant = (*STUDY_SETTINGS, *SETTINGS), Variant(otherwise=(CACHE,))
    with cluster_of_its_own(request, "elsewhere", study_settings=settings, variant=variant) as site:
        site.introduce_nodes()
        yield site


def counted(site: Site, body: str, *options: str) -> tuple[Json, list[str]]:
    """Run a job that is to count; return its run with what decided, and what sbatch said."""
    job = site.sbatch(body, *options)
    site.counted(job)
    detail = site.explain(job, ALICE)
    return {**detail["run"], "decided": detail["suggestion"]["overrides"]}, job.said()


def replayed(site: Site, explained: Json) -> None:
    """Check that a decision is made again from what it was made from."""
    (replay,) = site.ask(ALICE, "explain", str(explained["job_id"]), "--replay")
    assert replay["same"], replay


def test_a_script_without_mpi_ends_its_search_after_the_baseline(site: Site) -> None:
    app, body = "elsewhere-nothing", PYTHON.format(mebibytes=60)
    # Its nodes are not its own: nobody may change the page cache for it.
    for _ in range(2):
        counted(site, body, asked(app))
    explained, said = counted(site, body, asked(app))
    runs = site.history(app, ALICE)
    assert roles(runs)[:2] == ["baseline", "baseline"]
    assert runs[-1]["phase"] == "settled"
    assert {run["accelerator"] for run in runs} == {"romio"}
    why = "romio cannot matter; nor can page-cache: it changes nodes"
    assert why in explained["reason"], explained["reason"]
    assert explained["decided"]["choice"]["runs"] == 2
    assert any("there is nothing to win: in 2 runs nothing read" in line.lower() for line in said)
    assert any(why in line for line in said), said
    (study,) = site.ask(ALICE, "status", app)
    assert any(why in warning for warning in study["warnings"]), study["warnings"]
    replayed(site, explained)


def test_a_script_that_writes_through_the_page_cache_gets_that(site: Site) -> None:
    app, body = "elsewhere-cache", PYTHON.format(mebibytes=60)
    with allowed(site):
        for _ in range(2):
            explained, _ = counted(site, body, asked(app), "--exclusive")
            assert (explained["accelerator"], explained["role"]) == ("romio", "baseline")
        explained, said = counted(site, body, asked(app), "--exclusive")
        assert (explained["accelerator"], explained["role"]) == (CACHE, "baseline")
        why = "page-cache, because a run writes "
        assert why in explained["reason"], explained["reason"]
        told = f"application {app}, accelerator page-cache: new"
        assert any(told in line and why in line for line in said), said
        replayed(site, explained)
        # Who names an accelerator gets it, and is told.
        named, said = counted(site, body, asked(app, "romio"), "--exclusive")
        assert named["accelerator"] == "romio"
        assert "choice" not in named["decided"]
        assert any("in 2 runs nothing read" in line for line in said), said
        replayed(site, named)
    romio = next(
        study for study in site.ask(ALICE, "status", app) if study["accelerator"] == "romio"
    )
    told = f"Jobs that name no accelerator get {why}"
    assert any(told in warning for warning in romio["warnings"]), romio["warnings"]


def test_a_job_of_mpi_io_goes_on_with_romio(site: Site) -> None:
    app = "elsewhere-mpi"
    for _ in range(2):
        explained, _ = counted(site, STRIDED, asked(app), "--ntasks=4")
        assert explained["measures"]["delivered_files_read"] == 1
    explained, _ = counted(site, STRIDED, asked(app), "--ntasks=4")
    assert explained["accelerator"] == "romio"
    assert explained["role"] in ("design", "search"), explained["reason"]
    assert "choice" not in explained["decided"]

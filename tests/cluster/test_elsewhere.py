"""A job that names no accelerator gets one that can matter to it, or is told that none can."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusters import STUDY_SETTINGS, cluster_of_its_own
from devcluster import Variant
from harness import ALICE, Json, Site, asked
from page_cache import allowed

SETTINGS = ("stop.unread_runs=2", "stop.little_io=0.03")
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


def test_a_job_of_mpi_io_goes_on_with_romio(site: Site) -> None:
    app = "elsewhere-mpi"
    for _ in range(2):
        explained, _ = counted(site, STRIDED, asked(app), "--ntasks=4")
        assert explained["measures"]["delivered_files_read"] == 1
    explained, _ = counted(site, STRIDED, asked(app), "--ntasks=4")
    assert explained["accelerator"] == "romio"
    assert explained["role"] in ("design", "search"), explained["reason"]
    assert "choice" not in explained["decided"]

"""Slurm's word that is delivered twice is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusters import cluster_of_its_own
from devcluster import Variant
from harness import Job, Json, Site, asked

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster on which only the collector brings Slurm's word."""
    variant = Variant(jobcomp=True, sources=("jobcomp",))
    with cluster_of_its_own(request, "late truth", variant=variant) as site:
        yield site


def test_a_word_that_is_said_again_changes_nothing(site: Site) -> None:
    job = site.sbatch("sleep 1", asked("word-twice"))
    before = site.judged(job)
    deliver_all_again(site)
    # A later word shows that the earlier ones were delivered again.
    site.judged(site.sbatch("true", asked("word-twice")))
    assert words(site, job) == ["COMPLETED"]
    assert site.runs(job) == [before]
    assert judgements(site, before) == 1


def words(site: Site, job: Job) -> list[str]:
    """Return Slurm's words on the job, as they are stored."""
    return [row[0] for row in site.sql(f"select state from outcomes where job_id = {job.job_id}")]


def judgements(site: Site, run: Json) -> int:
    """Return how often the run was judged."""
    ((count,),) = site.sql(f"select count(*) from judgements where run_id = {run['run_id']}")
    return int(count)


def deliver_all_again(site: Site) -> None:
    """Have the collector forget how far it has got."""
    with site.parts_stopped("collector"):
        for path in site.paths.collector_spool.iterdir():
            if path.is_file():
                path.unlink()

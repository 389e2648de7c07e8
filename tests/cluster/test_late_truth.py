"""Slurm's word may come before the report, long after it, twice, or changed: the run says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import cluster_of_its_own
from devcluster import Variant
from harness import ALICE, Job, Json, Site, asked, await_true

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster on which only the collector brings Slurm's word."""
    variant = Variant(jobcomp=True, sources=("jobcomp",))
    with cluster_of_its_own(request, "late truth", variant=variant) as site:
        yield site


def test_a_report_waits_for_slurms_word(site: Site) -> None:
    with site.parts_stopped("collector"):
        job = site.sbatch("sleep 1", asked("late-word"))
        site.ended(job)
        await_true("the report to be stored", lambda: reported(site, job))
        (run,) = site.runs(job)
        assert (run["state"], run["outcome"]) == ("in_flight", None)
    run = site.judged(job)
    assert (run["state"], run["outcome"]) == ("counted", "COMPLETED"), run["verdict"]
    nodes = f"select node_list from outcomes where run_id = {run['run_id']}"
    assert site.sql(nodes) == [[run["node"]]]


def test_slurms_word_waits_for_the_report(site: Site) -> None:
    with site.part_frozen("flusher"):
        with site.parts_stopped("io-autotuned"):
            # Neither the start nor the report is heard of.
            job = site.sbatch("sleep 1", asked("early-word"))
            site.ended(job)
            await_true("the report to wait", lambda: waits(site, job))
        await_true("Slurm's word to be stored", lambda: words(site, job) == ["COMPLETED"])
        assert site.runs(job) == []
    run = site.judged(job)
    assert (run["state"], run["outcome"]) == ("counted", "COMPLETED"), run["verdict"]
    assert run["applied"]["kind"] == "default"


def test_a_word_that_is_said_again_changes_nothing(site: Site) -> None:
    job = site.sbatch("sleep 1", asked("word-twice"))
    before = site.judged(job)
    deliver_all_again(site)
    # A later word shows that the earlier ones were delivered again.
    site.judged(site.sbatch("true", asked("word-twice")))
    assert words(site, job) == ["COMPLETED"]
    assert site.runs(job) == [before]
    assert judgements(site, before) == 1


def test_a_run_that_counted_is_corrected_when_the_truth_comes_late(site: Site) -> None:
    app = "word-corrected"
    good = site.run("sleep 1", asked(app))
    job = site.sbatch("sleep 3", asked(app))
    site.counted(job)
    wrong = site.study(app)["default"]
    assert wrong["n"] == 2

    with site.parts_stopped("collector"):
        say_instead(site, job, "COMPLETED", "NODE_FAIL")
    deliver_all_again(site)
    await_true("the run to be judged again", lambda: site.runs(job)[0]["state"] != "counted")
    (run,) = site.runs(job)
    assert (run["state"], run["outcome"]) == ("not_counted", "NODE_FAIL"), run["verdict"]
    assert judgements(site, run) == 2, "the first judgement is to stay on record"
    right = site.study(app)["default"]
    assert (right["n"], right["mean"]) == (1, good["elapsed"]), "the cache is not built anew"
    assert "NODE_FAIL" in site.tuner(ALICE, "explain", str(job.job_id)).stdout


def reported(site: Site, job: Job) -> bool:
    """Tell whether a report of the job is stored."""
    query = (
        f"select count(*) from reports join runs on runs.id = run_id where job_id = {job.job_id}"
    )
    return site.sql(query) != [["0"]]


def waits(site: Site, job: Job) -> bool:
    """Tell whether a report of the job waits in the spool, and nothing of it on the node."""
    return any(f".{job.job_id}." in path.name for path in site.undelivered())


def words(site: Site, job: Job) -> list[str]:
    """Return Slurm's words on the job, as they are stored."""
    return [row[0] for row in site.sql(f"select state from outcomes where job_id = {job.job_id}")]


def judgements(site: Site, run: Json) -> int:
    """Return how often the run was judged."""
    ((count,),) = site.sql(f"select count(*) from judgements where run_id = {run['run_id']}")
    return int(count)


def spool_files(site: Site) -> list[Path]:
    """Return the files that the job-completion script has written."""
    return sorted(site.paths.jobcomp_spool.glob("outcomes-*"))


def say_instead(site: Site, job: Job, word: str, other: str) -> None:
    """Change what the job-completion script has written of a job."""
    changed = 0
    for path in spool_files(site):
        text = path.read_text(encoding="utf-8")
        text, count = re.subn(rf"(?m)^3 {job.job_id} {word} ", f"3 {job.job_id} {other} ", text)
        changed += count
        # In place: the file stays slurmctld's user's.
        path.write_text(text, encoding="utf-8")
    assert changed == 1, f"the script has not written that job {job.job_id} is {word}"


def deliver_all_again(site: Site) -> None:
    """Have the collector forget how far it has got."""
    with site.parts_stopped("collector"):
        for path in site.paths.collector_spool.iterdir():
            if path.is_file():
                path.unlink()

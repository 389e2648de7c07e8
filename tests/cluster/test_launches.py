"""Slurm's own id of a launch, the SLUID: what tells it from any other, however alike they are."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clusters import cluster_of_its_own, skip_before
from devcluster import files
from harness import ALICE, Job, Site, asked, await_true, lines

SINCE = (25, 11)
FORGED = "sBR1JB8J1YM400"
"""An id that Slurm might write, and did not."""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster whose job ids may come back."""
    skip_before(SINCE, "tells hooks no SLURM_JOB_SLUID")
    with cluster_of_its_own(request, "launches") as site:
        site.introduce_nodes()
        yield site


@contextmanager
def hooks_tell(site: Site) -> Iterator[Path]:
    """Have each helper tell what it was told of its launch: command, job, restarts, SLUID."""
    helper = site.paths.bin / "io-autotune-node"
    real, told = helper.with_suffix(".real"), site.paths.scratch / "hooks.told"
    helper.rename(real)
    told.write_text("", encoding="utf-8")
    wrapper = (
        f'#!/bin/bash\n[ "$1" = start ] || [ "$1" = finish ] && echo "$1 $SLURM_JOB_ID'
        f' ${{SLURM_JOB_RESTART_COUNT-none}} ${{SLURM_JOB_SLUID-none}}" >> {told}\n'
        f'exec -a {helper} {real} "$@"\n'
    )
    files.write(helper, wrapper, mode=0o755)
    try:
        yield told
    finally:
        real.rename(helper)


def stored(site: Site, job: Job) -> list[str]:
    """Return the ids of a job's runs, in the order in which they were made."""
    query = f"select coalesce(sluid, 'none') from runs where job_id = {job.job_id} order by id"
    return [sluid for (sluid,) in site.sql(query)]


def test_each_launch_has_slurms_id_of_it(site: Site) -> None:
    """Attack (environment): A request or SLURM_JOB_SLUID has another launch's id, or a malformed
    one.
    Outcome: The launch has the id that Slurm gave it.
    """
    app = "launches"
    began = site.paths.home(ALICE) / f"{app}.began"
    body = (
        f"[ ${{SLURM_RESTART_COUNT:-0}} -gt 0 ] && exec srun -N2 sh -c 'echo $SLURM_JOB_SLUID'"
        f"; touch {began}; sleep 300"
    )
    with hooks_tell(site) as told:
        options = (asked(app), "--requeue", "--nodes=2")
        job = site.sbatch(body, *options, env={"SLURM_JOB_SLUID": FORGED})
        await_true("the first launch to run", began.exists)
        site.requeue(job)
        second = site.judged(job, restart_count=1)
        assert (second["state"], second["outcome"]) == ("counted", "COMPLETED"), second["verdict"]
        assert site.judged(job, restart_count=0)["outcome"] == "REQUEUED"
        await_true("the directories to go", lambda: not site.job_directories())
        hooks = [line.split() for line in lines(told.read_text(encoding="utf-8"))]
    ids = stored(site, job)
    assert len(set(ids)) == len(ids) == 2, ids
    assert not {"none", FORGED} & set(ids), ids
    # Each hook of a launch is told the launch's own id, on each node.
    of = {
        hook: [sluid for name, _, _, sluid in hooks if name == hook] for hook in ("start", "finish")
    }
    assert sorted(of["start"]) == sorted(of["finish"]) == sorted(ids * 2), hooks
    assert set(lines(site.output(job))) == {ids[1]}


def test_a_job_id_that_comes_back_at_once_is_another_run(site: Site) -> None:
    app = "launches-again"
    first = site.sbatch("sleep 0.3", asked(app))
    assert site.judged(first)["state"] == "counted"
    with site.parts_stopped("slurmctld"):
        # slurmctld is set up anew, and counts from 1.
        shutil.rmtree(site.paths.slurmctld_spool)
        files.directory(site.paths.slurmctld_spool, 0o755)
        shutil.chown(site.paths.slurmctld_spool, "slurm", "slurm")
    site.register_nodes()
    number = 0
    while number < first.job_id - 1:
        number = site.sbatch("true").job_id
    again = site.sbatch("sleep 0.6", asked(app))
    assert again.job_id == first.job_id, "the ids did not come back"
    await_true("the second run's verdict", lambda: ends(site, again) == ["counted", "counted"])
    ids = stored(site, again)
    assert len(set(ids)) == 2, ids
    elapsed = [run["elapsed"] for run in site.runs(again)]
    assert 0.3 <= elapsed[0] < 0.6 <= elapsed[1], elapsed


def ends(site: Site, job: Job) -> list[str]:
    """Return the states of a job's runs."""
    return [run["state"] for run in site.runs(job)]

"""--requeue=expedite: a job is back at once if its node fails, or if it and an epilog fail.

Slurm holds its nodes meanwhile (EXPEDITING), and waits for no credential to expire.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from clusters import VARIANT, cluster_of_its_own, skip_before
from devcluster import Variant, files
from harness import ALICE, ROOT, Job, Json, Site, asked, await_true

SINCE = (25, 11)
EXPLORING = {"baseline", "design", "search"}
ASKED = "--requeue=expedite"


@pytest.fixture(scope="module", params=["squeue", "jobcomp"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster where jobs may ask for it, by each way of Slurm's word."""
    skip_before(SINCE, "has no --requeue=expedite")
    if VARIANT.get("run_in_job"):
        pytest.skip("with RunInJob the Epilog= is ours")
    source: str = request.param
    variant = Variant(expedited_requeue=True, jobcomp=source == "jobcomp")
    with cluster_of_its_own(request, f"expedited {source}", variant=variant) as site:
        site.introduce_nodes()
        yield site


@contextmanager
def epilog_fails_once(site: Site, first: str) -> Iterator[None]:
    """Let the site's epilog fail for the first launch of a job of this name, as a sick node's."""
    epilog, failed = site.paths.etc / "epilog-fails", site.paths.scratch / "epilog.failed"
    files.write(
        epilog,
        f"#!/bin/bash\n[ -e {failed} ] || [ ! -e {first} ] && exit 0\ntouch {failed}\nexit 1\n",
        mode=0o755,
    )
    failed.unlink(missing_ok=True)
    with site.slurm_conf_changed(Epilog=str(epilog)):
        yield
        assert failed.exists(), "no epilog failed"


def bring_back(site: Site) -> None:
    """Take drained and downed nodes into service again."""
    for node, state in site.cluster.node_states().items():
        if state.startswith(("drain", "down")):
            argv = ["scontrol", "update", f"NodeName={node}", "State=RESUME"]
            site.cluster.run_as(ROOT, argv)
    # A node that is resumed, or whose slurmctld has just begun anew, is unknown until it registers.
    await_true("the nodes to be idle", lambda: set(site.cluster.node_states().values()) == {"idle"})


def both(site: Site, job: Job) -> tuple[Json, Json]:
    """Return a job's two runs, judged, and nothing besides."""
    pair = site.judged(job, restart_count=0), site.judged(job, restart_count=1)
    assert len(site.runs(job)) == 2
    await_true("the directories to go", lambda: not site.job_directories())
    return pair


def check(pair: tuple[Json, Json]) -> None:
    first, second = pair
    assert first["state"] == "not_counted", first["verdict"]
    assert (second["state"], second["outcome"]) == ("counted", "COMPLETED"), second["verdict"]
    assert second["elapsed"] >= 1.0, "the launch that failed counts, as a fast one"
    assert second["role"] not in EXPLORING, "a restarted job is no experiment"
    assert first["run_id"] != second["run_id"]


def test_a_job_that_fails_where_an_epilog_fails_is_two_runs(site: Site) -> None:
    app = "expedited-epilog"
    began = site.paths.home(ALICE) / f"{app}.began"
    body = (
        f"[ ${{SLURM_RESTART_COUNT:-0}} -gt 0 ] && exec sleep 1; touch {began}; sleep 0.2; exit 3"
    )
    try:
        with epilog_fails_once(site, str(began)):
            job = site.sbatch(body, asked(app), ASKED)
            pair = both(site, job)
            assert site.ended(job)["ExitCode"] == "0:0"
        assert any(state.startswith("drain") for state in site.cluster.node_states().values())
    finally:
        bring_back(site)
    check(pair)
    assert pair[0]["elapsed"] < 1.0


def test_a_job_whose_node_fails_is_two_runs(site: Site) -> None:
    app = "expedited-node"
    began = site.paths.home(ALICE) / f"{app}.began"
    body = f"[ ${{SLURM_RESTART_COUNT:-0}} -gt 0 ] && exec sleep 1; touch {began}; sleep 300"
    try:
        job = site.sbatch(body, asked(app), ASKED)
        await_true("the first launch to run", began.exists)
        node = site.shown(job)["BatchHost"]
        argv = ["scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test"]
        site.cluster.run_as(ROOT, argv)
        pair = both(site, job)
    finally:
        bring_back(site)
    check(pair)


def test_a_job_that_fails_by_itself_is_held_and_has_failed(site: Site) -> None:
    """Its epilogs are content: Slurm puts it back, held, for its user to look at."""
    app = "expedited-held"
    job = site.sbatch("sleep 0.2; exit 3", asked(app), ASKED)
    run = site.judged(job)
    # squeue knows only that it was put back.
    word = "FAILED" if site.record().variant.jobcomp else "REQUEUED"
    assert (run["state"], run["outcome"]) == ("not_counted", word), run["verdict"]
    site.await_state(job, "REQUEUE_HOLD", "PENDING")
    site.cluster.run_as(ALICE, ["scancel", str(job.job_id)])
    site.ended(job)
    await_true("the directories to go", lambda: not site.job_directories())
    assert len(site.runs(job)) == 1


def test_a_job_that_ends_well_is_not_put_back(site: Site) -> None:
    job = site.sbatch("sleep 0.2", asked("expedited-well"), ASKED)
    assert site.judged(job)["state"] == "counted"
    assert site.ended(job)["Restarts"] == "0"
    assert len(site.runs(job)) == 1

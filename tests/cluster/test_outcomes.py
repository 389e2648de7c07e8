"""How a job ends: failed is never taken for fast, and a second launch is a run of its own."""

from __future__ import annotations

from harness import ALICE, Site, asked, await_true

EXPLORING = {"design", "search"}


def test_what_ends_early_is_not_counted_as_fast(site: Site) -> None:
    """Promise: a failed run is taken for a fast one"""
    app = "outcomes-failing"
    site.counted_run("sleep 1", asked(app))
    failing = {
        "exits with 3": site.sbatch("exit 3", asked(app)),
        "is killed": site.sbatch("kill -SEGV $$", asked(app)),
    }
    began = site.paths.home(ALICE) / f"{app}.began"
    cancelled = site.sbatch(f"touch {began}; sleep 300", asked(app))
    await_true("the work to begin", began.exists)
    site.cluster.run_as(ALICE, ["scancel", str(cancelled.job_id)])

    for what, job in failing.items():
        run = site.judged(job)
        assert (run["state"], run["outcome"]) == ("not_counted", "FAILED"), f"a job that {what}"
        assert run["wait_status"] != 0, f"a job that {what}"
    run = site.judged(cancelled)
    assert (run["state"], run["outcome"]) == ("not_counted", "CANCELLED")

    study = site.study(app)
    assert (study["counted"], study["not_counted"]) == (1, 3)
    assert study["default"]["n"] == 1
    assert study["default"]["mean"] >= 1.0, "a failed run has lowered the mean"


def test_a_failing_step_does_not_hide_behind_a_good_script(site: Site) -> None:
    """Promise: a failed run is taken for a fast one"""
    run = site.run("srun -n1 false; true", asked("outcomes-step"))
    assert (run["state"], run["outcome"]) == ("counted", "COMPLETED"), "the script said it is good"
    run = site.run("set -e; srun -n1 false; true", asked("outcomes-step"))
    assert (run["state"], run["outcome"]) == ("not_counted", "FAILED")


def test_a_requeued_job_is_a_run_of_its_own_and_does_not_explore(site: Site) -> None:
    app = "outcomes-requeued"
    began = site.paths.home(ALICE) / f"{app}.began"
    body = f"[ ${{SLURM_RESTART_COUNT:-0}} -gt 0 ] && exec sleep 1; touch {began}; sleep 300"
    job = site.sbatch(body, asked(app), "--requeue")
    await_true("the first launch to run", began.exists)
    site.requeue(job)

    second = site.judged(job, restart_count=1)
    assert (second["state"], second["outcome"]) == ("counted", "COMPLETED"), second["verdict"]
    assert second["elapsed"] >= 1.0, "the launch that was broken off counts, as a fast one"
    assert second["role"] not in EXPLORING | {"baseline"}, "a restarted job is no experiment"
    assert "restarted" in second["reason"]
    first = site.judged(job, restart_count=0)
    assert (first["state"], first["outcome"]) == ("not_counted", "REQUEUED")
    assert first["run_id"] != second["run_id"]
    assert len(site.runs(job)) == 2

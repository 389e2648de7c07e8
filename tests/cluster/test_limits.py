"""Slurm tells a job's time limit, to the prolog or to who lists jobs; a decision goes by it."""

from __future__ import annotations

from harness import ALICE, ROOT, Json, Site, asked


def test_a_decision_goes_by_the_limit_that_slurm_tells(site: Site) -> None:
    app = "limits-room"
    site.run("true", asked(app), "--time=1")
    # squeue lists a job that is held: a verdict on another that came later has asked it since.
    held = site.sbatch("true", asked(app), "--time=10", "--hold")
    site.run("true", asked("limits-other"))
    site.cluster.run_as(ROOT, ["scontrol", "release", str(held.job_id)])
    run = site.judged(held)
    # From 23.02 on the prolog knows it (SLURM_JOB_END_TIME).
    told_by = "start" if site.slurm_series() >= (23, 2) else "squeue"
    assert limit_of(site, run) == {"seconds": 600, "told_by": told_by}


def limit_of(site: Site, run: Json) -> Json:
    """Return the time limit that the decision on a run went by."""
    detail = site.ask(ALICE, "explain", str(run["job_id"]))[0]
    return detail["suggestion"]["overrides"]["limit"]

"""What the service says of itself and of its decisions can be checked, and is."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from flooding import storm
from harness import ALICE, ROOT, Job, Json, Site, asked, await_true, roles

DEADLINE_MS = 2000
"""By which a prolog gives up."""
EXPLORING = 2
"""As many runs of a study may explore at once on the tests' site."""
GIVEN_UP_SECONDS = 60
"""So old is a run that nobody knows when it is given up (``release_patience_seconds``)."""


def test_every_suggestion_can_be_made_again_from_what_was_stored(site: Site) -> None:
    app = "truth-replay"
    jobs: list[Job] = []
    # Nothing is explored before the default has run twice.
    for together in (1, 1, 10):
        jobs += [site.sbatch("true", asked(app)) for _ in range(together)]
        for job in jobs:
            site.judged(job)
    site.pin(app, {"cb_nodes": "4"})
    jobs.append(site.sbatch("true", asked(app)))
    runs = [site.judged(job) for job in jobs]
    assert {"baseline", "pinned"} <= set(roles(runs))
    # The design waits where the default's first two runs promise it too much regret.
    assert {"design", "search"} & set(roles(runs))
    for job, run in zip(jobs, runs, strict=True):
        (replay,) = site.ask(ALICE, "explain", str(job.job_id), "--replay")
        assert replay["same"], f"job {job.job_id}: {replay}"
        assert replay["recomputed"]["parametrization"] == run["parametrization"]
    text = site.tuner(ALICE, "explain", str(jobs[-1].job_id), "--replay").stdout
    assert "same" in text, text


def test_a_suggestion_that_was_changed_afterwards_is_told(site: Site) -> None:
    app = "truth-changed"
    job = site.sbatch("true", asked(app))
    run = site.judged(job)
    site.sql(
        "update runs set parametrization = jsonb_set(parametrization, '{cb_nodes}', '8')"
        f" where id = {run['run_id']}"
    )
    done = site.tuner(ALICE, "explain", str(job.job_id), "--replay", "--json")
    (replay,) = json.loads(done.stdout)
    assert not replay["same"], replay
    assert done.returncode != 0, "a script that checks would not notice"


@pytest.mark.parametrize("starts", [100, pytest.param(1000, marks=pytest.mark.array)])
def test_many_starts_at_once_are_each_answered_and_few_explore(site: Site, starts: int) -> None:
    app = f"truth-storm-{starts}"
    for number in (1, 2):
        assert site.run("true", asked(app))["role"] == "baseline", f"run {number} of two"
    # As a job with one task has it: the context is to be that of the first two.
    summary = storm(site, app, 1_000_000 + starts, starts, DEADLINE_MS, more=["--cpus-per-node=1"])
    assert summary["lives"] == starts, summary
    assert summary["starts"]["slowest"] < DEADLINE_MS, summary
    assert summary["exploring"] <= EXPLORING, summary
    assert summary["explored"] == summary["exploring"], "the same experiment twice at once"
    started = site.history(app)[2:]
    assert Counter(roles(started)) == Counter(summary["roles"])
    assert len({run["job_id"] for run in started}) == starts, "a job has no run, or two"

    # No such jobs exist, and so nobody will ever report them: after a minute they are given up.
    began = f"started_at = started_at - interval '{GIVEN_UP_SECONDS} seconds'"
    ids = ", ".join(str(run["run_id"]) for run in started)
    site.sql(f"update runs set {began} where id in ({ids})")
    await_true(
        "the runs whose jobs are gone to be given up", lambda: site.study(app)["in_flight"] == 0
    )
    assert {run["state"] for run in site.history(app)[2:]} == {"not_counted"}


def test_different_work_under_one_name_is_observed_until_it_is_accepted(site: Site) -> None:
    """Promise: a wrong gain is reported"""
    app = "truth-mixed"
    for seconds in ("0.1", "0.1", "2", "2", "0.1", "2"):
        run = site.counted_run(f"sleep {seconds}", asked(app, "mode=observe"))
    job = site.sbatch("sleep 0.1", asked(app))
    run = site.judged(job)
    assert run["role"] == "observe", run["reason"]
    assert "app=" in run["reason"], "the reason does not say what to do"
    (warning,) = site.study(app)["warnings"]
    assert "app=" in warning, warning

    site.ask(ALICE, "accept", app, "--why", "its input sizes differ")
    assert site.study(app)["warnings"] == []
    assert site.run("sleep 0.1", asked(app))["role"] != "observe"


def test_doctor_finds_nothing_on_a_healthy_cluster(site: Site) -> None:
    checks = doctor(site)
    assert {check["state"] for check in checks.values()} == {"ok"}, checks
    signs = "sack" if site.record().variant.auth == "slurm" else "munge"
    for name in ("configuration", signs, "caches", "runs in flight", "outcome source squeue"):
        assert name in checks, f"{name} is not looked at: {sorted(checks)}"


def test_doctor_finds_a_cache_that_its_judgements_do_not_add_up_to(site: Site) -> None:
    app = "truth-doctor"
    run = site.counted_run("true", asked(app))
    study = run["study_id"]
    changed = f"from epochs where epochs.id = tested.epoch_id and epochs.study_id = {study}"
    site.sql(f"update tested set mean = mean * 2 {changed}")
    try:
        check = doctor(site, healthy=False)["caches"]
        assert check["state"] == "failed", check
        assert f"study {study}" in check["detail"], check
    finally:
        site.sql(f"update tested set mean = mean / 2 {changed}")
    assert doctor(site)["caches"]["state"] == "ok"


def doctor(site: Site, *, healthy: bool = True) -> dict[str, Json]:
    """Return what the doctor finds as root, by the names of its checks."""
    argv = ["io-autotune", "doctor", f"--spool-dir={site.paths.plugin_spool}", "--json"]
    done = site.cluster.run_as(ROOT, argv, check=False)
    assert (done.returncode == 0) is healthy, f"{done.stdout}\n{done.stderr}"
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}

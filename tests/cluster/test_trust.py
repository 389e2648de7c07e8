"""Nobody sees or steers another user's study, and only root starts and finishes runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from devcluster import accounts, files
from forging import forge
from harness import ALICE, BOB, ROOT, Json, Site, asked

MADE_UP_JOB = 4_000_000
"""A job id that this cluster never gets to."""


def test_a_user_neither_sees_nor_steers_anothers_study(site: Site) -> None:
    """Promise: a user steers another user's study
    Promise: a user reads another user's study

    Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
    steers, undoes or exports them.
    """
    app = "trust-alice"
    run = site.run("true", asked(app), user=ALICE)
    study, job_id = str(run["study_id"]), str(run["job_id"])
    before = site.study(app)

    assert site.ask(BOB, "status", app) == []
    assert site.ask(BOB, "status", "--study", study) == []
    assert site.ask(BOB, "history", app) == []
    assert site.ask(BOB, "history", "--study", study) == []
    for attempt in (
        ["explain", job_id],
        ["pin", app, "cb_nodes=2", "--why", "mischief"],
        ["pin", study, "cb_nodes=2", "--why", "mischief"],
        ["pin", study, "--end", "--why", "mischief"],
        ["reset", study, "--why", "mischief"],
    ):
        done = site.tuner(BOB, *attempt)
        assert done.returncode != 0, f"bob may {attempt}"
        assert "no " in done.stderr, f"bob is told more than that there is nothing: {done.stderr}"
    assert site.study(app) == before, "something has changed"
    assert site.sql(f"select count(*) from audit where study_id = {study}") == [["0"]]

    for user in (ALICE, ROOT):
        assert [one["study_id"] for one in site.ask(user, "status", app)] == [run["study_id"]]
        assert site.ask(user, "explain", job_id)[0]["run"]["run_id"] == run["run_id"]


def test_a_user_can_neither_start_nor_finish_a_run(site: Site) -> None:
    """Attack (others): Somebody without the role starts or finishes runs, tells outcomes, or
    completes directives.
    """
    home = site.paths.home(BOB)
    # The nodes' door does not even open: bob asks at the users'.
    ours = site.paths.client_toml.read_text(encoding="utf-8")
    config = site.paths.scratch / "trust-client.toml"
    files.write(config, re.sub(r"(?m)^node_endpoints = .*\n", "", ours), mode=0o644)
    places = ["--run-dir", str(home / "run"), "--spool-dir", str(home / "spool")]
    made_up = site.hook_environment(MADE_UP_JOB, "app=trust-forged,mode=tune", user=BOB)
    for action in ("start", "finish"):
        argv = ["io-autotune-node", action, f"--config={config}", *places]
        done = site.cluster.run_as(BOB, argv, env=made_up, check=False)
        assert "only root" in done.stderr, f"{action} was not refused as forbidden: {done.stderr}"
    recorded = site.sql(f"select count(*) from runs where job_id = {MADE_UP_JOB}")
    assert recorded == [["0"]], "a made-up run is in the database"


def test_a_forged_request_is_still_its_users_own(site: Site, forger: Path) -> None:
    """Promise: a user steers another user's study"""
    run = site.judged(forge(site, forger, "app=trust-forged,mode=tune"))
    assert run["application"] == "trust-forged", "it did not reach the prolog"
    uid = str(accounts.find(ALICE).uid)
    assert str(run["uid"]) == uid


@pytest.mark.parametrize(
    "forged",
    [
        "app=../../etc/passwd,mode=tune",
        "app=a,app=b",
        "accelerator=../romio",
        "mode=steer",
        "app=\x01;touch /",
        "app=a\nset PATH=/",
        "name=a%0z,mode=tune",
        "name=a%00b,mode=tune",
        f"comment={'a' * 257},mode=tune",
        "x" * 100_000,
        "",
    ],
    ids=[
        *("path", "twice", "accelerator", "mode", "control", "lines", "escape", "zero", "comment"),
        *("long", "empty"),
    ],
)
def test_a_forged_request_harms_no_job(site: Site, forger: Path, forged: str) -> None:
    """Promise: a job fails

    Attack (environment): A user forges the record `IO_AUTOTUNE_SET`, or another plugin the request
    at submission.
    Outcome: The step gets its own hints or none, and keeps the user's variables.
    """
    job = forge(site, forger, forged)
    fields = site.ended(job)
    assert (fields["JobState"], fields["ExitCode"]) == ("COMPLETED", "0:0")
    assert site.output(job) == "done\n"
    tuned = [run for run in site.runs(job) if run["role"] != "observe"]
    assert tuned == [], "what cannot be read was taken for a wish"


def test_a_forged_record_does_not_steer_a_job(site: Site) -> None:
    """`IO_AUTOTUNE_SET` is ours, but it comes through the user's hands.

    Attack (environment): A user forges the record `IO_AUTOTUNE_SET`, or another plugin the request
    at submission.
    Outcome: The step gets its own hints or none, and keeps the user's variables.
    """
    app = "trust-record"
    site.pinned(app, {"cb_nodes": "2"})
    for record in (
        "1:ROMIO_HINTS=/etc/passwd",
        "nonsense",
        "9" * 99 + ":PATH=/",
        "1:PATH=/usr/bin",
    ):
        job = site.sbatch("cat $ROMIO_HINTS", asked(app), env={"IO_AUTOTUNE_SET": record})
        run = site.judged(job)
        assert site.output(job) == "cb_nodes 2\n"
        assert applied_kind(run) == "parametrization"


def applied_kind(run: Json) -> str:
    """Return what kind of thing was applied; fail readably when nothing is known."""
    assert run["applied"] is not None, f"nothing is known of what was applied: {json.dumps(run)}"
    return run["applied"]["kind"]


def test_an_account_is_kept_and_cannot_speak_of_another_job(site: Site) -> None:
    """Attack (environment): A user's account has a second line that looks like another job's end.
    Outcome: The other job is judged by its own end.
    """
    # Accounts are not enforced here: whoever submits writes anything, and squeue prints it so.
    victim = site.sbatch("exit 3", asked("trust-victim"), "--hold", "--account=physics", user=ALICE)
    row = f"x\n{victim.job_id} completed 0 2026-11-21t12:33:14 2026-11-21t12:33:15 0:01 5:00"
    forger = site.run("true", asked("trust-forger"), f"--account={row}", user=BOB)
    site.cluster.run_as(ALICE, ["scontrol", "release", str(victim.job_id)])

    assert site.judged(victim)["outcome"] == "FAILED"
    assert forger["state"] == "counted"
    charged = "select distinct coalesce(account, '') from report.judgements where run_id = {}"
    assert site.sql(charged.format(site.judged(victim)["run_id"])) == [["physics"]]
    assert site.sql(charged.format(forger["run_id"])) == [[""]]

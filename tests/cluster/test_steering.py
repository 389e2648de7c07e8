"""pin, unpin and reset do to the next job what they say, and leave a trace."""

from __future__ import annotations

from devcluster import accounts
from harness import ALICE, BOB, ROOT, Site, asked, hints, roles


def test_pin_unpin_and_reset_reach_the_next_job(site: Site) -> None:
    app = "steering"
    show = "cat ${ROMIO_HINTS:-/dev/null}"
    assert site.run(show, asked(app))["role"] == "baseline"

    study = site.pin(app, {"cb_nodes": "4", "romio_cb_read": "disable"})
    assert study["pin"]["why"] == "a test asks for it"
    job = site.sbatch(show, asked(app))
    assert "pinned" in job.said()[0]
    run = site.judged(job)
    assert run["role"] == "pinned"
    assert run["differs"] == {"cb_nodes": 4, "romio_cb_read": "disable"}
    assert hints(site.output(job)) == {"cb_nodes": "4", "romio_cb_read": "disable"}
    assert run["state"] == "counted", run["verdict"]

    said = site.tuner(ALICE, "explain", str(job.job_id)).stdout
    number = study["study_id"]
    values = "cb_nodes=4 romio_cb_read=disable"
    assert f"pinned       pin {values} of study {number}, by {ALICE} since" in said
    assert f"to end it: io-autotune unpin {number} --why" in said, said

    assert site.ask(ALICE, "unpin", app, "--why", "enough of it").get("pin") is None
    said = site.tuner(ALICE, "explain", str(job.job_id)).stdout
    assert "it is over" in said, said
    job = site.sbatch(show, asked(app))
    run = site.judged(job)
    assert (run["role"], run["epoch"]) == ("baseline", 1), "the study goes on where it was"
    assert site.output(job) == "", "the default writes no hints"

    before = site.history(app)
    study = site.ask(ALICE, "reset", app, "--why", "a new file system")
    assert (study["epoch"], study["phase"], study["counted"]) == (2, "baseline", 0)
    run = site.run(show, asked(app))
    assert (run["role"], run["epoch"], run["phase"]) == ("baseline", 2, "baseline")
    after = site.history(app)
    assert after[:-1] == before, "history has changed"
    assert roles(before) == ["baseline", "pinned", "baseline"]
    assert site.study(app)["counted"] == 1, "what was learnt before the reset does not count"

    uid = str(accounts.find(ALICE).uid)
    query = f"select action, uid, why from audit where study_id = {study['study_id']} order by id"
    assert site.sql(query) == [
        ["pin", uid, "a test asks for it"],
        ["unpin", uid, "enough of it"],
        ["reset", uid, "a new file system"],
    ]


def test_what_cannot_be_pinned_is_refused_with_the_choices(site: Site) -> None:
    app = "steering-wrong"
    site.run("true", asked(app))
    for value, told in (("cb_nodes=3", "automatic"), ("cb_moods=1", "cb_nodes")):
        done = site.tuner(ALICE, "pin", app, value, "--why", "a mistake")
        assert done.returncode != 0, f"{value} was taken"
        assert told in done.stderr, f"the message for {value} has no choices: {done.stderr}"
    assert site.study(app).get("pin") is None


def test_a_finish_after_a_reset_is_kept_and_counts_for_the_old_epoch(site: Site) -> None:
    app = "steering-late"
    site.run("true", asked(app))
    fence = site.paths.home(ALICE) / "steering-late.fence"
    job = site.sbatch(f"until [ -e {fence} ]; do sleep 0.1; done", asked(app))
    site.started(job)
    site.ask(ALICE, "reset", app, "--why", "while a job runs")
    fence.touch()
    run = site.judged(job)
    assert run["epoch"] == 1, "a run belongs to the epoch at its start"
    study = site.study(app)
    assert (study["epoch"], study["counted"]) == (2, 0), "it counts in the new epoch"


def test_an_admin_steers_everyones_studies(site: Site) -> None:
    app = "steering-admin"
    site.run("true", asked(app), user=BOB)
    study = site.pin(app, {"cb_nodes": "2"}, user=ROOT)
    assert study["pin"]["uid"] == 0
    assert site.run("true", asked(app), user=BOB)["role"] == "pinned"

"""A study begins with what another has learnt, and says so."""

from __future__ import annotations

from harness import ALICE, BOB, ROOT, Json, Site, asked, hints

SHOW = "cat ${ROMIO_HINTS:-/dev/null}"
LONG = "sleep 1"
"""Long beside what a busy machine adds to a job: where two runs of the default are a factor of five
apart, what has not run here may cost too much to be run, whoever ranked it best."""


def learnt(site: Site, app: str) -> Json:
    """Make a study of ALICE's that knows its default and one other parametrization."""
    site.run("true", asked(app))
    site.pin(app, {"cb_nodes": "4", "romio_cb_read": "disable"})
    for _ in range(2):
        run = site.run("true", asked(app))
        assert (run["role"], run["state"]) == ("pinned", "counted")
    return site.study(app)


def test_a_study_begins_with_anothers_ranks_and_its_runs_say_so(site: Site) -> None:
    source = learnt(site, "warm-source")
    number = str(source["study_id"])
    app = "warm-target"
    before = site.tuner(ALICE, "warm-start", app, "--from", number)
    assert before.returncode == 4
    assert "begins with its first run" in before.stderr

    site.run(LONG, asked(app))
    would = site.ask(ALICE, "warm-start", app, "--from", "warm-source", "--dry-run")
    assert {"cb_nodes": 4, "romio_cb_read": "disable"} in would["inherited"]
    assert "epoch" not in would
    assert site.study(app)["epoch"] == 1, "a dry run changes nothing"

    done = site.ask(ALICE, "warm-start", app, "--from", number, "--why", "the same library")
    assert (done["epoch"], done["inherited"]) == (2, would["inherited"])
    opened = site.study(app)["opened"]
    said = f"what study {number} (application warm-source) ranked best: the same library"
    assert opened["why"] == f"warm start with {said}"
    assert opened["takes"] == "ranks"
    for command in (("status", app), ("show", app)):
        text = site.tuner(ALICE, *command).stdout
        assert "warm start with what study" in " ".join(text.split()), text

    run = site.run(LONG, asked(app))
    while run["role"] == "baseline":
        run = site.run(LONG, asked(app))
    assert run["role"] == "design", run
    assert run["reason"].endswith("that are run first of those that another study ranked best")
    assert run["epoch"] == 2
    assert run["differs"] == {"cb_nodes": 4, "romio_cb_read": "disable"}
    for one in site.history(app):
        replay = site.tuner(ALICE, "explain", str(one["job_id"]), "--replay")
        assert replay.returncode == 0, replay.stdout + replay.stderr

    (line,) = [
        line
        for line in site.ask(ALICE, "audit", "--study", str(site.study(app)["study_id"]))
        if line["action"] == "warm-start"
    ]
    site.ask(ALICE, "undo", str(line["audit_id"]), "--why", "it was not the same")
    study = site.study(app)
    assert (study["epoch"], study["opened"]["why"]) == (3, "a warm start was undone")
    assert study["counted"] == 0, "what was learnt before is there, and the runs are of its epoch"
    assert study["opened"]["takes"] == "runs"
    job = site.sbatch(SHOW, asked(app))
    assert site.judged(job)["role"] == "baseline"
    assert hints(site.output(job)) == {}


def test_what_would_have_no_effect_or_is_anothers_is_refused(site: Site) -> None:
    source = learnt(site, "warm-known")
    number = str(source["study_id"])
    app = "warm-refused"
    site.run("true", asked(app))
    site.run("true", asked(app), user=BOB)
    own = {study["user"]: str(study["study_id"]) for study in site.ask(ROOT, "status", app)}

    def refused(user: str, study: str, other: str) -> str:
        done = site.tuner(user, "warm-start", study, "--from", other, "--why", "a try")
        assert done.returncode == 4, done.stdout + done.stderr
        return done.stderr

    assert "name another study" in refused(ALICE, number, number)
    assert "has learnt nothing yet" in refused(ROOT, own[ALICE], own[BOB])
    assert "is pinned" in refused(ROOT, number, own[BOB])
    site.ask(ALICE, "freeze", app, "--why", "production")
    assert "is frozen" in refused(ALICE, own[ALICE], number)
    site.ask(ALICE, "resume", app, "--why", "over")

    # Nobody learns that another's study exists; an admin says no user's name.
    assert refused(BOB, own[BOB], number) == refused(BOB, own[BOB], "99999999").replace(
        "99999999", number
    )
    site.ask(ROOT, "warm-start", own[BOB], "--from", number, "--why", "a good start")
    text = site.tuner(BOB, "status", "--study", own[BOB]).stdout
    assert "application warm-known" in " ".join(text.split())
    assert ALICE not in text

    observed = site.run("true", f"{asked(app)},accelerator=page-cache", user=BOB)
    other = str(observed["study_id"])
    assert "no parameter in common" in refused(ROOT, other, number)

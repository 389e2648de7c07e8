"""Old runs that no study needs are removed, and no study knows less for it."""

from __future__ import annotations

from devcluster import files, render
from harness import ALICE, ROOT, Json, Site, asked, await_true
from services import service_beside

DAYS = 40
SECONDS = DAYS * 86_400


def grow_old(site: Site, study: str) -> None:
    """Let all that is known of a study have happened so many days ago."""
    epochs = f"select id from epochs where study_id = {study}"
    runs = f"select id from runs where epoch_id in ({epochs})"
    ago = f"- interval '{DAYS} days'"
    recent = "select jsonb_agg(run || jsonb_build_object('started', (run->>'started')::bigint"
    recent += f" - {SECONDS}) order by place) from jsonb_array_elements(recent)"
    recent += " with ordinality as kept (run, place)"
    for statement in (
        f"update judgements set judged_at = judged_at {ago} where run_id in ({runs})",
        f"update reports set received_at = received_at {ago} where run_id in ({runs})",
        f"update outcomes set received_at = received_at {ago} where run_id in ({runs})",
        f"update runs set started_at = started_at {ago} where id in ({runs})",
        f"update runs set judged_at = judged_at {ago} where id in ({runs})",
        f"update runs set outcome_at = outcome_at {ago} where id in ({runs})",
        f"update tested set recent = ({recent}) where recent <> '[]' and epoch_id in ({epochs})",
        f"update epochs set opened_at = opened_at {ago} where study_id = {study}",
    ):
        site.sql(statement)


def of_two_epochs(site: Site, app: str) -> tuple[str, list[Json], list[Json]]:
    """Make an old study; return it, the runs of its first epoch, and those of its second."""
    first = [site.run("true", asked(app)) for _ in range(2)]
    site.ask(ALICE, "reset", app, "--why", "a new file system")
    site.run("true", asked(app))
    site.pin(app, {"cb_nodes": "2"})
    second = [site.run("true", asked(app)) for _ in range(2)]
    study = str(site.study(app)["study_id"])
    grow_old(site, study)
    return study, first, second


def answers(site: Site, app: str) -> list[str]:
    """Return what is answered of a study, to the byte."""
    said = [site.tuner(ALICE, command, app, "--json").stdout for command in ("status", "show")]
    return [*said, site.tuner(ALICE, "show", app).stdout]


def test_old_runs_go_and_a_study_answers_the_same(site: Site) -> None:
    """Promise: what a study knows is removed"""
    app = "kept"
    study, first, second = of_two_epochs(site, app)
    before = answers(site, app)
    would = site.ask(ROOT, "retention", "--older-than", "30", "--dry-run")
    assert (would["runs"], would["trimmed"]) == (2, 3), would
    assert len(site.history(app)) == 5, "a dry run changes nothing"
    unsure = site.tuner(ROOT, "retention", "--older-than", "30")
    assert unsure.returncode == 2
    assert "would; add --yes" in unsure.stderr

    removed = site.ask(ROOT, "retention", "--older-than", "30", "--yes", "--why", "a full disk")
    assert {key: removed[key] for key in would} == {key: would[key] for key in would}
    assert answers(site, app) == before
    assert [run["epoch"] for run in site.history(app)] == [2, 2, 2]

    gone = site.tuner(ALICE, "explain", str(first[0]["job_id"]))
    assert gone.returncode == 4
    assert "removed by retention" in gone.stderr
    explained = site.ask(ALICE, "explain", str(second[-1]["job_id"]))
    assert explained[0]["reports"] == []
    replay = site.tuner(ALICE, "explain", str(second[-1]["job_id"]), "--replay")
    assert replay.returncode == 1
    assert "nothing to replay" in replay.stdout

    told = [line for line in site.ask(ROOT, "audit") if line["action"] == "retention"]
    assert {line["why"] for line in told} == {"a full disk"}
    assert [line["detail"]["runs"] for line in told if str(line["study_id"]) == study] == [2]
    line = site.ask(ALICE, "audit", "--study", study)
    reset = next(one for one in line if one["action"] == "reset")
    undo = site.tuner(ALICE, "undo", str(reset["audit_id"]), "--why", "too late")
    assert undo.returncode == 4

    # It goes on, and what it adds up is right.
    site.ask(ALICE, "unpin", app, "--why", "go on")
    assert site.run("true", asked(app))["state"] == "counted"
    assert site.study(app)["counted"] == 4


def test_a_configured_service_removes_in_its_sweeps_and_users_may_not(site: Site) -> None:
    """Promise: what a study knows is removed"""
    for arguments in (("--dry-run",), ("--older-than", "30", "--yes")):
        refused = site.tuner(ALICE, "retention", *arguments)
        assert refused.returncode == 4
        assert "only admins remove runs" in refused.stderr
    unsaid = site.tuner(ROOT, "retention", "--dry-run")
    assert "[retention] days" in unsaid.stderr
    assert unsaid.returncode == 4

    app = "kept-by-sweeps"
    of_two_epochs(site, app)
    before = answers(site, app)
    text = render.service_toml(site.paths, site.record()) + "\n[retention]\ndays = 30\n"
    with service_beside(site, "retention", text) as unix:
        await_true("the old epoch's runs to go", lambda: len(site.history(app)) == 3)
        assert answers(site, app) == before
        clients = site.paths.client_toml.read_text(encoding="utf-8")
        config = site.paths.etc / "retention-client.toml"
        files.write(config, render.asking(clients, [f"unix:{unix}"]), mode=0o644)
        would = site.ask(ROOT, f"--config={config}", "retention", "--dry-run")
        assert would["older_than_days"] == 30
    why = [line["why"] for line in site.ask(ROOT, "audit") if line["action"] == "retention"]
    assert "[retention] days in service.toml" in why

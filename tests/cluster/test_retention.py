"""Old runs that no study needs are removed, and no study knows less for it."""

from __future__ import annotations

from harness import ALICE, ROOT, Site, asked

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


def of_two_epochs(site: Site, app: str) -> None:
    """Make an old study, with two runs in its first epoch and three in its second."""
    for _ in range(2):
        site.run("true", asked(app))
    site.ask(ALICE, "reset", app, "--why", "a new file system")
    site.run("true", asked(app))
    site.pin(app, {"cb_nodes": "2"})
    for _ in range(2):
        site.run("true", asked(app))
    grow_old(site, str(site.study(app)["study_id"]))


def answers(site: Site, app: str) -> list[str]:
    """Return what is answered of a study, to the byte."""
    said = [site.tuner(ALICE, command, app, "--json").stdout for command in ("status", "show")]
    return [*said, site.tuner(ALICE, "show", app).stdout]


def test_old_runs_go_and_a_study_answers_the_same(site: Site) -> None:
    """Promise: what a study knows is removed"""
    app = "kept"
    of_two_epochs(site, app)
    before = answers(site, app)
    removal = ("admin", "retention", "--older-than", "30")
    would = site.ask(ROOT, *removal, "--dry-run")
    assert (would["runs"], would["trimmed"]) == (2, 3), would
    assert len(site.history(app)) == 5, "a dry run changes nothing"
    removed = site.ask(
        ROOT, "admin", "retention", "--older-than", "30", "--yes", "--why", "a full disk"
    )
    assert {key: removed[key] for key in would} == {key: would[key] for key in would}
    assert answers(site, app) == before
    assert [run["epoch"] for run in site.history(app)] == [2, 2, 2]

    # It goes on, and what it adds up is right.
    site.ask(ALICE, "pin", app, "--end", "--why", "go on")
    assert site.run("true", asked(app))["state"] == "counted"
    assert site.study(app)["counted"] == 4

"""Orders of many studies, the audit and its undoing; and what a terminal is shown."""

from __future__ import annotations

import pwd
import re
import shlex
import unicodedata

import pytest
from harness import ALICE, BOB, ROOT, Site, asked

SHOW = "cat ${ROMIO_HINTS:-/dev/null}"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def ending(site: Site, user: str, app: str) -> list[str]:
    """Return the command of which ``status`` says that it ends what is ordered."""
    said = site.tuner(user, "status", app).stdout
    found = re.findall(r"^ +to end it: io-autotune (.*)$", said, re.M)
    assert len(found) == 1, said
    return shlex.split(found[0])


def test_an_admins_order_holds_for_a_study_that_begins_later_and_off_goes_before_it(
    site: Site,
) -> None:
    app = "ordered-later"
    pin = ("pin", "cb_nodes=2", "--application", app, "--why", "a test")
    would = site.ask(ROOT, *pin, "--dry-run")
    assert (would["order_id"], would["studies"]) == (None, [])
    order = site.ask(ROOT, *pin, "--yes")["order_id"]
    job = site.sbatch(SHOW, asked(app))
    run = site.judged(job)
    explain = ("explain", str(job.job_id))
    said = site.tuner(ALICE, *explain).stdout
    assert f"ordered      order {order}, pin cb_nodes=2 of application {app}, by root since" in said
    assert "only an admin can end it" in said, said
    assert (run["role"], run["differs"]) == ("pinned", {"cb_nodes": 2})
    assert site.output(job) == "cb_nodes 2\n"

    off = site.ask(ALICE, "off", app, "--why", "a deadline")
    (changed,) = off["studies"]
    assert changed["now"].startswith("pinned")
    assert changed["then"] == "off"
    run = site.run(SHOW, asked(app))
    assert (run["role"], run["state"]) == ("observe", "counted")
    assert site.study(app)["ordered"] == "off"
    assert site.study(app)["decided_by"]["order_id"] == off["order_id"]
    site.ask(ALICE, *ending(site, ALICE, app))
    assert site.run(SHOW, asked(app))["role"] == "pinned"

    site.ask(ROOT, *ending(site, ROOT, app))
    assert "it is over" in site.tuner(ALICE, *explain).stdout
    site.ask(ALICE, "freeze", app, "--why", "production", "--until", "now+1days")
    row = site.tuner(ALICE, "audit", "-nP", "--limit", "1", "--format", "Action,Until,Why").stdout
    assert re.fullmatch(r"freeze\|\d{4}-\d\d-\d\dT[\d:]{8}\|production\n", row), row
    run = site.run(SHOW, asked(app))
    assert (run["role"], run["reason"]) == ("best_known", run["reason"])
    assert "frozen" in run["reason"]
    # An admin ends what the owner ordered as well, by what the admin is told.
    site.ask(ROOT, *ending(site, ROOT, app))
    assert site.run(SHOW, asked(app))["role"] == "baseline"


def test_an_order_for_a_name_that_no_study_has_is_given_on_purpose(site: Site) -> None:
    app = "ordered-mistyped"
    site.run("true", asked(app))
    done = site.tuner(ALICE, "off", "ordered-mistypde", "--why", "a deadline")
    assert done.returncode == 2, done.stdout
    assert f"there is {app}" in done.stderr, done.stderr
    assert "--yes" in done.stderr, done.stderr
    assert site.ask(ALICE, "orders") == []
    given = site.ask(ALICE, "off", "ordered-mistypde", "--why", "of later ones", "--yes")
    undone = site.ask(ALICE, "undo", str(given["line"]), "--why", "it was a mistake")
    assert (undone["action"], undone["why"]) == ("off", "of later ones")
    assert site.ask(ALICE, "orders") == []


def test_an_order_of_one_study_is_ended_by_its_owner_whoever_gave_it(site: Site) -> None:
    app = "ordered-of-one"
    site.run("true", asked(app))
    study = str(site.study(app)["study_id"])
    site.ask(ROOT, "off", study, "--why", "a test")
    site.ask(ALICE, *ending(site, ALICE, app))
    assert site.study(app)["ordered"] is None


def test_a_user_steers_and_undoes_nothing_of_another(site: Site) -> None:
    """Promise: a user steers another user's study

    Attack (service): A user orders for another's studies or everyone's, and ends or undoes what
    another user or an admin has ordered.
    Outcome: All of it is refused. An order for `--all` of a user's is about this user's own
    studies.
    """
    app = "ordered-own"
    site.run("true", asked(app))
    site.run("true", asked(app), user=BOB)
    for command in (
        ("pin", "default", "--user", ALICE, "--why", "mischief", "--yes"),
        ("freeze", "--user", ALICE, "--application", app, "--why", "mischief", "--yes"),
        ("off", "--user", ALICE, "--why", "mischief", "--yes"),
    ):
        done = site.tuner(BOB, *command)
        assert done.returncode == 4, f"{command}: {done.stdout}{done.stderr}"
        assert "only admins" in done.stderr
    # A scope without a user is one's own.
    order = site.ask(BOB, "off", "--all", "--why", "mine", "--yes")
    assert {study["uid"] for study in order["studies"]} == {pwd.getpwnam(BOB).pw_uid}
    alices = [one for one in site.ask(ROOT, "status", app) if one["user"] == ALICE]
    assert [one["ordered"] for one in alices] == [None]
    site.ask(BOB, "on", "--all", "--yes")

    site.pin(app, {"cb_nodes": "2"})
    (line,) = (one for one in site.ask(ALICE, "audit") if one["application"] == app)
    assert line["application"] == app
    number = str(line["audit_id"])
    assert number not in {str(one["audit_id"]) for one in site.ask(BOB, "audit")}
    done = site.tuner(BOB, "undo", number, "--why", "mischief")
    assert (done.returncode, "there is no line" in done.stderr) == (4, True), done.stderr
    study = str(line["study_id"])
    done = site.tuner(BOB, "show", study)
    assert (done.returncode, "there is no study" in done.stderr) == (4, True), done.stderr

    # An order for everyone is told to all, and taken back by admins.
    done = site.tuner(ROOT, "freeze", "--all", "--why", "maintenance")
    assert (done.returncode, "--yes" in done.stderr) == (2, True), done.stderr
    site.ask(ROOT, "freeze", "--all", "--why", "maintenance", "--yes")
    (told,) = site.ask(BOB, "orders")
    assert told["why"] == "maintenance"
    everyones = str(site.ask(BOB, "audit", "--limit", "1")[0]["audit_id"])
    done = site.tuner(BOB, "undo", everyones, "--why", "mischief")
    assert (done.returncode, "only admins" in done.stderr) == (4, True), done.stderr
    done = site.tuner(BOB, "resume", "--all", "--why", "mischief", "--yes")
    assert done.returncode == 4, done.stdout
    site.ask(ROOT, "undo", everyones, "--why", "it is over")
    assert site.ask(BOB, "orders") == []

    # An admin's order about one user's studies is told to them, and holds.
    site.ask(ROOT, "freeze", "--user", BOB, "--why", "maintenance", "--yes")
    bobs = str(site.ask(BOB, "audit", "--limit", "1")[0]["audit_id"])
    for mischief in (
        ["resume", "--all", "--yes"],
        ["freeze", "--all", "--until", "2100-01-01T00:00:00Z", "--yes"],
        ["undo", bobs],
    ):
        done = site.tuner(BOB, *mischief, "--why", "mischief")
        refused = "root ordered that (maintenance): they or an admin take it back"
        assert (done.returncode, refused in done.stderr) == (4, True), done.stderr
    of_study = site.ask(BOB, "audit", "--study", str(site.study(app, BOB)["study_id"]))
    assert [line["why"] for line in of_study].count("maintenance") == 2
    assert site.ask(ROOT, "undo", bobs, "--why", "it is over")
    assert site.ask(BOB, "orders") == []
    site.ask(ALICE, "undo", number, "--why", "enough")
    assert site.study(app, ALICE)["pin"] is None


@pytest.mark.parametrize("columns", [80, 200])
def test_a_terminal_is_filled_and_never_overrun(site: Site, columns: int) -> None:
    app = f"shown-on-{columns}-columns"
    site.run("true", asked(app))
    site.pin(app, {"cb_nodes": "2", "romio_cb_read": "disable", "romio_ds_write": "enable"})
    runs = [site.run("true", asked(app)) for _ in range(3)]
    for command in (
        f"history {app}",
        "status",
        "audit",
        f"show {app}",
        f"compare {runs[0]['job_id']} {runs[1]['job_id']}",
    ):
        # A pseudo-terminal of this width, as tmux has.
        inside = f"stty cols {columns} rows 40; exec io-autotune {command}"
        argv = ["script", "--quiet", "--return", "--command", inside, "/dev/null"]
        env = {"TERM": "xterm-256color"}
        done = site.cluster.run_as(ALICE, argv, env=env, check=False)
        assert done.returncode == 0, f"{shlex.join(argv)}: {done.stdout}"
        shown = done.stdout.replace("\r\n", "\n")
        assert COLOUR.search(shown), f"{command} has no colour on a terminal"
        lists = [COLOUR.sub("", line) for line in shown.splitlines()]
        rules = [line for line in lists if re.fullmatch(r"[- ]*-{4}[- ]*", line)]
        assert rules, f"{command}: {shown}"
        for line in rules:
            place = lists.index(line)
            for row in lists[place - 1 :]:
                if not row:
                    break
                wide = sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in row)
                assert wide <= columns, f"{command}: {wide} columns: {row}"
    piped = site.tuner(ALICE, "history", app).stdout
    assert not COLOUR.search(piped)
    assert "cb_nodes=2 romio_cb_read=disable romio_ds_write=enable" in piped, piped
    narrow = len(max(piped.splitlines(), key=len))
    assert narrow > 80, "it does not show that anything is cut at 80 columns"


def test_programs_read_lists_in_every_form(site: Site) -> None:
    app = "listed"
    run = site.run("true", asked(app))
    since = ("--starttime", "now-1days")
    wanted = ("history", app, "--state", "counted", "--accelerator", "romio", *since)
    table = site.tuner(ALICE, *wanted, "-n", "-P", "-o", "jobid,elapsed,counts").stdout
    assert table == f"{run['job_id']}|{run['elapsed']}|yes\n"
    assert site.ask(ALICE, *wanted)[0]["run_id"] == run["run_id"]
    assert site.ask(ALICE, "history", app, "--endtime", "now-1days") == []
    assert site.ask(ALICE, "history", app, "--state", "censored") == []
    assert site.ask(ROOT, "history", app, "--user", BOB) == []
    header, row = site.tuner(ALICE, *wanted, "--csv").stdout.splitlines()
    assert header.startswith("JobID,Restarts,Application,User,")
    assert row.startswith(f"{run['job_id']},0,{app},{ALICE},romio,")
    header, row = site.tuner(ALICE, "status", app, "--csv").stdout.splitlines()
    assert header.split(",")[:3] == ["Study", "Application", "User"]
    assert row.split(",")[1:3] == [app, ALICE]
    for wrong, status, told in (
        (("history", "--format", "Mood"), 2, "there are JobID"),
        (("audit", "--format", "Mood"), 2, "there are Line"),
        (("explain", app), 2, f"`io-autotune history {app}` lists"),
        (("show", "nothing-here"), 4, '"nothing-here" has no study'),
        (("export", "987654321"), 4, "no study 987654321"),
    ):
        done = site.tuner(ALICE, *wrong)
        assert done.returncode == status, f"{wrong}: {done.stderr}"
        assert told in done.stderr, f"{wrong}: {done.stderr}"

"""What is ordered is told with whole commands, which work as they stand when they are pasted."""

from __future__ import annotations

import re

from command.service import ALICE, BOB, ROOT, Service
from command.terminal import run_at_terminal


def commands(text: str, before: str) -> list[str]:
    """Return the commands that a text gives after these words."""
    return re.findall(rf"^ *{before}: (io-autotune .*)$", text, re.M)


def ending(served: Service, user: str, app: str) -> str:
    """Return the command of which ``status`` says that it ends what is ordered."""
    said = served.tuner(user, "status", app).stdout
    (found,) = commands(said, "to end it") or [said]
    return found


def test_what_status_says_ends_an_order_ends_it(served: Service) -> None:
    app = "pasted"
    served.run(ALICE, app)
    number = str(served.study(app)["study_id"])
    for order in (
        ("off", app),
        ("off", number),
        ("freeze", app),
        ("freeze", "--application", app, "--accelerator", "romio", "--yes"),
        ("pin", app, "cb_nodes=2"),
        ("pin", number, "default"),
    ):
        served.ask(ALICE, *order, "--why", "a test")
        assert served.study(app)["ordered"] or served.study(app)["pin"], order
        done = served.paste(ALICE, ending(served, ALICE, app))
        assert (done.returncode, done.stderr) == (0, ""), order
        study = served.study(app)
        assert (study["ordered"], study["pin"]) == (None, None), order


def test_who_may_end_an_order_of_everyones_is_given_the_command_and_who_may_not_is_told_so(
    served: Service,
) -> None:
    app = "pasted-by-an-admin"
    served.run(ALICE, app)
    served.ask(ROOT, "freeze", "--user", ALICE, "--why", "maintenance", "--yes")
    try:
        said = served.tuner(ALICE, "status", app).stdout
        assert commands(said, "to end it") == []
        assert "only an admin can end it" in said
    finally:
        end = ["bash", "-c", ending(served, ROOT, app)]
        shown = run_at_terminal(served, ROOT, end, types="y\n")
    assert shown.status == 0, shown.text
    assert served.study(app)["ordered"] is None
    served.ask(ROOT, "off", "--all", "--why", "maintenance", "--yes")
    try:
        end = ["bash", "-c", ending(served, ROOT, app)]
        assert "--all" in end[-1]
    finally:
        shown = run_at_terminal(served, ROOT, end, types="y\n")
    assert shown.status == 0, shown.text
    assert served.ask(BOB, "audit", "orders") == []


def test_a_run_tells_by_which_order_it_was_and_when_that_is_over(served: Service) -> None:
    app = "ordered-later"
    pin = ("pin", "cb_nodes=2", "--application", app, "--why", "a test", "--yes")
    served.ask(ROOT, *pin)
    run = served.run(ALICE, app)
    assert (run["role"], run["differs"]) == ("pinned", {"cb_nodes": 2})
    explain = ("explain", str(run["job_id"]))
    said = served.tuner(ALICE, *explain).stdout
    assert f"ordered      pin cb_nodes=2 of application {app}, by root since" in said
    assert "only an admin can end it" in said, said
    said = served.tuner(ROOT, *explain).stdout
    (end,) = commands(said, "to end it")
    served.paste(ROOT, end)
    assert "it is over" in served.tuner(ALICE, *explain).stdout


def test_a_run_tells_by_whose_pin_it_was_and_when_that_is_over(served: Service) -> None:
    app = "pinned"
    served.run(ALICE, app)
    values = ["cb_nodes=4", "romio_cb_read=disable"]
    number = served.ask(ALICE, "pin", app, *values, "--why", "a test")["study_id"]
    run = served.run(ALICE, app)
    said = served.tuner(ALICE, "explain", str(run["job_id"])).stdout
    pinned = f"pinned       pin {' '.join(values)} of study {number}, by {ALICE} since"
    assert pinned in said, said
    (end,) = commands(said, "to end it")
    assert end == f'io-autotune pin study:{number} --end --why "..."'
    assert served.paste(ALICE, end).returncode == 0
    assert "it is over" in served.tuner(ALICE, "explain", str(run["job_id"])).stdout


def test_what_a_change_says_takes_it_back_takes_it_back(served: Service) -> None:
    app = "taken-back"
    served.run(ALICE, app)
    for change, undoes in (
        (("pin", app, "cb_nodes=2"), "pin"),
        (("off", app), "off"),
        (("freeze", app), "freeze"),
        (("objective", app, "marked"), "objective"),
        (("accept", app), "accept"),
        (("reset", app), "reset"),
    ):
        done = served.tuner(ALICE, *change, "--why", "a test")
        assert done.returncode == 0, done.stderr
        (command,) = commands(done.stdout, "to take it back")
        undone = served.paste(ALICE, command)
        assert undone.returncode == 0, f"{command}: {undone.stderr}"
        (line, number) = served.ask(ALICE, "audit", "--limit", "2")
        assert (line["undoes"], number["action"]) == (number["audit_id"], undoes)
        assert f"line {number['audit_id']}, {undoes}, is undone" in undone.stdout
        again = served.paste(ALICE, command)
        assert again.returncode == 4, again.stdout


def test_the_audit_is_read_by_programs_and_has_until_when(served: Service) -> None:
    app = "audited"
    served.run(ALICE, app)
    served.ask(ALICE, "freeze", app, "--why", "production", "--until", "now+1days")
    number = str(served.study(app)["study_id"])
    audit = ("audit", "--study", number)
    row = served.tuner(ALICE, *audit, "-nP", "--limit", "1", "-o", "Action,Until,Why").stdout
    assert re.fullmatch(r"freeze\|\d{4}-\d\d-\d\dT[\d:]{8}\|production\n", row), row
    shown = served.tuner(ALICE, *audit).stdout
    assert re.search(r" until \d\d-\d\d \d\d:\d\d|until \d{4}-\d\d-\d\d", shown), shown
    header, line, *_ = served.tuner(ALICE, *audit, "--csv").stdout.splitlines()
    assert header == "Line,Time,By,Action,Of,What,Until,Undone,Why"
    assert line.split(",")[2:4] == [ALICE, "freeze"]


def test_a_change_that_is_tried_changes_nothing_and_says_what_it_would(served: Service) -> None:
    app = "tried"
    served.run(ALICE, app)
    lines = len(served.ask(ALICE, "audit"))
    for change, told in (
        (("pin", app, "cb_nodes=2"), "would be pinned"),
        (("off", app), f"dry run: off of application {app}"),
        (("freeze", "--all"), "dry run: freeze of all studies"),
        (("reset", app), "would be reset: its search would begin anew"),
        (("accept", app), "would be accepted"),
    ):
        done = served.tuner(ALICE, *change, "--why", "a test", "--dry-run")
        assert (done.returncode, told in done.stdout) == (0, True), done
    assert len(served.ask(ALICE, "audit")) == lines
    study = served.study(app)
    assert (study["ordered"], study["pin"], study["epoch"]) == (None, None, 1)

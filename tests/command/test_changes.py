"""What all commands that change something have in common: who says why, what is answered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command.service import ALICE, ROOT, Service

Command = tuple[str, ...]


def changes(app: str) -> list[Command]:
    """Return each change of one application's studies, each possible after the ones before it."""
    return [
        ("pin", app, "cb_nodes=2"),
        ("pin", app, "--end"),
        ("off", app),
        ("off", app, "--end"),
        ("freeze", app),
        ("freeze", app, "--end"),
        ("objective", app, "marked"),
        ("objective", app, "elapsed"),
        ("accept", app),
        ("reset", app),
    ]


def test_each_change_names_what_it_changed_and_prints_its_undo(served: Service) -> None:
    app = "changed"
    served.run(ALICE, app)
    study = served.study(app)["study_id"]
    named = f"study {study} (application {app})"
    for command in (*changes(app), *changes(f"study:{study}")):
        done = served.tuner(ALICE, *command)
        assert done.returncode == 0, done
        first, second = done.stdout.splitlines()[:2]
        of_all = f"application {app}" if "study:" not in command[1] else named
        assert named in first or of_all in first, (command, first)
        assert first.endswith("."), first
        assert re.fullmatch(r"to take it back: io-autotune undo \d+", second), (command, second)
    newest = served.ask(ALICE, "audit", "--limit", "1")[0]["audit_id"]
    undone = served.tuner(ALICE, "undo", str(newest)).stdout
    assert undone.startswith(f"line {newest}, reset, is undone by line "), undone
    assert f": study {study} ({app}).\nThere is no undo of an undo." in undone, undone


def test_an_acceptance_is_taken_back_as_its_answer_says(served: Service) -> None:
    app = "accepted-by-mistake"
    served.run(ALICE, app)
    done = served.tuner(ALICE, "accept", app, "--why", "a mistake")
    (command,) = re.findall(r"^to take it back: (.*)$", done.stdout, re.M)
    assert command.endswith(' --why "..."'), "a change with a reason is taken back with one"
    undone = served.paste(ALICE, command)
    assert (undone.returncode, ", accept, is undone by" in undone.stdout) == (0, True), undone
    query = "select count(*) from audit where action = 'undo' and detail->>'action' = 'accept'"
    assert int(served.sql(query)[0][0]) >= 1
    again = served.paste(ALICE, command)
    assert (again.returncode, "is undone already" in again.stderr) == (4, True), again


def test_what_has_no_undo_says_so(served: Service, shared: Path) -> None:
    app = "exported-and-back"
    served.run(ALICE, app)
    file = shared / "study.jsonl"
    file.write_text(served.tuner(ALICE, "transfer", "export", app).stdout, encoding="utf-8")
    again = ("transfer", "import", str(file), "--skip-existing", "--why", "a try")
    assert "There is no undo of an import." in served.tuner(ROOT, *again).stdout
    shown = served.tuner(ROOT, "admin", "retention", "--help").stdout
    assert "There is no undo." in shown


def test_a_reason_may_be_left_out_where_nobody_else_is_concerned(served: Service) -> None:
    app = "without-reasons"
    served.run(ALICE, app)
    for command in changes(app):
        done = served.tuner(ALICE, *command)
        assert done.returncode == 0, done
        (line,) = served.ask(ALICE, "audit", "--limit", "1")
        assert line["why"] == "no reason was given", command
    undone = served.tuner(ALICE, "undo", str(line["audit_id"]))
    assert undone.returncode == 0, undone


def test_whoever_changes_more_than_their_own_says_why_whatever_the_command(
    served: Service, shared: Path
) -> None:
    app = "of-alice"
    served.run(ALICE, app)
    pin = served.ask(ALICE, "pin", app, "cb_nodes=2")
    file = shared / "study.jsonl"
    file.write_text(served.tuner(ALICE, "transfer", "export", app).stdout, encoding="utf-8")
    before = served.ask(ROOT, "audit")
    for command in (
        *((*command, "--yes") for command in changes(app) if command[0] not in {"off", "freeze"}),
        ("off", app, "--yes"),
        ("freeze", app, "--yes"),
        ("freeze", "--all", "--yes"),
        ("pin", "default", "--accelerator", "romio", "--yes"),
        ("off", "--user", ALICE, "--yes"),
        ("undo", str(pin["line"])),
        ("transfer", "import", str(file)),
        ("admin", "retention", "--older-than", "400", "--yes"),
    ):
        done = served.tuner(ROOT, *command)
        assert (done.returncode, done.stdout) == (4, ""), done
        assert 'more than your own studies: --why "..."' in done.stderr, done
    assert served.ask(ROOT, "audit") == before
    # What is only tried needs none.
    for command in (
        ("freeze", "--all"),
        ("reset", app),
        ("admin", "retention", "--older-than", "400"),
    ):
        done = served.tuner(ROOT, *command, "--dry-run")
        assert (done.returncode, done.stdout[:9]) == (0, "dry run: "), done


def test_a_parameter_that_is_pinned_twice_is_refused_with_both_values(served: Service) -> None:
    app = "pinned-twice"
    served.run(ALICE, app)
    for command in (
        ("pin", app, "cb_nodes=2", "cb_nodes=4"),
        ("pin", "cb_nodes=2", "cb_nodes=4", "--application", app),
    ):
        done = served.tuner(ALICE, *command)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert "cb_nodes is given twice, as 2 and as 4" in done.stderr, done
    assert served.study(app)["pin"] is None


@pytest.mark.parametrize(
    "time",
    [
        "yesterday",
        "today",
        "midnight",
        "noon",
        "now-1day",
        "now-90",
        "00:00",
        "1/2",
        "0102",
        "1/2/26",
    ],
)
def test_times_are_taken_as_sacct_takes_them(served: Service, time: str) -> None:
    app = "timed"
    if not served.ask(ALICE, "status", app):
        served.run(ALICE, app)
    done = served.tuner(ALICE, "history", app, "-S", time, "-E", "now+1hour", "--json")
    assert done.returncode == 0, done
    ahead = served.tuner(ALICE, "off", app, "--until", "noon", "--dry-run")
    assert ahead.returncode == 0, ahead
    past = served.tuner(ALICE, "off", app, "--until", "yesterday", "--dry-run")
    assert (past.returncode, "over already" in past.stderr) == (4, True), past


def test_an_old_spelling_does_the_same_with_a_hint(served: Service, shared: Path) -> None:
    app = "spelt-of-old"
    served.run(ALICE, app)
    shown = "".join(
        served.tuner(ALICE, *command).stdout
        for command in (("--help",), ("admin", "completion", "bash"))
    )
    for old, new in (
        (("orders",), ("audit", "orders")),
        (("export", app), ("transfer", "export", app)),
        (("completion", "bash"), ("admin", "completion", "bash")),
        (("unpin", app), ("pin", app, "--end")),
        (("on", app), ("off", app, "--end")),
        (("resume", app, "--json"), ("freeze", app, "--end", "--json")),
        (("warm-start", app, "--from", app), ("transfer", "warm-start", app, "--from", app)),
        (("retention", "--dry-run"), ("admin", "retention", "--dry-run")),
        (("import", "/nowhere"), ("transfer", "import", "/nowhere")),
        (("man", str(shared / "1")), ("admin", "man", str(shared / "1"))),
    ):
        was, is_ = served.tuner(ALICE, *old), served.tuner(ALICE, *new)
        assert (was.returncode, was.stdout) == (is_.returncode, is_.stdout), (was, is_)
        hint, _, rest = was.stderr.partition("\n")
        assert hint.startswith(f"io-autotune: `io-autotune {old[0]}` is `io-autotune "), hint
        assert rest == is_.stderr
        assert f"  {old[0]} " not in shown, old

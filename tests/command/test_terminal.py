"""What a terminal is shown: all of its width, no more, and nothing that acts on it."""

from __future__ import annotations

import re
import unicodedata

import pytest

from command.place import Place
from command.service import ALICE, ROOT, Service, service
from command.terminal import COLOUR, at_terminal

PIN = ("cb_nodes=2", "romio_cb_read=disable", "romio_ds_write=enable")


@pytest.fixture(scope="module")
def runs(served: Service) -> list[str]:
    """Return the jobs of an application of which every list has something."""
    app = "shown"
    served.run(ALICE, app)
    served.ask(ALICE, "pin", app, *PIN, "--why", "a reason that is too long for narrow terminals")
    return [str(served.run(ALICE, app)["job_id"]) for _ in range(3)]


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("command", ["history shown", "status", "audit", "show shown", "compare"])
def test_a_terminal_is_filled_and_never_overrun(
    served: Service, runs: list[str], command: str, columns: int
) -> None:
    words = ["compare", *runs[:2]] if command == "compare" else command.split()
    shown = at_terminal(served, ALICE, words, columns)
    assert shown.status == 0, shown.text
    assert COLOUR.search(shown.text), "there is no colour on a terminal"
    lists = shown.plain().splitlines()
    rules = [line for line in lists if re.fullmatch(r"[- ]*-{4}[- ]*", line)]
    assert rules, shown.text
    for line in rules:
        place = lists.index(line)
        for row in lists[place - 1 :]:
            if not row:
                break
            wide = sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in row)
            assert wide <= columns, f"{wide} columns: {row}"


def test_where_there_is_no_terminal_nothing_is_folded_and_nothing_coloured(
    served: Service, runs: list[str]
) -> None:
    piped = served.tuner(ALICE, "history", "shown").stdout
    assert not COLOUR.search(piped)
    assert " ".join(PIN) in piped, piped
    longest = len(max(piped.splitlines(), key=len))
    assert longest > 80, "it does not show that anything is folded at 80 columns"
    shown = at_terminal(served, ALICE, ["history", "shown"], 80).plain()
    assert shown.count(" ...\n") == len(runs), shown
    assert f"... is {' '.join(PIN)}\n" in shown, "what begins alike is said once"
    assert len(runs) == 3


def test_a_narrow_terminal_is_taken_for_one_of_forty_columns(
    served: Service, runs: list[str]
) -> None:
    shown = at_terminal(served, ALICE, ["history", "shown"], 10)
    assert shown.status == 0
    assert all(job in shown.plain() for job in runs), shown.text


def test_a_reason_of_an_earlier_release_is_shown_as_questions(served: Service) -> None:
    """Attack (units): A `--why` is too long, of several lines, or has escapes or invisible
    characters.
    Outcome: It is refused; a stored one is shown with question marks.
    """
    app = "earlier-reason"
    served.run(ALICE, app)
    served.ask(ALICE, "pin", app, "cb_nodes=2", "--why", "SOON OTHER")
    hostile = "'fine ' || chr(8238) || 'gnp.exe' || chr(8203) || ' ' || chr(27) || 'x'"
    for table in ("audit", "pins"):
        served.sql(
            "set session_replication_role = replica;"
            f" update {table} set why = {hostile} where why = 'SOON OTHER'"
        )
    (study, *_) = (one["study_id"] for one in served.ask(ALICE, "status", app))
    for command in (
        ("audit", "--study", str(study)),
        ("audit", "--study", str(study), "-P"),
        ("audit", "--study", str(study), "--csv"),
        ("status", app),
    ):
        shown = served.tuner(ALICE, *command).stdout
        assert "fine ?gnp.exe? ?x" in shown, f"{command}: {shown}"
    told = at_terminal(served, ALICE, ["status", app], 200)
    assert "fine ?gnp.exe? ?x" in told.plain(), told.text
    json_text = served.tuner(ALICE, "audit", "--study", str(study), "--json").stdout
    assert "fine \\u202egnp.exe\\u200b" in json_text
    assert json_text.isascii()
    # A file of studies is for another service, and may be looked at before.
    exported = served.tuner(ALICE, "transfer", "export", app).stdout
    assert "\u202e" not in exported
    assert "\x1b" not in exported


def test_a_job_s_name_acts_on_no_terminal(served: Service) -> None:
    """Attack (others): A shown text has zero bytes, escapes, lines, characters that reorder, or
    100,000 characters.
    Outcome: Such characters are question marks, and the text is cut.
    """
    name = "\x1b]0;owned\x07\u202e\x1b[2Jgo"
    run = served.live(served.job(ALICE, job_name=name))
    job = str(run["job_id"])
    for command in (["explain", job], ["history", "--limit", "20"], ["status"]):
        for shown in (
            served.tuner(ALICE, *command).stdout,
            COLOUR.sub("", at_terminal(served, ALICE, command, 200).text),
        ):
            assert "\x1b" not in shown, shown
            assert "\x07" not in shown
            assert "\u202e" not in shown


def test_the_report_is_cleaned_for_a_terminal_and_goes_elsewhere_as_it_is(where: Place) -> None:
    nights = where.paths.scratch / "nights"
    night = nights / "2026-11-20"
    night.mkdir(parents=True)
    (nights / "latest").symlink_to(night.name)
    mail = "gained \x1b[2J\u202elittle\n"
    (night / "mail.txt").write_text(mail, encoding="utf-8")
    more = {"report": {"directory": str(nights)}}
    with service(where, "with_report", more=more, database="served") as reporting:
        latest = ["report", "--latest"]
        assert reporting.tuner(ROOT, *latest).stdout == mail
        shown = at_terminal(reporting, ROOT, latest)
        assert (shown.status, shown.text) == (0, "gained ?[2J?little\n")
        done = reporting.tuner(ROOT, *latest, "--file", "studies.csv")
        assert (done.returncode, done.stdout) == (4, ""), done
        done = reporting.tuner(ALICE, *latest)
        assert (done.returncode, "report_readers" in done.stderr) == (4, True), done
        copy = where.paths.scratch / "mail-copied.txt"
        done = reporting.tuner(ROOT, *latest, "--output", str(copy))
        assert done.stdout == f"mail.txt of the night 2026-11-20 is in {copy}\n"
        assert copy.read_text(encoding="utf-8") == mail

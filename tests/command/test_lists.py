"""Lists: put together of pages, for people and for programs."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from command.jobs import End, Json
from command.service import ALICE, BOB, CAROL, ROOT, Service

MANY_RUNS = 250
"""More than two pages, of 100."""
MANY_STUDIES = 60
"""More than two pages, of 25."""


@pytest.fixture(scope="module")
def many(served: Service) -> str:
    """Give a user many runs of many studies; return what their applications' names begin with."""
    apps = [f"many-{number:02}" for number in range(MANY_STUDIES)]
    # Not in the order of their names.
    apps = apps[::2] + apps[1::2]
    jobs = [served.job("uucp", apps[number % MANY_STUDIES]) for number in range(MANY_RUNS)]
    served.start(*jobs)
    return "many-"


def test_pages_are_put_together_each_row_once_and_in_order(served: Service, many: str) -> None:
    """Attack (floods): Somebody asks for 10,000 runs or studies at once.
    Outcome: A page has 100 runs, or 500 studies; the command puts pages together.
    """
    history = ("history", "--user", "uucp", "--limit")
    ids = [run["run_id"] for run in served.ask(ROOT, *history, "10000")]
    assert len(ids) == MANY_RUNS
    assert ids == sorted(set(ids)), "each once, oldest first"
    for limit in (1, 99, 100, 101, 200):
        newest = [run["run_id"] for run in served.ask(ROOT, *history, str(limit))]
        assert newest == ids[-limit:], f"the newest {limit}"
    named = [study["application"] for study in served.ask("uucp", "status")]
    assert sum(name.startswith(many) for name in named) == MANY_STUDIES
    assert named == sorted(set(named))
    rows = served.tuner("uucp", "history", "-nP", "--limit", "10000", "-o", "run").stdout
    assert [int(row) for row in rows.splitlines()] == ids


def test_pages_of_the_audit_are_put_together_too(served: Service) -> None:
    app = "often-changed"
    study = served.run(BOB, app)["study_id"]
    changes = 130
    served.sql(
        "insert into audit (uid, action, study_id, why, detail) select"
        f" 8, 'pin', {study}, 'change ' || n, '{{}}' from generate_series(1, {changes}) n"
    )
    lines = served.ask(BOB, "audit", "--study", str(study), "--limit", "1000")
    # What others order for all that there is, is of this study as well.
    why = [line["why"] for line in lines if line["why"].startswith("change ")]
    assert why == [f"change {n}" for n in range(changes, 0, -1)]
    lines = served.ask(BOB, "audit", "--study", str(study), "--limit", "110")
    assert len(lines) == 110


@pytest.fixture(scope="module")
def listed(served: Service) -> Json:
    """Return the one run of an application."""
    return served.run(ALICE, "listed", End(seconds=12.5))


def test_programs_read_lists_in_every_form(served: Service, listed: Json) -> None:
    app, job = "listed", listed["job_id"]
    since = ("--starttime", "now-1days", "--endtime", "now+1days")
    wanted = ("history", app, "--state", "counted", "--accelerator", "romio", *since)
    table = served.tuner(ALICE, *wanted, "-n", "-P", "-o", "jobid,elapsed,counts").stdout
    assert table == f"{job}|{listed['elapsed']}|yes\n"
    table = served.tuner(ALICE, *wanted, "-P", "-o", "jobid,Counts").stdout
    assert table == f"JobID|Counts\n{job}|yes\n"
    header, row = served.tuner(ALICE, *wanted, "--csv").stdout.splitlines()
    assert header.startswith("JobID,Restarts,Application,User,")
    assert row.startswith(f"{job},0,{app},{ALICE},romio,")
    (run,) = served.ask(ALICE, *wanted)
    assert run["run_id"] == listed["run_id"]
    header, row = served.tuner(ALICE, "status", app, "--csv").stdout.splitlines()
    assert header.split(",")[:3] == ["Study", "Application", "User"]
    assert row.split(",")[1:3] == [app, ALICE]
    # What matches nothing is an empty list, and no failure.
    for nothing in (
        ("--endtime", "now-1days"),
        ("--state", "censored"),
        ("--user", BOB),
        ("--accelerator", "page-cache"),
    ):
        done = served.tuner(ALICE, "history", app, *nothing, "--json")
        assert (done.returncode, done.stdout) == (0, "[]\n"), done
        done = served.tuner(ALICE, "history", app, *nothing, "--csv")
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 1), done


def test_every_column_that_is_listed_can_be_asked_for(served: Service, listed: Json) -> None:
    for command in ("history", "audit"):
        done = served.tuner(ALICE, command, "--helpformat")
        names = done.stdout.strip().split(", ")
        assert len(names) == len(set(names)) >= 9, names
        rows = served.tuner(ALICE, command, "--format", ",".join(names), "--csv").stdout
        assert next(csv.reader(io.StringIO(rows))) == names
    row = served.tuner(ALICE, "history", "listed", "-n", "-o", "JobID%10,Application%-4,Run%9")
    assert row.stdout == f"{listed['job_id']:>10}  lis+  {listed['run_id']:>9}\n"


def test_lists_have_a_column_of_users_where_there_are_several(served: Service) -> None:
    app = "of-both"
    for user in (ALICE, BOB):
        served.run(user, app)
    header, _, *rows = served.tuner(ROOT, "history", app).stdout.splitlines()
    assert "User" in header.split()
    assert {ALICE, BOB} <= set(" ".join(rows).split())
    assert "User" not in served.tuner(ALICE, "history", app).stdout.split()
    assert "Cluster" not in served.tuner(ROOT, "history", app).stdout.split()
    text = served.tuner(ROOT, "status", app).stdout
    assert ALICE in text
    assert BOB in text


def test_an_empty_list_says_what_to_do_and_one_that_is_elsewhere_says_so(served: Service) -> None:
    nobody = "lp"
    for command in ("status", "history"):
        done = served.tuner(nobody, command)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert "--io-autotune" in done.stdout, done.stdout
    assert served.tuner(nobody, "audit", "orders").stdout == "nothing is ordered\n"
    assert served.tuner(nobody, "audit").stdout == "nobody has changed anything\n"
    served.run(CAROL, "of-today")
    done = served.tuner(CAROL, "history", "of-today", "--endtime", "now-1days")
    assert done.stdout == "no run is of that time and state; there are others\n"
    assert served.ask(nobody, "status") == []


def test_json_is_what_its_description_says(served: Service, listed: Json) -> None:
    root = Path(__file__).resolve().parents[2]
    described = json.loads((root / "docs" / "openapi.json").read_text(encoding="utf-8"))
    schemas = described["components"]["schemas"]
    number = str(listed["study_id"])
    for command, schema in (
        (("status", "listed"), "StudySummary"),
        (("history", "listed"), "RunSummary"),
        (("explain", str(listed["job_id"])), "RunDetail"),
        (("accelerators", "list"), "AcceleratorSummary"),
        (("audit", "--study", number), "AuditLine"),
    ):
        for one in served.ask(ALICE, *command):
            assert set(one) <= set(schemas[schema]["properties"]), command
            assert set(schemas[schema]["required"]) <= set(one), command


def test_two_jobs_and_two_studies_are_compared(served: Service, listed: Json) -> None:
    other = served.run(ALICE, "listed")
    jobs = (str(listed["job_id"]), str(other["job_id"]))
    text = served.tuner(ALICE, "compare", *jobs).stdout
    assert set(jobs) <= set(re.split(r"\s+", text)), text
    rows = list(csv.reader(io.StringIO(served.tuner(ALICE, "compare", *jobs, "--csv").stdout)))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert [one["run_id"] for one in served.ask(ALICE, "compare", *jobs)] == [
        listed["run_id"],
        other["run_id"],
    ]
    served.run(ALICE, "compared")
    names = [one["application"] for one in served.ask(ALICE, "compare", "listed", "compared")]
    assert names == ["listed", "compared"]
    numbers = [str(served.study(app)["study_id"]) for app in names]
    by_number = served.ask(ALICE, "compare", "--studies", *numbers)
    assert [one["application"] for one in by_number] == names

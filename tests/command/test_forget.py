"""A user who has left is named nowhere: a real service, its database, and the reports it keeps."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from devcluster import command

from command.jobs import End, Json, Made
from command.place import TREE, Place
from command.service import BOB, ROOT, Service, service

TOKEN = "zqxvjk"
"""What no other text has: the user's name, and the beginning of all names that they give."""
UID = 1_234_567_891
"""No number anywhere else, and no account on this host."""
PYTHON = TREE / "build/venv-report/bin/python"


@pytest.fixture(scope="module")
def own(where: Place) -> Iterator[Service]:
    """Run a service of its own: everything in its database is looked at."""
    with service(where, "forget") as running:
        yield running


def job_of_the_user(own: Service, app: str) -> Made:
    """Make up a job with the token wherever a user can write."""
    made = own.job(
        BOB, app, account=f"{TOKEN}_account", job_name=f"/home/{TOKEN}/{TOKEN}.sh", comment=TOKEN
    )
    return dataclasses.replace(made, uid=UID, user=TOKEN)


def by_the_user(own: Service, *arguments: str) -> Json:
    """Run the command as the user, who has no account on this host any more."""
    as_user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    done = own.run_as(ROOT, [*as_user, "io-autotune", *arguments, "--json"])
    assert done.returncode == 0, f"io-autotune {' '.join(arguments)}: {done.stderr}"
    return json.loads(done.stdout)


def lived(own: Service) -> None:
    """Let the user and another have studies, and the user say all that one can."""
    app = f"{TOKEN}-app"
    measured = End(measures={f"objective.{TOKEN}": 7.0, "asked_written_bytes": 4096.0})
    for _ in range(3):
        own.live(job_of_the_user(own, app), measured)
    applied = {"kind": "user", "variables": [f"{TOKEN}_VARIABLE"]}
    own.live(job_of_the_user(own, app), End(applied=applied))
    own.live(job_of_the_user(own, "shared"))
    for _ in range(3):
        own.run(BOB, "shared")
    why = ("--why", f"{TOKEN} wants it")
    by_the_user(own, "pin", app, "cb_nodes=2", *why)
    by_the_user(own, "reset", app, *why)
    by_the_user(own, "objective", app, TOKEN, "--maximise", *why)
    own.live(job_of_the_user(own, app), measured)
    by_the_user(own, "accept", app, *why)
    by_the_user(own, "pin", app, "default", *why)
    by_the_user(own, "off", "--application", app, *why, "--yes")
    by_the_user(own, "freeze", "--all", *why, "--yes")
    number = by_the_user(own, "status", app)[0]["study_id"]
    own.ask(ROOT, "freeze", str(number), "--why", f"for {TOKEN}", "--yes")
    own.ask(BOB, "pin", "shared", "cb_nodes=2", "--why", "mine")


def report(own: Service, directory: Path, night: str) -> Json:
    """Make the report of a day, and return it."""
    argv = [str(PYTHON), "-m", "io_autotune_report.command", f"--database={own.database_url}"]
    argv += [f"--state={directory}/state", f"--nights={directory}/nights", f"--first={night}"]
    env = {**command.base_env(), "PYTHONPATH": str(TREE / "analysis/report"), "TZ": "UTC"}
    command.run(argv, env=env, timeout=300)
    return json.loads((directory / "nights" / night / "report.json").read_text())


def dumped(own: Service) -> dict[str, list[str]]:
    """Return each row of each table as text."""
    tables = own.sql("select tablename from pg_tables where schemaname = 'public' order by 1")
    return {
        table: [row for (row,) in own.sql(f"select to_jsonb(t)::text from {table} t order by 1")]
        for (table,) in tables
    }


def naming(rows: dict[str, list[str]]) -> list[str]:
    """Return the rows that have the token or the uid."""
    return [
        f"{table}: {row}"
        for table, listed in rows.items()
        for row in listed
        if TOKEN in row or str(UID) in row
    ]


def forget(own: Service, *options: str) -> subprocess.CompletedProcess[str]:
    """Run ``io-autotuned --forget`` as the owner of the tables."""
    argv = ["io-autotuned", "--forget", TOKEN, "--database", own.database_url, *options]
    return own.run_as(ROOT, argv)


def told_to_bob(own: Service) -> list[Json]:
    """Return what another user is told."""
    asked = (("status",), ("history",), ("audit",))
    return [own.ask(BOB, *one) for one in asked]


def test_who_has_left_is_named_in_no_table_and_no_kept_report(own: Service, tmp_path: Path) -> None:
    lived(own)
    today = own.sql("select (now() at time zone 'UTC')::date")[0][0]
    was = report(own, tmp_path, today)
    assert TOKEN in (tmp_path / "nights" / today / "index.html").read_text()
    running = job_of_the_user(own, "shared")
    (given,) = own.start(running)
    refused = forget(own)
    assert (refused.returncode, refused.stdout) == (1, ""), refused.stderr
    assert "1 runs of zqxvjk are in flight" in refused.stderr
    own.end([(running, given, End())])

    before, bob = dumped(own), told_to_bob(own)
    assert {row.partition(":")[0] for row in naming(before)} >= {
        *("applications", "audit", "epochs", "judgements", "orders", "outcomes"),
        *("pins", "reports", "runs", "studies", "study_accounts", "tested"),
    }
    tried = forget(own, "--dry-run")
    assert tried.returncode == 0, tried.stderr
    assert naming(dumped(own)) == naming(before)
    done = forget(own)
    assert done.returncode == 0, done.stderr
    counts = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert counts == [line for line in tried.stdout.splitlines() if line.startswith("  ")]
    assert "nothing names them" in done.stdout

    assert told_to_bob(own) == bob
    # The sweeps go on, and bring nothing back.
    own.run(BOB, "afterwards")
    assert naming(dumped(own)) == []
    studies = own.ask(ROOT, "status")
    assert {study["user"] for study in studies if study["application"] == "shared"} > {BOB}
    (line,) = (line for line in own.ask(ROOT, "audit") if line["action"] == "forget")
    assert line["detail"]["how"] == "pseudonym"

    now = report(own, tmp_path, today)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []
    same = {study["study_id"]: study for study in now["studies"]}
    for study in was["studies"]:
        if study["application"] != "shared":
            assert same[study["study_id"]]["node_hours"] == study["node_hours"]
            assert same[study["study_id"]]["runs"] == study["runs"]
    again = forget(own)
    assert (again.returncode, again.stdout) == (0, "nothing is known of zqxvjk\n")

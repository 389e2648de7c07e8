"""Studies leave one service and go on in another, by the command's files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import lines

from command.place import Place
from command.service import ALICE, BOB, ROOT, Service, service
from command.terminal import at_terminal


@pytest.fixture(scope="module")
def elsewhere(where: Place) -> Iterator[Service]:
    """Run another service, whose database is empty."""
    with service(where, "elsewhere") as running:
        yield running


def test_an_export_says_on_stderr_what_it_wrote_and_to_a_file_writes_the_same(
    served: Service, shared: Path
) -> None:
    app = "exported"
    run = served.run(ALICE, app)
    printed = served.tuner(ALICE, "transfer", "export", app)
    assert (printed.returncode, printed.stderr) == (0, "io-autotune: exported 1 study\n")
    assert '"version":2' in lines(printed.stdout)[0]
    file = shared / "study.jsonl"
    done = served.tuner(ROOT, "transfer", "export", str(run["study_id"]), "--output", str(file))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", printed.stderr)
    assert file.read_text(encoding="utf-8") == printed.stdout
    assert sorted(path.name for path in shared.iterdir()) == ["study.jsonl"]
    done = served.tuner(
        ALICE, "transfer", "export", app, "--output", str(shared / "no" / "study.jsonl")
    )
    assert (done.returncode, "study.jsonl" in done.stderr) == (1, True), done
    assert sum(record.startswith('{"run"') for record in lines(printed.stdout)) == 1


def test_runs_in_flight_are_left_out_and_that_is_said(served: Service) -> None:
    app = "exported-in-flight"
    served.run(ALICE, app)
    job = served.job(ALICE, app)
    (given,) = served.start(job)
    done = served.tuner(ALICE, "transfer", "export", app)
    assert done.stderr == "io-autotune: exported 1 study; 1 run in flight is left out\n"
    assert f'"job_id":{job.job_id}' not in done.stdout
    # What may be a control run is told to no user before its end.
    served.sql(
        "update runs set phase = 'settled', role = 'control'"
        f" where state = 'in_flight' and job_id = {job.job_id}"
    )
    done = served.tuner(ALICE, "transfer", "export", app)
    assert (done.returncode, "ask an admin" in done.stderr) == (4, True), done
    assert served.tuner(ROOT, "transfer", "export", app).returncode == 0
    assert given["run_id"]


def test_a_study_goes_on_elsewhere_and_is_not_taken_twice(
    served: Service, elsewhere: Service, shared: Path
) -> None:
    app = "moves"
    jobs = [str(served.run(ALICE, app)["job_id"]) for _ in range(4)]
    printed = served.tuner(ALICE, "transfer", "export", app)
    file = shared / "moves.jsonl"
    file.write_text(printed.stdout, encoding="utf-8")
    argv = ("transfer", "import", str(file), "--why", "moved")
    would = elsewhere.ask(ROOT, *argv, "--dry-run")
    (study,) = would["studies"]
    assert (study["application"], study["study_id"], study["runs"]) == (app, None, 4)
    assert elsewhere.ask(ROOT, "status") == []
    done = elsewhere.tuner(ROOT, *argv)
    assert (done.returncode, done.stdout[:9]) == (0, "imported."), done
    assert elsewhere.tuner(ROOT, "transfer", "export", "--all").stdout == printed.stdout
    for job in jobs:
        assert elsewhere.tuner(ALICE, "explain", job, "--replay").returncode == 0
    again = elsewhere.tuner(ROOT, *argv)
    assert (again.returncode, "--skip-existing" in again.stderr) == (4, True), again
    again = elsewhere.tuner(ROOT, *argv, "--skip-existing")
    assert (again.returncode, "left out: it exists" in again.stdout) == (0, True), again
    (line,) = (one for one in elsewhere.ask(ROOT, "audit") if one["action"] == "import")
    assert (line["why"], line["uid"]) == ("moved", 0)


def test_a_file_that_is_no_export_is_refused_and_leaves_nothing(
    served: Service, elsewhere: Service, shared: Path
) -> None:
    served.run(BOB, "moves-not")
    text = served.tuner(BOB, "transfer", "export", "moves-not").stdout
    file = shared / "broken.jsonl"
    for broken, status, said in (
        (text[: len(text) // 2], 4, "line "),
        (text.replace('"version":2', '"version":9'), 4, "upgrade the service"),
        (text.rsplit("\n", 2)[0], 4, "it ends before its end"),
        ("", 2, "is empty"),
    ):
        file.write_text(broken, encoding="utf-8")
        done = elsewhere.tuner(ROOT, "transfer", "import", str(file), "--why", "a try")
        assert (done.returncode, said in done.stderr) == (status, True), f"{said}: {done}"
    assert elsewhere.tuner(ROOT, "status", "moves-not").returncode == 4
    assert elsewhere.sql("select count(*) from import_chunks") == [["0"]]
    file.write_text(text, encoding="utf-8")
    done = elsewhere.tuner(BOB, "transfer", "import", str(file), "--why", "mischief", "--yes")
    assert (done.returncode, "only admins" in done.stderr) == (4, True), done


def test_an_import_of_several_studies_asks(
    served: Service, elsewhere: Service, shared: Path
) -> None:
    for app in ("moves-with", "moves-along"):
        served.run("man", app)
    file = shared / "several.jsonl"
    file.write_text(served.tuner("man", "transfer", "export", "--all").stdout, encoding="utf-8")
    argv = ("transfer", "import", str(file), "--why", "all")
    done = elsewhere.tuner(ROOT, *argv)
    refused = "nothing was changed: import 2 studies would; add --yes"
    assert (done.returncode, done.stdout, refused in done.stderr) == (2, "", True), done
    shown = at_terminal(elsewhere, ROOT, argv, types="n\n")
    assert (shown.status, "moves-along" in shown.text) == (2, True), shown.text
    assert elsewhere.ask("man", "status") == []
    shown = at_terminal(elsewhere, ROOT, argv, types="y\n")
    assert shown.status == 0, shown.text
    assert len(elsewhere.ask("man", "status")) == 2


def test_a_user_s_export_of_all_is_of_the_user_s_own(served: Service) -> None:
    for user in (ALICE, BOB):
        served.run(user, "moves-own")
    records = [
        json.loads(line) for line in lines(served.tuner(BOB, "transfer", "export", "--all").stdout)
    ]
    owners = {record["study"]["owner_uid"] for record in records if "study" in record}
    assert owners == {served.job(BOB).uid}

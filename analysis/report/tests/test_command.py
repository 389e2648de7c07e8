"""The program as a site runs it: nights in a row, what it writes, how it fails."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from generated_site import Shape, Year, assess, make, write
from generated_site.plan import DAY
from io_autotune_report import command, settings
from io_autotune_report.analyse import assembly
from io_autotune_report.document import Report
from io_autotune_report.number_format import node_time
from io_autotune_report.render import schema
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[3]
SHAPE = Shape(applications=12, studies=25, runs=3000, days=60)
FEW = Shape(applications=8, studies=12, runs=1500, days=30)
store = pytest.mark.store


@pytest.fixture(scope="module", autouse=True)
def _days_are_of_utc() -> None:
    """The site's clock, here and in the processes that are started, is UTC's."""
    os.environ["TZ"] = "UTC"


@pytest.fixture(scope="module")
def year() -> Year:
    return make(SHAPE)


def fill(url: str, year: Year, after: float = float("-inf"), before: float = float("inf")) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        write(connection, year, after, before)
    assess(url)


def night(url: str, directory: Path, day: date, *more: str) -> Path:
    """Make one; return its folder."""
    argv = ["--database", url, "--state", str(directory / "state"), "--site", "Somewhere"]
    argv += ["--nights", str(directory / "nights"), "--first", day.isoformat()]
    # To start processes takes longer than to evaluate what these tests have.
    argv += ["--processes", "1", *more]
    assert command.main(argv) == 0
    return directory / "nights" / day.isoformat()


def document(folder: Path) -> Report:
    return msgspec.json.decode((folder / "report.json").read_text(), type=Report)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


@store
def test_a_night_has_all_its_files_and_they_agree(
    database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    folder = night(database, tmp_path, SHAPE.last)
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "index.html",
        "report.json",
        "studies.csv",
        "groups.csv",
        "mail.txt",
        "night.json",
        "users",
    }
    report = document(folder)
    assert report.since is not None
    assert report.since < report.last
    pages = {path.stem for path in (folder / "users").iterdir()}
    assert pages == {str(group.uid) for group in report.users}
    assert pages == {str(study.uid) for study in report.studies}
    assert len(report.studies) == len(year.studies)
    before = SHAPE.days * DAY
    judged = {run for run, at in zip(year.judged_run, year.judged_at, strict=True) if at < before}
    assert report.total.runs == len(judged) == sum(study.runs for study in report.studies)
    studies = rows(folder / "studies.csv")
    assert [int(row["study_id"]) for row in studies] == [each.study_id for each in report.studies]
    for row, study in zip(studies, report.studies, strict=True):
        assert row["verdict"] == study.gain.verdict
        share = study.gain.share
        assert row["gain"] == ("" if share is None else repr(share))
        assert json.loads(row["context"]) == study.context
    total = rows(folder / "groups.csv")[0]
    assert (total["kind"], total["name"]) == ("site", "Somewhere")
    assert float(total["node_hours_saved"]) == report.total.node_hours.saved
    for groups in (report.accelerators, report.users, report.applications):
        assert sum(group.runs for group in groups) == report.total.runs
    mail = (folder / "mail.txt").read_text()
    assert f"of {node_time(report.total.node_hours.used)} used" in re.sub(r"\s+", " ", mail)
    assert max(map(len, mail.splitlines())) <= 72


@store
def test_the_json_is_of_the_schema_that_docs_have(
    database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    folder = night(database, tmp_path, SHAPE.last)
    known = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    Draft202012Validator.check_schema(known)
    validator = Draft202012Validator(known)
    told = json.loads((folder / "report.json").read_text())
    assert list(validator.iter_errors(told)) == []
    told["studies"][0]["gain"]["verdict"] = "better"
    del told["studies"][1]["noise"]
    assert len(list(validator.iter_errors(told))) == 2


def test_the_schema_in_docs_is_the_documents() -> None:
    known = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    assert known == schema.schema(), "renew it: make report-schema"


@store
def test_nights_in_a_row_are_what_one_from_nothing_is(
    database: str, other_database: str, tmp_path: Path
) -> None:
    # As many studies as have every verdict among them, and as have news of the last day or not.
    shape = FEW
    year = make(shape)
    days = [shape.last - timedelta(days=back) for back in (3, 1, 0)]
    after = float("-inf")
    for day in days:
        before = (day - shape.first).days * DAY + DAY
        fill(database, year, after, before)
        folder = night(database, tmp_path / "row", day)
        after = before
    # What the service says of a study is what it says now.
    fill(other_database, year, before=after)
    alone = document(night(other_database, tmp_path / "alone", days[-1]))
    report = document(folder)
    assert {study.gain.verdict for study in alone.studies} == {"faster", "no_effect", "not_yet"}
    last = (year.judged_at >= after - DAY) & (year.judged_at < after)
    assert 0 < len(set(year.run_study[year.judged_run[last]])) < len(alone.studies)
    assert report.studies == alone.studies
    assert (report.total, report.users) == (alone.total, alone.users)
    assert report.findings == alone.findings
    # What only nights in a row have.
    assert [name for name, _ in report.history] == [day.isoformat() for day in days]
    assert alone.changes == []
    assert report.changes[0].study_id is None
    assert f"since {days[1]}" in report.changes[0].what


@store
def test_what_two_processes_evaluate_is_what_one_evaluates(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database, make(FEW))
    one = document(night(database, tmp_path / "one", FEW.last))
    started: list[int] = []
    plain = ProcessPoolExecutor

    def watched(processes: int, **more: Any) -> ProcessPoolExecutor:  # noqa: ANN401 - as it has them
        started.append(processes)
        return plain(processes, **more)

    monkeypatch.setattr(assembly, "ProcessPoolExecutor", watched)
    monkeypatch.setattr(assembly, "WORTH", 1)
    monkeypatch.setattr(assembly, "CHUNK", 300)
    two = document(night(database, tmp_path / "two", FEW.last, "--processes", "2"))
    assert started == [2]
    assert (two.studies, two.total, two.findings) == (one.studies, one.total, one.findings)


@store
def test_only_studies_with_news_are_evaluated(
    database: str, year: Year, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database, year)
    evening = SHAPE.last - timedelta(days=1)
    night(database, tmp_path, evening)
    seen: list[int] = []
    plain: Callable[..., Report] = assembly.assemble

    def watched(*arguments: Any) -> Report:  # noqa: ANN401 - as assemble has them
        progress = arguments[-1]

        def note(done: int, total: int) -> None:
            seen.append(total)
            progress(done, total)

        return plain(*arguments[:-1], note)

    monkeypatch.setattr(command, "assemble", watched)
    night(database, tmp_path, SHAPE.last)
    news = (year.judged_at >= (SHAPE.days - 1) * DAY) & (year.judged_at < SHAPE.days * DAY)
    studies = set(year.run_study[year.judged_run[news]])
    until = year.judged_at < SHAPE.days * DAY
    expected = sum(year.run_study[run] in studies for run in year.judged_run[until])
    assert set(seen) == {expected}
    assert 0 < expected < until.sum()
    seen.clear()
    night(database, tmp_path, SHAPE.last)
    assert seen == []


@store
def test_latest_is_the_last_day_whatever_is_made_after_it(
    database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    nights = tmp_path / "nights"
    night(database, tmp_path, SHAPE.last)
    (nights / ".unfinished-2026-01-01").mkdir()
    (nights / ".unfinished-latest").symlink_to("nowhere")
    night(database, tmp_path, SHAPE.last - timedelta(days=5))
    first = SHAPE.last - timedelta(days=9)
    night(database, tmp_path, first, "--last", SHAPE.last.isoformat())
    assert (nights / "latest").readlink() == Path(SHAPE.last.isoformat())
    assert (nights / f"{first}_{SHAPE.last}" / "report.json").is_file()
    assert not list(nights.glob(".*"))
    again = (nights / SHAPE.last.isoformat()).stat().st_ino
    night(database, tmp_path, SHAPE.last)
    assert (nights / SHAPE.last.isoformat()).stat().st_ino != again
    assert "2026-11-15" in (nights / "index.html").read_text()


@store
def test_names_reach_no_spreadsheet_as_formulas_and_no_terminal_as_commands(
    database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    with psycopg.connect(database) as connection:
        connection.execute("update applications set name = '=1+1' || chr(27) || '[2J' where id = 1")
    folder = night(database, tmp_path, SHAPE.last)
    names = {row["application"] for row in rows(folder / "studies.csv")}
    assert "'=1+1\x1b[2J" in names
    assert "\x1b" not in (folder / "mail.txt").read_text()


@store
def test_old_nights_go_where_that_is_asked_for(database: str, year: Year, tmp_path: Path) -> None:
    fill(database, year)
    days = [SHAPE.last - timedelta(days=back) for back in (2, 1, 0)]
    config = tmp_path / "report.toml"
    config.write_text("[report]\nkeep_nights = 2\n")
    for day in days:
        folder = night(database, tmp_path, day, "--config", str(config))
    kept = sorted(path.name for path in folder.parent.iterdir() if path.name.startswith("2"))
    assert kept == [day.isoformat() for day in days[1:]]
    assert [name for name, _ in document(folder).history] == [day.isoformat() for day in days]


def test_the_sample_is_read_and_has_every_key() -> None:
    told = settings.read(ROOT / "deploy" / "etc" / "report.toml")
    known = {"database", *settings.SECTIONS["report"]}
    assert set(told) == known
    assert settings.settings(told).state.name == "state"


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert command.main(["--print-config", *argv]) == 0
    return capsys.readouterr().out


def test_what_is_in_force_is_printed_and_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = ROOT / "deploy" / "etc" / "report.toml"
    site = 'a "b"\x7f\n#\\é'
    told = settings.read(sample) | {"site": site, "processes": 3}
    least = {"database": "host=x dbname=y", "state": "/s", "nights": "/n"}
    path = tmp_path / "shown.toml"
    for argv, expected in (
        (["--config", str(sample), "--site", site, "--processes", "3"], told),
        ([part for name, value in least.items() for part in (f"--{name}", value)], least),
    ):
        text = printed(capsys, *argv)
        path.write_text(text)
        assert settings.settings(settings.read(path)) == settings.settings(expected)
        origins = [line.rpartition(" # ")[2] for line in text.splitlines() if " = " in line]
        told_by = "command line: --"
        of_file = f"{sample} [report]"
        assert origins == (
            [f"{sample} [database]", f"{told_by}site", of_file, of_file]
            if expected is told
            else [f"{told_by}database", "default", f"{told_by}state", f"{told_by}nights"]
        ) + ([f"{told_by}processes", of_file] if expected is told else ["default", "default"])


@pytest.mark.parametrize(
    "database", ["postgresql://me:s3cret@db/x", "host=db password=s3cret", "s3cret@@@=' "]
)
def test_no_password_is_printed(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--database", database, "--state", "/s", "--nights", "/n")
    assert "s3cret" not in text
    assert "***" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[report]\nsites = 'x'", "has no key 'sites'; it has site, state.*did you mean site[?]"),
        ("[databse]\nurl = 'x'", r"database, report; did you mean database[?]"),
        ("[report]\nzzz = 'x'", r"keep_nights$"),
        ("[mail]\nto = 'x'", r"\[mail\] is not one of database, report"),
        ("[report]\nprocesses = true", "processes = True is not of type int"),
        ("[report", "cannot be read"),
        ("[report]\nkeep_nights = -1", "keep_nights = -1: a number from 0 is expected"),
        ("", "not told: database, state, nights; give --config"),
    ],
)
def test_settings_that_are_wrong_say_so(
    tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.toml"
    path.write_text(text)
    argv = ["--config", str(path)]
    if "keep_nights" in text or "processes" in text:
        argv += ["--database", "x", "--state", str(tmp_path), "--nights", str(tmp_path)]
    assert command.main(argv) == command.MISUSED
    assert re.search(message, capsys.readouterr().err)


def test_a_file_is_utf_8_with_or_without_a_byte_order_mark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.toml"
    text = '[report]\nsite = "Zürich"\n'
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert settings.read(path) == {"site": "Zürich"}
    for encoding, message in [
        ("latin-1", "line 2 is not in UTF-8.*iconv -f ISO-8859-1"),
        ("utf-16", "in UTF-16.*iconv -f UTF-16"),
        ("utf-16-be", "in UTF-16"),
    ]:
        path.write_bytes(text.encode(encoding))
        assert command.main(["--config", str(path)]) == command.MISUSED
        assert re.search(message, capsys.readouterr().err)


def test_days_that_have_not_come_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--last", "2999-01-01"]) == command.MISUSED
    assert "has not come yet" in capsys.readouterr().err
    assert command.main(["--first", "2026-01-02", "--last", "2026-01-01"]) == command.MISUSED


def test_a_database_that_is_down_ends_it_with_1_and_what_to_do(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "io_autotune_report.command"]
    argv += ["--database", f"host={tmp_path} dbname=none"]
    argv += ["--state", str(tmp_path / "state"), "--nights", str(tmp_path / "nights")]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "analysis/report")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == command.FAILED
    assert done.stderr.startswith("io-autotune-report: the database cannot be reached")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "nights").exists()


OPTIONS = "--database x --state /s --nights /n"


def in_shell(way: str, options: str, end: str) -> subprocess.CompletedProcess[str]:
    """Let a shell run the program, buffered as at a site."""
    line = f"{sys.executable} -m io_autotune_report.command {options}"
    paths = {"PYTHONPATH": str(Path(command.__file__).parents[1]), "PYTHONUNBUFFERED": end}
    body = f"set -o pipefail; {way.format(line=line)}"
    return subprocess.run(
        ["bash", "-c", body], env=os.environ | paths, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("options", "way", "status", "told"),
    [
        ("--help", "{line} >/dev/full", 1, "No space left on device"),
        ("--print-config", "{line} >/dev/full", 1, "No space left on device"),
        ("--print-config", 'out=$(mktemp); ulimit -f 0; {line} >"$out"', 1, "File too large"),
        ("--print-config", "{line} >&-", 1, "standard output is closed"),
        ("--print-config", "{line} | true", 0, ""),
        ("--print-config", "{line} 2>&-", 0, ""),
        ("--print-config", 'cd "$(mktemp -d)" && rmdir "$PWD" && {line}', 0, ""),
        ("--last 2999-01-01", "{line} 2>/dev/full", 2, ""),
        ("--last 2999-01-01", "{line} >&- 2>&-", 2, ""),
        ("--loudly", "{line} 2>/dev/full", 2, ""),
    ],
)
def test_what_is_printed_is_there_or_its_loss_is_said(
    options: str, way: str, status: int, told: str
) -> None:
    done = in_shell(way, f"{OPTIONS} {options}", "")
    assert (done.returncode, told in done.stderr) == (status, True), done
    assert told or not done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_has_gone_is_no_failure_without_a_buffer_either() -> None:
    done = in_shell("{line} | true", f"{OPTIONS} --print-config", "1")
    assert (done.returncode, done.stderr) == (0, ""), done


FORGET = """
    update applications a set forgotten_at = now(), owner_uid = 4000000001,
           owner_name = 'left-12345678', full_name = null,
           name = case when exists (select from applications o
                                    where o.name = a.name and o.owner_uid <> a.owner_uid)
                       then a.name else 'forgotten-' || a.id end
    where owner_name = %s
"""
"""What io-autotuned --forget does to applications."""


@store
def test_kept_reports_are_written_anew_without_who_was_forgotten(
    database: str, tmp_path: Path
) -> None:
    token, measure = "zqxvjk", "zqxvjkrate"
    fill(database, make(FEW))
    with psycopg.connect(database, autocommit=True) as connection:
        ((user,),) = connection.execute(
            "select owner_name from applications group by 1 order by count(*) desc, 1 limit 1"
        ).fetchall()
        connection.execute(
            "update applications set name = %s || id, full_name = %s || id || ' in full',"
            " owner_name = %s where owner_name = %s",
            (token, token, token, user),
        )
        connection.execute(
            "update studies s set assessment = replace(assessment::text, '\"elapsed\"', %s)::jsonb"
            " from applications a where a.id = s.application_id and a.owner_name = %s"
            " and s.assessment->>'objective' = 'elapsed'",
            (f'"objective.{measure} maximised"', token),
        )
    first, last = FEW.last - timedelta(days=1), FEW.last
    nights = [night(database, tmp_path, day) for day in (first, last)]
    span = tmp_path / "nights" / f"{first}_{last}"
    night(database, tmp_path, first, "--last", last.isoformat())
    folders = [*nights, span]
    were = {folder: document(folder) for folder in folders}
    for folder in folders:
        for name in ("index.html", "report.json", "studies.csv", "groups.csv"):
            assert token in (folder / name).read_text(), f"{folder.name}/{name}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(FORGET, (token,))
        connection.execute(
            "update studies s set assessment = replace(assessment::text, %s, 'forgotten-1')::jsonb"
            " from applications a where a.id = s.application_id and a.forgotten_at is not null",
            (measure,),
        )
    night(database, tmp_path, last)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} > {"index.html", "evaluations-1.sqlite"}
    named = [str(path) for path in files if token.encode() in path.read_bytes()]
    assert named == []
    for folder in folders:
        was, now = were[folder], document(folder)
        assert (now.total.node_hours, now.total.runs) == (was.total.node_hours, was.total.runs)
        assert sum(group.runs for group in now.users) == was.total.runs
        assert len(now.users) == len(was.users)
        for before, after in zip(was.studies, now.studies, strict=True):
            assert (after.study_id, after.node_hours) == (before.study_id, before.node_hours)
            if before.user == token:
                assert after.user == "left-12345678"
                assert after.application == before.application.replace(token, "forgotten-")
            elif folder != nights[1]:
                assert after == before
    if os.path.lexists(tmp_path / "nights" / "latest"):
        assert (tmp_path / "nights" / "latest" / "report.json").exists()


@store
def test_a_kept_report_of_another_version_is_named_where_somebody_was_forgotten(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(database, make(FEW))
    folder = night(database, tmp_path, FEW.last - timedelta(days=1))
    (folder / "report.json").write_text('{"schema": "io-autotune-report/0"}')
    night(database, tmp_path, FEW.last)
    assert capsys.readouterr().err.count("of another version") == 0
    with psycopg.connect(database, autocommit=True) as connection:
        ((user,),) = connection.execute("select min(owner_name) from applications").fetchall()
        connection.execute(FORGET, (user,))
    night(database, tmp_path, FEW.last)
    assert f"remove them from {tmp_path / 'nights'}: {folder.name}" in capsys.readouterr().err

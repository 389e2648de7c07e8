"""Reading night by night: whatever happens between nights, the frames are what the database has."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pandas as pd
import psycopg
import pytest
from generated_site import Shape, Year, assess, make, write
from generated_site.plan import DAY
from io_autotune_report.load import (
    DatabaseError,
    Mirror,
    MirrorError,
    connect,
    read_assessments,
    read_runs,
    read_studies,
    tables,
)
from io_autotune_report.load import (
    database as reading_database,
)
from io_autotune_report.load import (
    mirror as reading_mirror,
)
from io_autotune_report.load.assessment import UNKNOWN

pytestmark = pytest.mark.store

FUTURE = datetime(2100, 1, 1, tzinfo=UTC)
SMALL = Shape(applications=6, studies=12, runs=1500, days=60)


@pytest.fixture(scope="module")
def year() -> Year:
    """A small one, the same for all tests."""
    return make(SMALL)


def fill(url: str, year: Year, after: float = float("-inf"), before: float = float("inf")) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        return write(connection, year, after, before)


def absorb(url: str, state: Path) -> int:
    with connect(url) as connection, Mirror.open(state) as mirror:
        return mirror.absorb(connection)


def frame(state: Path, before: datetime = FUTURE) -> pd.DataFrame:
    mirror = Mirror.reader(state)
    studies = [standing.study_id for standing in mirror.standings(before)]
    return pd.concat(
        [tables.runs(mirror.judgements(study, before)) for study in studies], ignore_index=True
    )


def same(state: Path, url: str) -> None:
    """Both ways of reading have the same runs, which are those that the service counts."""
    mirrored, direct = frame(state), read_runs(url)
    pd.testing.assert_frame_equal(mirrored, direct)
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select id, state, judged_ordinal from runs where state <> 'in_flight' order by id"
        ).fetchall()
    states = {"sample": "counted", "censored": "censored"}
    found = sorted(
        (run, states.get(effect, "not_counted"), ordinal)
        for run, effect, ordinal in zip(
            mirrored["run_id"], mirrored["effect"], mirrored["ordinal"], strict=True
        )
    )
    assert found == rows


def test_nights_one_after_the_other_have_what_one_has(
    database: str, year: Year, tmp_path: Path
) -> None:
    nights = [float("-inf"), 20 * DAY, 20.5 * DAY, 59 * DAY, float("inf")]
    for after, before in pairwise(nights):
        written = fill(database, year, after, before)
        assert absorb(database, tmp_path) == written > 0
        same(tmp_path, database)
    assert absorb(database, tmp_path) == 0
    assert len(frame(tmp_path)) == year.started_at.size


def test_an_instant_sees_the_verdicts_that_were_made_before_it(
    database: str, other_database: str, year: Year, tmp_path: Path
) -> None:
    revised = pd.Series(year.judged_run).duplicated(keep="last").to_numpy().nonzero()[0]
    at = float(year.judged_at[revised[0]]) + 1.0
    fill(database, year)
    absorb(database, tmp_path / "all")
    fill(other_database, year, before=at)
    absorb(other_database, tmp_path / "then")
    first = datetime.combine(SMALL.first, datetime.min.time(), UTC)
    then = frame(tmp_path / "all", first + timedelta(seconds=at))
    pd.testing.assert_frame_equal(then, frame(tmp_path / "then"))
    late = then[then["run_id"] == year.judged_run[revised[0]] + 1]
    assert list(late["effect"]) == ["nothing"]


def test_a_judgement_that_commits_late_is_not_lost(
    database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    judge = (
        "with epoch as (update epochs set judgements = judgements + 1 where id = %(epoch)s"
        " returning judgements), judged as (insert into judgements (epoch_id, ordinal, run_id,"
        " effect, verdict) select %(epoch)s, judgements, %(run)s, 'nothing', 'revised' from epoch"
        " returning ordinal) update runs set judged_ordinal = ordinal, state = 'not_counted'"
        " from judged where id = %(run)s"
    )
    with (
        psycopg.connect(database) as late,
        psycopg.connect(database, autocommit=True) as early,
    ):
        pick = "select epoch_id as epoch, min(id) as run from runs group by 1 order by 1 limit 2"
        (one, one_run), (two, two_run) = early.execute(pick).fetchall()
        late.execute(judge, {"epoch": one, "run": one_run})
        early.execute(judge, {"epoch": two, "run": two_run})
        assert absorb(database, tmp_path) == year.judged_at.size + 1
        late.commit()
    assert absorb(database, tmp_path) == 1
    same(tmp_path, database)


def _read_and_die(url: str, state: Path, batches: int, at: str) -> None:
    """Read in batches of 100; after so many, die at a row, or before a statement that begins so."""
    reading_mirror.BATCH = 100
    plain = reading_database.judgements
    done = 0

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def deadly(
        connection: psycopg.Connection, wanted: Sequence[reading_database.Wanted]
    ) -> Iterator[reading_database.Judgement]:
        for number, row in enumerate(plain(connection, wanted)):
            if done == batches and at == str(number):
                die()
            yield row

    def progress(read: int, _: int) -> None:
        nonlocal done
        done = read // 100

    def trace(statement: str) -> None:
        if done == batches and statement.lower().startswith(at) and deadly_from_now:
            die()

    deadly_from_now = False
    reading_database.judgements = deadly
    with connect(url) as connection, Mirror.open(state) as mirror:
        # The first night's studies and epochs are not what is counted.
        mirror._take_epochs(connection, reading_database.epochs(connection))
        deadly_from_now = True
        mirror._sqlite.set_trace_callback(trace)
        mirror.absorb(connection, progress)


@pytest.mark.parametrize(
    ("batches", "at"),
    [(0, "1"), (3, "50"), (9, "99"), (3, "insert into judgements"), (4, "update"), (2, "commit")],
)
def test_a_night_that_is_killed_goes_on_where_it_was(
    database: str, year: Year, tmp_path: Path, batches: int, at: str
) -> None:
    total = fill(database, year)
    # Forked, the child would share this process's connections.
    spawn = multiprocessing.get_context("spawn")
    child = spawn.Process(target=_read_and_die, args=(database, tmp_path, batches, at))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert absorb(database, tmp_path) == total - 100 * batches
    same(tmp_path, database)


def test_a_state_of_another_version_is_read_anew(database: str, year: Year, tmp_path: Path) -> None:
    total = fill(database, year)
    assert absorb(database, tmp_path) == total
    with sqlite3.connect(tmp_path / "mirror.sqlite") as connection:
        connection.execute(f"pragma user_version = {reading_mirror.VERSION + 1}")
        connection.execute("alter table judgements drop column phase")
    assert absorb(database, tmp_path) == total
    same(tmp_path, database)


def test_a_database_restored_from_an_older_dump_is_read_anew(
    database: str, other_database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    absorb(database, tmp_path)
    earlier = fill(other_database, year, before=30 * DAY)
    assert absorb(other_database, tmp_path) == earlier
    same(tmp_path, other_database)
    # It has gone on since, and other runs have taken the places of those that were lost.
    with psycopg.connect(other_database, autocommit=True) as connection:
        connection.execute("update judgements set judged_at = judged_at + interval '1 s'")
    assert absorb(other_database, tmp_path) == earlier


def test_two_reports_do_not_work_with_one_state(tmp_path: Path) -> None:
    with (
        Mirror.open(tmp_path),
        pytest.raises(MirrorError, match="another io-autotune-report works with"),
        Mirror.open(tmp_path),
    ):
        pass


def test_what_cannot_be_read_says_what_to_do(
    bare_database: str, database: str, tmp_path: Path
) -> None:
    with pytest.raises(DatabaseError, match="cannot be reached"), connect(f"host={tmp_path}"):
        pass
    with (
        pytest.raises(DatabaseError, match=r"no schema `report` of this release.*io-autotuned"),
        connect(bare_database),
    ):
        pass
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create role nobody_special login")
    with pytest.raises(DatabaseError, match=r"deploy/sql/report-role\.sql"):
        read_studies(psycopg.conninfo.make_conninfo(database, user="nobody_special"))


def test_the_role_of_the_sample_suffices(database: str, year: Year) -> None:
    fill(database, year)
    assess(database)
    role = Path(__file__).parents[3] / "deploy" / "sql" / "report-role.sql"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(role.read_text())
    url = psycopg.conninfo.make_conninfo(database, user="io-autotune-report")
    assert len(read_runs(url)) == year.started_at.size
    assessments = read_assessments(url)
    assert len(assessments) == len(year.studies)
    assert UNKNOWN not in [each.gain for each in assessments.values()]
    with (
        psycopg.connect(url) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("select 1 from runs")


def test_researchers_get_studies_and_the_runs_of_some(database: str, year: Year) -> None:
    fill(database, year)
    studies = read_studies(database)
    assert list(studies["study_id"]) == [place + 1 for place in range(len(year.studies))]
    account = year.applications[year.studies[0].application].account
    assert studies["account"].iloc[0] == account
    assert studies["context"].iloc[0]["nodes"] == str(year.studies[0].nodes)
    some = read_runs(database, studies=[1, 3])
    everything = read_runs(database)
    expected = everything[everything["study_id"].isin([1, 3])].reset_index(drop=True)
    pd.testing.assert_frame_equal(some, expected)
    assert read_runs(database, studies=[]).empty


def test_batches_cut_long_epochs_and_join_short_ones() -> None:
    wanted = [reading_database.Wanted(1, 0, 25), reading_database.Wanted(2, 5, 8)]
    cut = [
        [(part.epoch_id, part.after, part.up_to) for part in batch]
        for batch in reading_database.batches(wanted, 10)
    ]
    assert cut == [[(1, 0, 10)], [(1, 10, 20)], [(1, 20, 25), (2, 5, 8)]]

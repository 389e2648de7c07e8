"""Reading night by night: whatever happens between nights, the frames are what the database has."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pandas as pd
import psycopg
import pytest
from generated_site import Shape, Year, assess, make, write
from generated_site.plan import DAY
from io_autotune_report.analyse import assembly
from io_autotune_report.analyse.assembly import Occasion, assemble
from io_autotune_report.document import (
    Cleaned,
    Estimate,
    ExploringSpent,
    InsideJob,
    Judge,
    Report,
    SiteDefault,
)
from io_autotune_report.load import (
    DatabaseError,
    State,
    StateError,
    connect,
    evaluation_cache,
    read_assessments,
    read_runs,
    read_studies,
)
from io_autotune_report.load import (
    database as reading_database,
)
from io_autotune_report.load.assessment import UNKNOWN

pytestmark = pytest.mark.store

FUTURE = datetime(2100, 1, 1, tzinfo=UTC)
SMALL = Shape(applications=6, studies=12, runs=1500, days=60)
SMALL_CHUNK = 100


@pytest.fixture(scope="module")
def year() -> Year:
    """A small one, the same for all tests."""
    return make(SMALL)


def fill(url: str, year: Year, after: float = float("-inf"), before: float = float("inf")) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        return write(connection, year, after, before)


def night(url: str, directory: Path) -> tuple[Report, int]:
    """The report of all that is there, and how many verdicts the evaluated studies have."""
    seen = [0]
    with State.open(directory) as state:
        occasion = Occasion("x", FUTURE, FUTURE, FUTURE.date(), None, FUTURE)
        report = assemble(url, state, occasion, 1, lambda done, _: seen.append(done))
    return report, seen[-1]


def same(report: Report, url: str, directory: Path) -> None:
    """A night from nothing says the same, and the runs are those that the service counts."""
    assert report.studies == night(url, directory / "alone")[0].studies
    runs = read_runs(url)
    assert report.total.runs == len(runs)
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select id, state, judged_ordinal from runs where state <> 'in_flight' order by id"
        ).fetchall()
    states = {"sample": "counted", "censored": "censored"}
    found = sorted(
        (run, states.get(effect, "not_counted"), ordinal)
        for run, effect, ordinal in zip(
            runs["run_id"], runs["effect"], runs["ordinal"], strict=True
        )
    )
    assert found == rows


def test_nights_one_after_the_other_have_what_one_has(
    database: str, year: Year, tmp_path: Path
) -> None:
    nights = [float("-inf"), 20 * DAY, 20.5 * DAY, 59 * DAY, float("inf")]
    for number, (after, before) in enumerate(pairwise(nights)):
        written = fill(database, year, after, before)
        report, evaluated = night(database, tmp_path)
        assert evaluated >= written > 0
        same(report, database, tmp_path / str(number))
    assert night(database, tmp_path)[1] == 0
    assert report.total.runs == year.started_at.size


def test_an_instant_sees_the_verdicts_that_were_made_before_it(
    database: str, other_database: str, year: Year
) -> None:
    revised = pd.Series(year.judged_run).duplicated(keep="last").to_numpy().nonzero()[0]
    at = float(year.judged_at[revised[0]]) + 1.0
    fill(database, year)
    fill(other_database, year, before=at)
    first = datetime.combine(SMALL.first, datetime.min.time(), UTC)
    then = read_runs(database, before=first + timedelta(seconds=at))
    pd.testing.assert_frame_equal(then, read_runs(other_database))
    late = then[then["run_id"] == year.judged_run[revised[0]] + 1]
    assert list(late["effect"]) == ["nothing"]


def test_each_cluster_is_a_group_and_a_site_with_one_has_none(
    database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    of_one, _ = night(database, tmp_path / "one")
    assert (of_one.clusters, {study.cluster for study in of_one.studies}) == ([], {None})
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "update studies set cluster = case when id % 3 = 0 then 'other' else 'site' end"
        )
    of_both, _ = night(database, tmp_path / "both")
    groups = {group.name: group for group in of_both.clusters}
    assert {name: group.studies for name, group in groups.items()} == {
        name: sum(study.cluster == name for study in of_both.studies) for name in ("site", "other")
    }
    assert sum(group.runs for group in groups.values()) == of_both.total.runs
    assert of_both.total == of_one.total


def test_what_an_agent_did_in_a_job_is_read_of_the_newest_run_that_had_one(
    database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    with psycopg.connect(database, autocommit=True) as connection:
        runs = connection.execute(
            "select study_id, run_id, ordinal from report.judgements j where latest and epoch ="
            " (select max(epoch) from report.epochs e where e.study_id = j.study_id)"
            " and study_id = (select min(study_id) from report.judgements) order by ordinal"
        ).fetchall()
        study_id, *_ = runs[-1]
        # Of an accelerator that has no such parameter nothing is looked for.
        connection.execute(
            "update epochs set space = space || %s::jsonb where study_id = %s",
            (json.dumps([ONLINE]), study_id),
        )
        # A space is an object if it has constraints.
        connection.execute(
            "update epochs set space = jsonb_build_object('parameters', space, 'constraints',"
            " '[]'::jsonb)"
        )
        # A control run, which was the last, had none; nor had another node.
        for (_, run_id, _), node, online in (
            (runs[-3], "n1", record(1)),
            (runs[-2], "n1", "null"),
            (runs[-2], "n2", record(2)),
            (runs[-1], "n1", None),
        ):
            body = "{}" if online is None else f'{{"online": {online}}}'
            connection.execute(
                "insert into reports (run_id, node, body) values (%s, %s, %s)",
                (run_id, node, body),
            )
    report, _ = night(database, tmp_path)
    told = {study.study_id: study.inside_job for study in report.studies}
    assert [study for study, inside in told.items() if inside] == [study_id]
    assert told[study_id] == InsideJob(
        ordinal=runs[-2][2],
        node="n2",
        policy="settling",
        levers=["nr_requests"],
        began=[8],
        entries=[InsideJob.Entry(10.0, 2.0, [16], 1)],
    )


def test_measures_are_those_of_the_latest_epochs_last_runs(
    database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    last = (
        "(select max(id) from epochs e where e.study_id ="
        " (select min(study_id) from report.judgements))"
    )
    with psycopg.connect(database, autocommit=True) as connection:
        measured = f"update judgements set measures = %s where epoch_id {{}} {last}"
        for where, told in (("<", {"objective.earlier": 9.0}), ("=", {"marked_seconds": 2.5})):
            connection.execute(measured.format(where), (json.dumps({"measured_steps": 1, **told}),))
        row = connection.execute(f"select study_id from epochs where id = {last}").fetchone()
        assert row is not None
        cleaned = {"share": 0.5, "default": {"mean": 3.0, "low": 2.0, "high": 4.0}}
        connection.execute(
            "update studies set assessment = %s where id = %s",
            (json.dumps({"cleaned": {**cleaned, "recommended": None}}), row[0]),
        )
    report, _ = night(database, tmp_path)
    (study,) = [study for study in report.studies if study.study_id == row[0]]
    names = {one.name for one in study.measures}
    assert names == {"elapsed", "marked_seconds"}
    (marked,) = [one for one in study.measures if one.name == "marked_seconds"]
    assert marked.default is not None
    assert marked.default.median == 2.5
    assert study.cleaned == Cleaned(0.5, Estimate(3.0, 2.0, 4.0), None)


ONLINE = {
    "name": "online",
    "kind": "categories",
    "values": ["off", *reading_database.ONLINE_POLICIES],
    "default": "off",
}


def test_every_policy_that_the_service_has_is_read() -> None:
    openapi = Path(__file__).resolve().parents[3] / "docs/openapi.json"
    schemas = json.loads(openapi.read_text(encoding="utf-8"))["components"]["schemas"]
    assert list(reading_database.ONLINE_POLICIES) == schemas["OnlinePolicy"]["enum"]


def record(bandwidth: int) -> str:
    """What a node tells, with fields that the report does not show."""
    entry = {"at_ms": 10000, "periods": 1, "bandwidth": bandwidth, "values": [16], "moves": 1}
    told = {"policy": "settling", "period_ms": 10000, "levers": ["nr_requests"], "began": [8]}
    return json.dumps({**told, "entries": [{**entry, "dirty": 0, "reason": "first"}]})


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
        assert night(database, tmp_path)[1] == year.judged_at.size + 1
        late.commit()
        counted = early.execute(
            "select count(*) from report.judgements where study_id ="
            " (select study_id from epochs where id = %s)",
            [one],
        ).fetchone()
    report, evaluated = night(database, tmp_path)
    assert (evaluated,) == counted
    same(report, database, tmp_path)


def test_runs_that_do_not_count_are_summed_up_by_why(database: str, year: Year) -> None:
    fill(database, year)
    with psycopg.connect(database) as connection:
        judged = connection.execute(
            "with picked as (select id, epoch_id, judged_ordinal,"
            " row_number() over (order by judged_at desc, id desc) as n from runs),"
            " lost as (update runs r set state = 'not_counted' from picked p"
            " where p.id = r.id and p.n <= 6)"
            " update judgements j set not_counted_because ="
            " case when p.n <= 3 then 'cancelled' when p.n <= 5 then 'resized' end"
            " from picked p where p.n <= 6 and j.run_id = p.id and j.ordinal = p.judged_ordinal"
            " returning p.n, j.judged_at, p.epoch_id"
        ).fetchall()
        first, last = (find(at for _, at, _ in judged) for find in (min, max))
        summed = reading_database.not_counted(connection, first, last + timedelta(seconds=1))
        found = {each.because: each for each in summed}
        assert {"cancelled": 3, "resized": 2}.items() <= {
            because: each.runs for because, each in found.items() if because is not None
        }.items()
        epochs = {epoch for n, _, epoch in judged if n <= 3}
        assert found["cancelled"].studies == len(epochs)
        assert None in found
        assert [each.runs for each in summed] == sorted(
            (each.runs for each in summed), reverse=True
        )
        assert reading_database.not_counted(connection, first, first) == []


def test_what_exploring_took_stands_beside_what_it_brought(
    database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    with psycopg.connect(database, autocommit=True) as connection:
        (uid, user) = connection.execute(
            'select owner_uid, "user" from report.studies order by study_id limit 1'
        ).fetchone() or (0, "")
        connection.cursor().executemany(
            "insert into exploring_spent (day, budget_of, cluster, name, node_seconds)"
            " values (%s, %s, %s, %s, %s)",
            [
                ("2026-11-19", "user", "", str(uid), 7200),
                ("2026-11-20", "user", "", str(uid), 3600),
                ("2026-11-20", "partition", "site", "never-heard-of", 1800),
                ("2026-11-21", "user", "", str(uid), 36000),
                ("2026-11-21", "site", "", "", 36000),
            ],
        )
    first, last = (datetime(2026, 11, day, tzinfo=UTC) for day in (19, 21))
    with State.open(tmp_path) as state:
        report = assemble(database, state, Occasion("x", first, last, last.date(), None, last), 1)
    saved = next((group.node_hours.saved for group in report.users if group.name == user), None)
    assert report.exploring == [
        ExploringSpent("user", user, 3.0, saved),
        ExploringSpent("partition", "never-heard-of", 0.5, None),
    ]


def test_what_studies_have_in_common_is_read_with_what_is_in_force(
    database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    found = {
        "values": {"cb_nodes": 8},
        "users": 3,
        "ratio": {"mean": 0.8, "low": 0.7, "high": 0.95},
        "studies": 3,
        "gain": 1,
        "smallest": 0.7,
        "largest": 1.05,
        "worst": 1.2,
        "losers": [{"study_id": 2, "ratio": {"mean": 1.05, "low": 0.9, "high": 1.2}}],
    }
    with psycopg.connect(database, autocommit=True) as connection:
        connection.cursor().executemany(
            "insert into site_settings (cluster, accelerator, made_of, found)"
            " values ('site', %s, '', %s)",
            [("romio", json.dumps(found)), ("nothing-in-common", None), ("ordered", None)],
        )
        connection.execute(
            "insert into orders (kind, accelerator, pinned, uid, why)"
            """ values ('site-default', 'ordered', '{"a": "2"}', 0, 'a test')"""
        )
    first, last = (datetime(2026, 11, day, tzinfo=UTC) for day in (19, 21))
    with State.open(tmp_path) as state:
        report = assemble(database, state, Occasion("x", first, last, last.date(), None, last), 1)
    assert report.site_defaults == [
        SiteDefault("ordered", None, {"a": "2"}),
        SiteDefault(
            "romio", {"cb_nodes": 8}, None, 3, 3, 1, 0.8, 0.7, 0.95, 0.7, 1.05, 1.2,
            [Judge(2, 1.05)],
        ),
    ]  # fmt: skip


def _report_and_die(url: str, directory: Path, chunks: int, at: str) -> None:
    """Evaluate in small chunks; after so many, die as one is read, or before a statement."""
    assembly.CHUNK = SMALL_CHUNK
    plain = reading_database.judgements
    done = 0

    def deadly(connection: psycopg.Connection, studies: Sequence[int], before: datetime) -> bytes:
        if done == chunks and at == "read":
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(connection, studies, before)

    def progress(*_: int) -> None:
        nonlocal done
        done += 1

    def trace(statement: str) -> None:
        if done == chunks and statement.lower().startswith(at):
            os.kill(os.getpid(), signal.SIGKILL)

    reading_database.judgements = deadly
    occasion = Occasion("x", FUTURE, FUTURE, FUTURE.date(), None, FUTURE)
    with State.open(directory) as state:
        state._sqlite.set_trace_callback(trace)
        assemble(url, state, occasion, 1, progress)


@pytest.mark.parametrize(
    ("chunks", "at"),
    [(0, "read"), (3, "read"), (0, "insert"), (3, "insert"), (4, "begin"), (2, "commit")],
)
def test_a_night_that_is_killed_goes_on_where_it_was(
    database: str, year: Year, tmp_path: Path, chunks: int, at: str
) -> None:
    total = fill(database, year)
    # Forked, the child would share this process's connections.
    spawn = multiprocessing.get_context("spawn")
    child = spawn.Process(target=_report_and_die, args=(database, tmp_path, chunks, at))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    with connect(database) as connection:
        standings = reading_database.standings(connection, FUTURE)
    through = [*assembly._chunks(standings, SMALL_CHUNK)][:chunks]
    report, evaluated = night(database, tmp_path)
    assert evaluated == total - sum(each.judgements for chunk in through for each in chunk)
    same(report, database, tmp_path)


def test_a_state_of_another_version_is_made_anew(database: str, year: Year, tmp_path: Path) -> None:
    total = fill(database, year)
    (tmp_path / "mirror.sqlite").write_bytes(b"of an earlier release")
    report, evaluated = night(database, tmp_path)
    assert evaluated == total
    assert not (tmp_path / "mirror.sqlite").exists()
    same(report, database, tmp_path)
    (tmp_path / evaluation_cache.FILE).write_bytes(b"damaged" * 1000)
    with pytest.raises(StateError, match="remove it, and all is evaluated anew"):
        night(database, tmp_path)


def test_a_database_restored_from_an_older_dump_is_evaluated_anew(
    database: str, other_database: str, year: Year, tmp_path: Path
) -> None:
    fill(database, year)
    night(database, tmp_path)
    earlier = fill(other_database, year, before=30 * DAY)
    lost = set(year.run_study[year.judged_run[year.judged_at >= 30 * DAY]])
    left = year.run_study[year.judged_run[year.judged_at < 30 * DAY]]
    report, evaluated = night(other_database, tmp_path)
    assert evaluated == sum(study in lost for study in left) > 0
    same(report, other_database, tmp_path / "then")
    # It has gone on since, and other runs have taken the places of those that were lost.
    with psycopg.connect(other_database, autocommit=True) as connection:
        connection.execute("update judgements set judged_at = judged_at + interval '1 s'")
    assert night(other_database, tmp_path)[1] == earlier


def test_two_reports_do_not_work_with_one_state(tmp_path: Path) -> None:
    with (
        State.open(tmp_path),
        pytest.raises(StateError, match="another io-autotune-report works with"),
        State.open(tmp_path),
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

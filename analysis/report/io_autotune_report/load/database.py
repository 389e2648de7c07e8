"""The report's only SQL: it reads views of schema ``report``, in one read-only snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime

import psycopg
from psycopg import sql
from psycopg.rows import class_row, scalar_row

from io_autotune_report.document import ExploringSpent, NotCounted
from io_autotune_report.forgotten import Forgotten

APPLICATION_NAME = "io-autotune-report"
"""What ``pg_stat_activity`` shows of it."""


class DatabaseError(Exception):
    """The database cannot be read; the message says what to do."""


@dataclass(frozen=True)
class StudyRow:
    """A row of ``report.studies``."""

    study_id: int
    application: str
    owner_uid: int
    user: str
    accelerator: str
    context: dict[str, str]
    pinned: bool
    cluster: str | None = None
    """Where there are several."""
    full_name: str | None = None
    """What the application is called in full, if its name is not all of it."""


@dataclass(frozen=True)
class Standing:
    """Which judgements a study has by an instant."""

    study_id: int
    judgements: int
    first: datetime
    """When the first of them was made."""
    last: datetime


@contextmanager
def connect(url: str, snapshot: str | None = None) -> Iterator[psycopg.Connection]:
    """Open a snapshot of the database, or join another connection's.

    Raises:
        DatabaseError: it cannot be reached, read, or has no schema ``report``.
    """
    try:
        connection = psycopg.connect(url, application_name=APPLICATION_NAME)
    except psycopg.Error as error:
        raise DatabaseError(
            f"the database cannot be reached: {str(error).strip()}; is it up, and does the URL name"
            " it and a role that may log in (deploy/sql/report-role.sql)?"
        ) from error
    try:
        with connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            if snapshot is not None:
                connection.execute(
                    sql.SQL("set transaction snapshot {}").format(sql.Literal(snapshot))
                )
            _check(connection)
            yield connection
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseError(
            f"{str(error).strip()}: grant the role what it reads by deploy/sql/report-role.sql"
        ) from error
    except psycopg.Error as error:
        raise DatabaseError(f"reading the database failed: {str(error).strip()}") from error
    finally:
        connection.close()


def _check(connection: psycopg.Connection) -> None:
    """Refuse a database without this schema."""
    known = connection.execute(
        "select count(*) from pg_views where schemaname = 'report'"
        " and viewname in ('studies', 'epochs', 'judgements', 'assessments', 'online', 'measures',"
        " 'not_counted', 'exploring_spent', 'forgotten', 'site_settings')"
    ).fetchone()
    if known is None or known[0] < 10:  # noqa: PLR2004 - as many as are named above
        raise DatabaseError(
            f"the database {connection.info.dbname!r} has no schema `report` of this release: start"
            " its io-autotuned on it once, which migrates it, or correct the URL"
        )
    # Sorting and joining a year takes longer than a site's roles may be given by default.
    connection.execute("set local statement_timeout = 0")


def snapshot(connection: psycopg.Connection) -> str:
    """Name the snapshot for others, while it is open."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        return str(cursor.execute("select pg_export_snapshot()").fetchone())


def studies(connection: psycopg.Connection) -> list[StudyRow]:
    """All studies."""
    with connection.cursor(row_factory=class_row(StudyRow)) as cursor:
        return cursor.execute(
            'select study_id, application, owner_uid, "user", accelerator, context, pinned,'
            " case when (select count(distinct cluster) from report.studies) > 1 then cluster end"
            " as cluster, full_name from report.studies order by study_id"
        ).fetchall()


def forgotten(connection: psycopg.Connection) -> dict[int, Forgotten]:
    """By study, how those of forgotten users are called."""
    with connection.cursor(row_factory=class_row(Forgotten)) as cursor:
        rows = cursor.execute(
            'select study_id, application, "user", full_name from report.forgotten'
        ).fetchall()
    return {row.study_id: row for row in rows}


def assessments(connection: psycopg.Connection) -> dict[int, str]:
    """By study, the service's assessment as JSON."""
    return dict(
        connection.execute("select study_id, assessment::text from report.assessments").fetchall()
    )


_LAST = """(
    select distinct on (study_id) study_id, epoch_id, judgements, space from report.epochs
    where judgements > 0 order by study_id, epoch desc) last"""
"""Each study's last epoch that has judgements: the one that a report shows."""


def accounts(connection: psycopg.Connection) -> dict[int, str]:
    """By study, Slurm's account of the run judged last."""
    return dict(
        connection.execute(
            "select j.study_id, j.account from report.judgements j"
            f" join {_LAST} on last.epoch_id = j.epoch_id and last.judgements = j.ordinal"
            " where j.account is not null"
        ).fetchall()
    )


def spaces(
    connection: psycopg.Connection, studies: Sequence[int]
) -> dict[int, list[tuple[int, str]]]:
    """By study, epochs and spaces (JSON), in order."""
    found: dict[int, list[tuple[int, str]]] = {study: [] for study in studies}
    for study, epoch, space in connection.execute(
        "select study_id, epoch, space::text from report.epochs where study_id = any(%s)"
        " order by study_id, epoch",
        (list(studies),),
    ):
        found[study].append((epoch, space))
    return found


ONLINE_POLICIES = ("iopathtune", "iopathtune-each", "iopathtune-requests", "settling")
"""Who can decide inside a job, as parametrizations name them: no other epoch has had an agent."""

_ONLINE = f"""
    select distinct on (last.study_id) last.study_id, j.ordinal, o.node, o.record::text
    from {_LAST}
    join report.judgements j on j.epoch_id = last.epoch_id
         and exists (select from jsonb_array_elements(case jsonb_typeof(last.space)
                         when 'object' then last.space -> 'parameters' else last.space end)
                     as parameter
                     where parameter -> 'values' ?| %(policies)s)
         and j.ordinal > last.judgements - %(runs)s and j.judged_at < %(before)s
    join report.online o on o.run_id = j.run_id
    where last.study_id = any(%(studies)s)
    order by last.study_id, j.ordinal desc, o.node
"""


def online(
    connection: psycopg.Connection, studies: Sequence[int], before: datetime, runs: int
) -> dict[int, tuple[int, str, str]]:
    """By study, the newest of its last ``runs`` judged runs that an agent was in.

    Its ordinal, one node, and that node's record as JSON.
    """
    asked = {
        "studies": list(studies),
        "before": before,
        "runs": runs,
        "policies": list(ONLINE_POLICIES),
    }
    rows = connection.execute(_ONLINE, asked).fetchall()
    return {study: (ordinal, node, record) for study, ordinal, node, record in rows}


def measures(
    connection: psycopg.Connection, studies: Sequence[int], before: datetime, runs: int
) -> list[tuple[int, str]]:
    """Runs and their measures as JSON: the ``runs`` judged last of each study's last epoch."""
    return connection.execute(
        "select m.run_id, m.measures::text"
        f" from {_LAST} join report.measures m on m.epoch_id = last.epoch_id"
        " where last.study_id = any(%s) and m.ordinal > last.judgements - %s and m.judged_at < %s"
        " order by m.epoch_id, m.ordinal",
        (list(studies), runs, before),
    ).fetchall()


def not_counted(
    connection: psycopg.Connection, first: datetime, last: datetime
) -> list[NotCounted]:
    """Runs that were judged from ``first`` up to ``last`` and do not count, by reason."""
    with connection.cursor(row_factory=class_row(NotCounted)) as cursor:
        return cursor.execute(
            "select n.because, count(*) as runs, count(distinct e.study_id) as studies"
            " from report.not_counted n join report.epochs e on e.epoch_id = n.epoch_id"
            " where n.judged_at >= %s and n.judged_at < %s"
            " group by n.because order by runs desc, n.because",
            (first, last),
        ).fetchall()


def exploring_spent(
    connection: psycopg.Connection, first: date, last: date
) -> list[ExploringSpent]:
    """What exploring took of each budget from the day ``first`` up to ``last``, exclusive."""
    with connection.cursor(row_factory=class_row(ExploringSpent)) as cursor:
        return cursor.execute(
            "select budget_of, name, sum(node_hours) as node_hours,"
            " case when (select count(distinct cluster) from report.studies) > 1"
            " then nullif(cluster, '') end as cluster"
            " from report.exploring_spent where day >= %s and day < %s"
            " group by budget_of, cluster, name order by node_hours desc, budget_of, cluster, name",
            (first, last),
        ).fetchall()


@dataclass(frozen=True)
class SiteSettingRow:
    """A row of ``report.site_settings``."""

    accelerator: str
    found: str | None
    """What the service has found that studies have in common, as JSON."""
    in_force: dict[str, str] | None
    cluster: str | None = None
    """Where there are several."""


def site_settings(connection: psycopg.Connection) -> list[SiteSettingRow]:
    """What the studies of accelerators have in common, as of now."""
    with connection.cursor(row_factory=class_row(SiteSettingRow)) as cursor:
        return cursor.execute(
            "select accelerator, found::text as found, in_force,"
            " case when (select count(distinct cluster) from report.studies) > 1 then cluster end"
            " as cluster from report.site_settings order by accelerator, cluster"
        ).fetchall()


def standings(connection: psycopg.Connection, before: datetime) -> list[Standing]:
    """Studies judged before an instant, by id."""
    with connection.cursor(row_factory=class_row(Standing)) as cursor:
        return cursor.execute(
            "select study_id, count(*) as judgements, min(judged_at) as first,"
            " max(judged_at) as last from report.judgements where judged_at < %s"
            " group by study_id order by study_id",
            (before,),
        ).fetchall()


_JUDGEMENTS = """
    copy (select run_id, study_id, epoch, ordinal,
                 (extract(epoch from started_at) * 1000000)::bigint, coalesce(elapsed, 'NaN'),
                 greatest(coalesce(nodes, 1), 1), role, phase, effect, parametrization
          from report.judgements where study_id = any({studies}) and judged_at < {before}
          order by study_id, epoch, ordinal)
    to stdout (format csv)
"""


def judgements(connection: psycopg.Connection, studies: Sequence[int], before: datetime) -> bytes:
    """CSV of studies' judgements before an instant, in order.

    Where nobody said, a job had one node: the claim is the smaller.
    """
    query = sql.SQL(_JUDGEMENTS).format(
        studies=sql.Literal(list(studies)), before=sql.Literal(before)
    )
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        return b"".join(copy)

"""The report's only SQL for PostgreSQL: it reads the views of schema ``report`` and writes nothing.

Everything that is read together is read in one snapshot (repeatable read, read only).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import class_row

APPLICATION_NAME = "io-autotune-report"
"""What ``pg_stat_activity`` shows of it."""


class DatabaseError(Exception):
    """The database cannot be read; the message says what to do."""


@dataclass(frozen=True)
class StudyRow:
    """A row of ``report.studies``, with the study's of ``report.assessments``."""

    study_id: int
    application: str
    owner_uid: int
    user: str
    accelerator: str
    context: dict[str, str]
    pinned: bool
    pin: dict[str, Any] | None
    assessment: str | None
    """As the database writes JSON; none before the service has assessed the study."""


@dataclass(frozen=True)
class EpochRow:
    """A row of ``report.epochs``; ``judgements`` is how many its history has by now."""

    epoch_id: int
    study_id: int
    epoch: int
    objective: str
    opened_at: datetime
    opened_why: str
    judgements: int


@dataclass(frozen=True)
class Wanted:
    """Judgements of an epoch, from the one after ``after`` to ``up_to``."""

    epoch_id: int
    after: int
    up_to: int


@dataclass(frozen=True)
class Judgement:
    """A row of ``report.judgements``; instants in microseconds since 1970, UTC."""

    epoch_id: int
    ordinal: int
    study_id: int
    epoch: int
    run_id: int
    started_at: int
    judged_at: int
    effect: str
    elapsed: float | None
    parametrization: str | None
    """As the database writes JSON."""
    nodes: int | None
    role: str
    phase: str


@contextmanager
def connect(url: str) -> Iterator[psycopg.Connection]:
    """Open one snapshot of the database behind a libpq URL or connection string.

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
    """Refuse a database that io-autotuned has not brought to the schema that is read here."""
    known = connection.execute(
        "select count(*) from pg_views where schemaname = 'report'"
        " and viewname in ('studies', 'epochs', 'judgements', 'assessments')"
    ).fetchone()
    if known is None or known[0] < 4:  # noqa: PLR2004 - as many as are named above
        raise DatabaseError(
            f"the database {connection.info.dbname!r} has no schema `report` of this release: start"
            " its io-autotuned on it once, which migrates it, or correct the URL"
        )
    # Sorting and joining a year takes longer than a site's roles may be given by default.
    connection.execute("set local statement_timeout = 0")


def studies(connection: psycopg.Connection) -> list[StudyRow]:
    """All studies."""
    with connection.cursor(row_factory=class_row(StudyRow)) as cursor:
        return cursor.execute(
            'select study_id, application, owner_uid, "user", accelerator, context, pinned, pin,'
            " assessment::text from report.studies left join report.assessments using (study_id)"
            " order by study_id"
        ).fetchall()


def accounts(connection: psycopg.Connection) -> dict[int, str]:
    """By study, what Slurm charged the run to that was judged last, where Slurm said."""
    return dict(
        connection.execute(
            "select j.study_id, j.account from report.judgements j"
            " join (select distinct on (study_id) epoch_id, judgements from report.epochs"
            "       where judgements > 0 order by study_id, epoch desc) last"
            "   on last.epoch_id = j.epoch_id and last.judgements = j.ordinal"
            " where j.account is not null"
        ).fetchall()
    )


def epochs(connection: psycopg.Connection) -> list[EpochRow]:
    """All epochs, by study and number."""
    with connection.cursor(row_factory=class_row(EpochRow)) as cursor:
        return cursor.execute(
            "select epoch_id, study_id, epoch, objective, opened_at, opened_why, judgements"
            " from report.epochs order by study_id, epoch"
        ).fetchall()


def spaces(connection: psycopg.Connection, epoch_ids: Sequence[int]) -> Iterator[tuple[int, str]]:
    """The spaces of some epochs, as JSON; they stream."""
    with connection.cursor("spaces") as cursor:
        cursor.execute(
            "select epoch_id, space::text from report.epochs where epoch_id = any(%s)",
            (list(epoch_ids),),
        )
        yield from cursor


_WANTED = """
    copy (select j.epoch_id, j.ordinal, j.study_id, j.epoch, j.run_id,
                 (extract(epoch from j.started_at) * 1000000)::bigint,
                 (extract(epoch from j.judged_at) * 1000000)::bigint,
                 j.effect, j.elapsed, j.parametrization::text, j.nodes, j.role, j.phase
          from unnest({epochs}::bigint[], {after}::bigint[], {up_to}::bigint[])
                   as wanted (epoch_id, after, up_to)
          join report.judgements j on j.epoch_id = wanted.epoch_id
                                  and j.ordinal > wanted.after and j.ordinal <= wanted.up_to)
    to stdout
"""


def judgements(connection: psycopg.Connection, wanted: Sequence[Wanted]) -> Iterator[Judgement]:
    """The judgements wanted, in no order. They stream: few are in memory at a time."""
    query = sql.SQL(_WANTED).format(
        epochs=sql.Literal([each.epoch_id for each in wanted]),
        after=sql.Literal([each.after for each in wanted]),
        up_to=sql.Literal([each.up_to for each in wanted]),
    )
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        for row in copy.rows():
            yield _judgement(row)


def _judgement(row: Sequence[str | None]) -> Judgement:
    epoch_id, ordinal, study_id, epoch, run_id, started_at, judged_at, *others = row
    effect, elapsed, parametrization, nodes, role, phase = others
    return Judgement(
        epoch_id=int(epoch_id or 0),
        ordinal=int(ordinal or 0),
        study_id=int(study_id or 0),
        epoch=int(epoch or 0),
        run_id=int(run_id or 0),
        started_at=int(started_at or 0),
        judged_at=int(judged_at or 0),
        effect=str(effect),
        elapsed=None if elapsed is None else float(elapsed),
        parametrization=parametrization,
        nodes=None if nodes is None else int(nodes),
        role=str(role),
        phase=str(phase),
    )


def batches(news: Iterable[Wanted], size: int) -> Iterator[list[Wanted]]:
    """Cut what is wanted into parts of ``size`` judgements at the most, in its order."""
    batch: list[Wanted] = []
    room = size
    for wanted in news:
        after = wanted.after
        while after < wanted.up_to:
            taken = min(room, wanted.up_to - after)
            batch.append(Wanted(wanted.epoch_id, after, after + taken))
            after, room = after + taken, room - taken
            if room == 0:
                yield batch
                batch, room = [], size
    if batch:
        yield batch

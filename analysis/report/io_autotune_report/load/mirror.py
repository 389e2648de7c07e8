"""What has been read so far, kept in a directory: a night reads only what is new.

**Why nothing is lost or counted twice.** Judgements commit out of the order of their ids, so "all
ids above the last one" would lose those that commit late. Within an epoch they cannot: a judgement
takes its ordinal by updating its epoch's row and holds that row until it commits, so ordinals
become visible in their order and without gaps, and ``epochs.judgements`` is the last of them that
the same snapshot sees. What an epoch has beyond what is known of it is what is new, however late it
came.

The directory holds one SQLite database. Judgements are added, and what is known of their epochs is
counted, in one transaction, so that a night that is killed anywhere goes on where it was.
Judgements are never changed there: a revised one is added, and a run's last one holds whenever a
frame is made. A directory of another version, or of a database that is not the same any more
(restored from a dump that is older than what was read), is emptied and read anew.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import psycopg

from io_autotune_report.document import Value
from io_autotune_report.load import assessment, database, parametrizations
from io_autotune_report.load.assessment import Assessment

VERSION = 2
"""Of the tables below and of what stands in them."""
BATCH = 50_000
"""Judgements are read and committed so many at a time."""

Progress = Callable[[int, int], None]
"""Is told how much is done, of how much."""

_TABLES = f"""
    create table studies (study_id integer primary key, application text not null,
        owner_uid integer not null, user text not null, accelerator text not null,
        context text not null, pinned integer not null, pin text, account text,
        assessment text);
    create table epochs (epoch_id integer primary key, study_id integer not null,
        epoch integer not null, objective text not null, opened_at integer not null,
        opened_why text not null, space_id integer not null, default_id integer not null,
        judged integer not null);
    create table texts (id integer primary key, text text not null unique);
    create table judgements (study_id integer not null, epoch integer not null,
        ordinal integer not null, run_id integer not null, started_at integer not null,
        judged_at integer not null, effect text not null, elapsed real, key_id integer,
        nodes integer, role text not null, phase text not null,
        primary key (study_id, epoch, ordinal)) without rowid;
    create table results (study_id integer primary key, grounds text not null,
        result blob not null);
    pragma user_version = {VERSION};
"""


class MirrorError(Exception):
    """The directory cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Epoch:
    """An epoch of a study."""

    epoch: int
    objective: str
    opened_at: datetime
    opened_why: str
    default: dict[str, Value]
    parameters: list[dict[str, Any]]


@dataclass(frozen=True)
class Standing:
    """What is known of a study by an instant, told apart from any other standing of it."""

    study_id: int
    judgements: int
    grounds: str


class Mirror:
    """The directory, opened. Reading may be shared between processes; one alone may write."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Use :meth:`open` or :meth:`reader`."""
        self._sqlite = connection
        self._texts: dict[str, int] = {}

    @classmethod
    @contextmanager
    def open(cls, directory: Path) -> Iterator[Mirror]:
        """Open it for writing; it is made where it does not exist.

        Raises:
            MirrorError: it cannot be written, or another report is being made with it.
        """
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (directory / "lock").open("w")
        except OSError as error:
            raise MirrorError(f"the state directory {directory} cannot be used: {error}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise MirrorError(
                    f"another io-autotune-report works with {directory}: wait until it has ended,"
                    " or give another --state"
                ) from error
            mirror = cls(_connect(directory / "mirror.sqlite"))
            try:
                yield mirror
            finally:
                mirror._sqlite.close()

    @classmethod
    def reader(cls, directory: Path) -> Mirror:
        """Open it for reading while another process holds it for writing."""
        return cls(sqlite3.connect(f"file:{directory / 'mirror.sqlite'}?mode=ro", uri=True))

    def absorb(self, connection: psycopg.Connection, progress: Progress = lambda *_: None) -> int:
        """Read what is new in the snapshot; return how many judgements that was."""
        epochs = database.epochs(connection)
        if not self._is_of(connection, {epoch.epoch_id: epoch for epoch in epochs}):
            _empty(self._sqlite)
            self._texts.clear()
        self._take_studies(database.studies(connection), database.accounts(connection))
        self._take_epochs(connection, epochs)
        known = dict(self._sqlite.execute("select epoch_id, judged from epochs"))
        news = [
            database.Wanted(epoch.epoch_id, known[epoch.epoch_id], epoch.judgements)
            for epoch in epochs
            if epoch.judgements > known[epoch.epoch_id]
        ]
        total, done = sum(each.up_to - each.after for each in news), 0
        for batch in database.batches(news, BATCH):
            done += self._take_judgements(connection, batch)
            progress(done, total)
        return done

    def _is_of(self, connection: psycopg.Connection, epochs: dict[int, database.EpochRow]) -> bool:
        """Whether all that is known is in the snapshot, each epoch's last judgement as it was."""
        last = {}
        for epoch_id, judged, opened_at, run_id, judged_at in self._sqlite.execute(
            "select e.epoch_id, e.judged, e.opened_at, j.run_id, j.judged_at from epochs e"
            " left join judgements j on j.study_id = e.study_id and j.epoch = e.epoch"
            " and j.ordinal = e.judged"
        ):
            epoch = epochs.get(epoch_id)
            if epoch is None or epoch.judgements < judged or _micros(epoch.opened_at) != opened_at:
                return False
            if judged > 0:
                last[epoch_id] = (judged, run_id, judged_at)
        wanted = [
            database.Wanted(epoch_id, judged - 1, judged)
            for epoch_id, (judged, _, _) in last.items()
        ]
        found = {
            row.epoch_id: (row.ordinal, row.run_id, row.judged_at)
            for row in database.judgements(connection, wanted)
        }
        return found == last

    def _take_studies(self, studies: Iterable[database.StudyRow], accounts: dict[int, str]) -> None:
        with self._sqlite:
            self._sqlite.execute("delete from studies")
            self._sqlite.executemany(
                "insert into studies values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        study.study_id,
                        study.application,
                        study.owner_uid,
                        study.user,
                        study.accelerator,
                        json.dumps(study.context),
                        study.pinned,
                        study.pin and parametrizations.key(study.pin),
                        accounts.get(study.study_id),
                        study.assessment,
                    )
                    for study in studies
                ),
            )

    def _take_epochs(
        self, connection: psycopg.Connection, epochs: Iterable[database.EpochRow]
    ) -> None:
        """An epoch's row never changes but for its count."""
        known = {epoch_id for (epoch_id,) in self._sqlite.execute("select epoch_id from epochs")}
        new = {epoch.epoch_id: epoch for epoch in epochs if epoch.epoch_id not in known}
        with self._sqlite:
            for epoch_id, space in database.spaces(connection, list(new)):
                epoch = new[epoch_id]
                self._sqlite.execute(
                    "insert into epochs values (?, ?, ?, ?, ?, ?, ?, ?, 0)",
                    (
                        epoch.epoch_id,
                        epoch.study_id,
                        epoch.epoch,
                        epoch.objective,
                        _micros(epoch.opened_at),
                        epoch.opened_why,
                        self._text_id(space),
                        self._text_id(_default_key(space)),
                    ),
                )

    def _take_judgements(self, connection: psycopg.Connection, batch: list[database.Wanted]) -> int:
        keys: dict[str, int] = {}

        def key_id(text: str | None) -> int | None:
            if text is None:
                return None
            if text not in keys:
                keys[text] = self._text_id(parametrizations.key(json.loads(text)))
            return keys[text]

        with self._sqlite:
            rows = [
                (
                    row.study_id,
                    row.epoch,
                    row.ordinal,
                    row.run_id,
                    row.started_at,
                    row.judged_at,
                    row.effect,
                    row.elapsed,
                    key_id(row.parametrization),
                    row.nodes,
                    row.role,
                    row.phase,
                )
                for row in database.judgements(connection, batch)
            ]
            expected = sum(wanted.up_to - wanted.after for wanted in batch)
            if len(rows) != expected:
                raise database.DatabaseError(
                    f"epochs {batch[0].epoch_id} to {batch[-1].epoch_id} say that they have"
                    f" {expected} new judgements, and {len(rows)} are there: ask `io-autotune"
                    " doctor` as an admin"
                )
            self._sqlite.executemany(
                "insert into judgements values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
            )
            self._sqlite.executemany(
                "update epochs set judged = ? where epoch_id = ?",
                [(wanted.up_to, wanted.epoch_id) for wanted in batch],
            )
        return len(rows)

    def _text_id(self, text: str) -> int:
        if text not in self._texts:
            self._texts[text] = _text_id(self._sqlite, text)
        return self._texts[text]

    def standings(self, before: datetime) -> list[Standing]:
        """The studies that have judgements made before an instant, by id."""
        rows = self._sqlite.execute(
            "select j.study_id, count(*), sum(j.ordinal), max(j.judged_at), s.pin"
            " from judgements j join studies s using (study_id) where j.judged_at < ?"
            " group by j.study_id order by j.study_id",
            (_micros(before),),
        )
        return [Standing(study_id, count, json.dumps(rest)) for study_id, count, *rest in rows]

    def first_judged(self) -> datetime | None:
        """When the first judgement was made."""
        (first,) = self._sqlite.execute("select min(judged_at) from judgements").fetchone()
        return None if first is None else datetime.fromtimestamp(first / 1e6, UTC)

    def studies(self) -> list[tuple[Any, ...]]:
        """The studies, with the columns of ``frames.STUDIES`` in their order."""
        rows = self._sqlite.execute(
            "select study_id, application, owner_uid, user, account, accelerator, context, pinned"
            " from studies order by study_id"
        )
        return [(*row[:6], json.loads(row[6]), bool(row[7])) for row in rows]

    def assessments(self) -> dict[int, Assessment]:
        """What the service has decided of each study, as it was when it was read."""
        rows = self._sqlite.execute("select study_id, assessment from studies")
        return {study_id: assessment.decode(text) for study_id, text in rows}

    def pin(self, study_id: int) -> str | None:
        """The key of the parametrization that a study is pinned to."""
        row = self._sqlite.execute(
            "select pin from studies where study_id = ?", (study_id,)
        ).fetchone()
        return None if row is None else row[0]

    def epochs(self, study_id: int) -> list[Epoch]:
        """A study's epochs, in their order."""
        rows = self._sqlite.execute(
            "select epoch, objective, opened_at, opened_why, d.text, s.text from epochs"
            " join texts d on d.id = default_id join texts s on s.id = space_id"
            " where study_id = ? order by epoch",
            (study_id,),
        )
        return [
            Epoch(
                epoch=epoch,
                objective=objective,
                opened_at=datetime.fromtimestamp(opened_at / 1e6, UTC),
                opened_why=why,
                default=json.loads(default),
                parameters=parametrizations.parameters(json.loads(space)),
            )
            for epoch, objective, opened_at, why, default, space in rows
        ]

    def judgements(self, study_id: int, before: datetime) -> list[tuple[Any, ...]]:
        """A study's judgements made before an instant, in their order; columns: ``tables.ROW``."""
        return self._sqlite.execute(
            "select run_id, j.study_id, j.epoch, ordinal, started_at, judged_at, elapsed, nodes,"
            " role, phase, effect, t.text, j.key_id is e.default_id"
            " from judgements j join epochs e on e.study_id = j.study_id and e.epoch = j.epoch"
            " left join texts t on t.id = j.key_id"
            " where j.study_id = ? and judged_at < ? order by j.epoch, ordinal",
            (study_id, _micros(before)),
        ).fetchall()

    def result(self, study_id: int, grounds: str) -> bytes | None:
        """What was kept of a study's evaluation, if it was made on these grounds."""
        row = self._sqlite.execute(
            "select result from results where study_id = ? and grounds = ?", (study_id, grounds)
        ).fetchone()
        return None if row is None else row[0]

    def has_result(self, study_id: int, grounds: str) -> bool:
        """Whether :meth:`result` has one."""
        found = self._sqlite.execute(
            "select 1 from results where study_id = ? and grounds = ?", (study_id, grounds)
        )
        return found.fetchone() is not None

    def keep(self, results: Iterable[tuple[int, str, bytes]]) -> None:
        """Keep evaluations: study, grounds, result."""
        with self._sqlite:
            self._sqlite.executemany("insert or replace into results values (?, ?, ?)", results)


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path)
        (version,) = connection.execute("pragma user_version").fetchone()
        if version != VERSION:
            _empty(connection)
        # Readers in other processes go on while a result is kept.
        connection.execute("pragma journal_mode = wal")
    except sqlite3.Error as error:
        raise MirrorError(
            f"{path} cannot be used: {error}; remove it, and everything is read anew"
        ) from error
    return connection


def _empty(connection: sqlite3.Connection) -> None:
    """Make the tables afresh, in one transaction."""
    names = [
        name
        for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")
    ]
    drops = "".join(f'drop table "{name}";' for name in names)
    connection.executescript(f"begin; {drops} {_TABLES} commit;")


def _text_id(connection: sqlite3.Connection, text: str) -> int:
    row = connection.execute("select id from texts where text = ?", (text,)).fetchone()
    if row is not None:
        return int(row[0])
    return int(connection.execute("insert into texts (text) values (?)", (text,)).lastrowid or 0)


@lru_cache(maxsize=64)
def _default_key(space: str) -> str:
    return parametrizations.key(parametrizations.default(json.loads(space)))


def _micros(instant: datetime) -> int:
    whole = instant.astimezone(UTC)
    since = whole - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds

"""Writes the generated year to the service's tables by COPY, a span of days at a time.

It writes the tables of truth for runs with a verdict, as the service would, without nodes' reports
and the caches ``tested``, which the report does not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
from io_autotune_report.load.tables import EFFECTS, PHASES, ROLES
from psycopg import sql

from generated_site.play import CONTROL_CHANCE, EFFECT, ROLE
from generated_site.year import Year

DRAWN = json.dumps({"control_chance": CONTROL_CHANCE})
"""What a run of the settled phase keeps of its decision."""
STATE = {
    "sample": "counted",
    "censored": "censored",
    "failure": "not_counted",
    "out_of_memory": "not_counted",
    "nothing": "not_counted",
}
OUTCOME = {
    "sample": "COMPLETED",
    "censored": "TIMEOUT",
    "failure": "FAILED",
    "out_of_memory": "OUT_OF_MEMORY",
    "nothing": "CANCELLED",
}
VERDICT = {
    "sample": "Slurm says COMPLETED and the parametrization was applied",
    "censored": "its time limit ended it: a lower bound",
    "failure": "Slurm says FAILED",
    "out_of_memory": "Slurm says OUT_OF_MEMORY",
    "nothing": "Slurm says CANCELLED",
}

Row = tuple[Any, ...]


class SiteError(Exception):
    """The year cannot be written; the message says what to do."""


def write(
    connection: psycopg.Connection,
    year: Year,
    after: float = float("-inf"),
    before: float = float("inf"),
    progress: Callable[[str], None] = lambda _: None,
) -> int:
    """Write the judgements made from ``after`` to ``before`` and all that they need.

    Both are seconds after the year's start. Spans are written in order, the first into an empty
    database, in one transaction. Returns the number of judgements. Raises SiteError if the database
    has studies that are not this year's.
    """
    with connection.transaction():
        if after == float("-inf"):
            _refuse_a_used_one(connection)
        span = _Span(year, after, before)
        for table, columns, rows in span.new():
            progress(table)
            _copy(connection, table, columns, rows)
        progress("epochs, runs")
        span.update(connection)
        for table in ("applications", "studies", "epochs", "runs", "judgements"):
            connection.execute(
                sql.SQL("select setval(pg_get_serial_sequence({}, 'id'), max(id)) from {}").format(
                    sql.Literal(table), sql.Identifier(table)
                )
            )
    connection.execute("analyze")
    return span.judged.size


def _refuse_a_used_one(connection: psycopg.Connection) -> None:
    row = connection.execute("select count(*) from applications").fetchone()
    if row is None or row[0] > 0:
        raise SiteError(
            f"the database {connection.info.dbname!r} has applications already: a year is written"
            " into an empty database only, made by `createdb` and io-autotuned's migrations"
        )


def _measures(elapsed: float, study: int) -> str:
    """What a run did, as JSON: the same in each run of a study, but for time."""
    written = 1e9 * (1 + study % 97)
    return json.dumps(
        {
            "measured_steps": 1,
            "asked_written_bytes": written,
            "storage_written_bytes": written,
            "write_calls": written / 2**20 // 1,
            "user_seconds": 0.8 * elapsed,
            "system_seconds": 0.1 * elapsed,
        }
    )


def _copy(
    connection: psycopg.Connection, table: str, columns: Sequence[str], rows: Iterable[Row]
) -> None:
    query = sql.SQL("copy {} ({}) from stdin").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        for row in rows:
            copy.write_row(row)


class _Span:
    """The part of a year that is written at once. Ids are places, from 1."""

    def __init__(self, year: Year, after: float, before: float) -> None:
        self.year = year
        at = year.judged_at
        self.judged = np.flatnonzero((at >= after) & (at < before))
        earlier = np.flatnonzero(at < after)
        known_runs = np.unique(year.judged_run[earlier])
        self.known_epochs = np.unique(year.run_epoch[known_runs])
        until = np.flatnonzero(at < before)
        self.runs = np.setdiff1d(year.judged_run[self.judged], known_runs)
        self.again = np.intersect1d(year.judged_run[self.judged], known_runs)
        runs = np.unique(year.judged_run[until])
        self.epochs = np.unique(year.run_epoch[runs])
        # Each run's judgement in force at the end, and each epoch's number of judgements.
        self.holding = np.full(year.started_at.size, -1)
        self.holding[year.judged_run[until]] = until
        self.judgements = np.bincount(
            year.run_epoch[year.judged_run[until]], minlength=len(year.epochs)
        )
        self.tally = self._tally(runs)
        start = year.shape.first
        self.start = datetime(start.year, start.month, start.day, tzinfo=UTC)
        self.points = [
            [study.accelerator.key(point) for point in life.points]
            for study, life in zip(year.studies, year.lives, strict=True)
        ]

    def _tally(self, runs: np.ndarray) -> dict[str, np.ndarray]:
        year = self.year
        lives, places = year.run_study[runs], year.run_place[runs]
        role = np.array(
            [year.lives[s].role[p] for s, p in zip(lives, places, strict=True)], dtype=int
        )
        kinds = {
            "baseline": role == ROLE["baseline"],
            "explored": np.isin(role, [ROLE["design"], ROLE["search"]]),
            "settled": role == ROLE["settled"],
            "settled_controls": role == ROLE["control"],
            "total": np.ones(role.size, dtype=bool),
        }
        epoch = year.run_epoch[runs]
        return {
            name: np.bincount(epoch[chosen], minlength=len(year.epochs))
            for name, chosen in kinds.items()
        }

    def instant(self, seconds: float) -> str:
        return (self.start + timedelta(seconds=float(seconds))).isoformat()

    def new(self) -> Iterator[tuple[str, Sequence[str], Iterable[Row]]]:
        year = self.year
        epochs = np.setdiff1d(self.epochs, self.known_epochs)
        known_studies = {year.epochs[epoch].study for epoch in self.known_epochs}
        studies = sorted({year.epochs[epoch].study for epoch in epochs} - known_studies)
        known_owners = {year.studies[study].application for study in known_studies}
        owners = sorted({year.studies[study].application for study in studies} - known_owners)
        yield (
            "applications",
            ("id", "owner_uid", "owner_name", "name"),
            ((owner + 1, *self._application(owner)) for owner in owners),
        )
        yield (
            "studies",
            (
                "id",
                "application_id",
                "accelerator",
                "context",
                "context_key",
            ),
            map(self._study, studies),
        )
        yield (
            "epochs",
            (
                "id",
                "study_id",
                "ordinal",
                "parent_id",
                "takes",
                "space",
                "seed",
                "opened_at",
                "opened_why",
            ),
            map(self._epoch, epochs),
        )
        yield (
            "runs",
            (
                "id",
                "epoch_id",
                "cluster",
                "job_id",
                "restart_count",
                "uid",
                "node",
                "nodes",
                "request",
                "phase",
                "role",
                "parametrization",
                "reason",
                "suggestion",
                "delivery",
                "started_at",
                "finished_at",
                "elapsed",
                "wait_status",
                "applied",
                "outcome",
                "outcome_at",
                "outcome_source",
                "state",
                "verdict",
                "judged_at",
                "judged_ordinal",
                "changes",
                "judged_changes",
            ),
            map(self._run, self.runs),
        )
        yield (
            "judgements",
            (
                "id",
                "epoch_id",
                "ordinal",
                "run_id",
                "effect",
                "parametrization",
                "elapsed",
                "measures",
                "verdict",
                "judged_at",
            ),
            map(self._judgement, self.judged.tolist()),
        )
        yield (
            "outcomes",
            (
                "source",
                "cluster",
                "job_id",
                "state",
                "account",
                "received_at",
                "run_id",
            ),
            map(self._word, self.runs),
        )

    def _application(self, place: int) -> Row:
        owner = self.year.applications[place]
        return owner.uid, owner.user, owner.name

    def _study(self, place: int) -> Row:
        study = self.year.studies[place]
        context = {
            "cpus_per_node": "64",
            "nodes": str(study.nodes),
            "partition": study.partition,
        }
        text = json.dumps(context, sort_keys=True)
        return place + 1, study.application + 1, study.accelerator.name, text, text

    def _epoch(self, place: int) -> Row:
        epoch = self.year.epochs[place]
        space = self.year.studies[epoch.study].accelerator.space
        why = "first run" if epoch.ordinal == 1 else "reset: the file system was changed"
        parent = place if epoch.ordinal > 1 else None
        at = self.instant(epoch.opened_at)
        return place + 1, epoch.study + 1, epoch.ordinal, parent, "nothing", space, place, at, why

    def _run(self, run: int) -> Row:
        year = self.year
        study_place, place = year.run_study[run], year.run_place[run]
        study, life = year.studies[study_place], year.lives[study_place]
        owner = year.applications[study.application]
        started, elapsed = year.started_at[run], float(life.elapsed[place])
        judgement = self.holding[run]
        effect = EFFECTS[year.judged_effect[judgement]]
        point = self.points[study_place][life.point[place]]
        ended = self.instant(started + elapsed)
        return (
            run + 1,
            year.run_epoch[run] + 1,
            "site",
            run + 1,
            0,
            owner.uid,
            f"n{int(run) % 512:04}",
            study.nodes,
            json.dumps({"app": owner.name, "mode": "tune"}),
            PHASES[life.phase[place]],
            ROLES[life.role[place]],
            point,
            f"{ROLES[life.role[place]]} of a generated year",
            DRAWN if PHASES[life.phase[place]] == "settled" else "{}",
            '{"files": [], "watch": []}',
            self.instant(started),
            ended,
            elapsed,
            0 if effect in ("sample", "nothing") else 256,
            json.dumps({"kind": "parametrization", "parametrization": json.loads(point)}),
            OUTCOME[effect],
            ended,
            "sacct",
            STATE[effect],
            VERDICT[effect],
            self.instant(year.judged_at[judgement]),
            int(year.judged_ordinal[judgement]),
            2,
            2,
        )

    def _judgement(self, place: int) -> Row:
        year = self.year
        run, code = year.judged_run[place], year.judged_effect[place]
        study_place, life_place = year.run_study[run], year.run_place[run]
        life, effect = year.lives[study_place], EFFECTS[code]
        speaks = code != EFFECT["nothing"]
        timed = effect in ("sample", "censored")
        return (
            place + 1,
            year.run_epoch[run] + 1,
            int(year.judged_ordinal[place]),
            run + 1,
            effect,
            self.points[study_place][life.point[life_place]] if speaks else None,
            float(life.elapsed[life_place]) if timed else None,
            _measures(float(life.elapsed[life_place]), study_place) if timed else "{}",
            VERDICT[effect],
            self.instant(year.judged_at[place]),
        )

    def _word(self, run: int) -> Row:
        year = self.year
        owner = year.applications[year.studies[year.run_study[run]].application]
        judgement = self.holding[run]
        outcome = OUTCOME[EFFECTS[year.judged_effect[judgement]]]
        at = self.instant(year.judged_at[judgement])
        return "sacct", "site", run + 1, outcome, owner.account, at, run + 1

    def update(self, connection: psycopg.Connection) -> None:
        """Updates earlier rows: counts, revised verdicts, pins."""
        year = self.year
        with connection.cursor() as cursor:
            cursor.executemany(
                "update epochs set baseline = %s, explored = %s, settled = %s,"
                " settled_controls = %s, total = %s, judgements = %s where id = %s",
                [
                    (
                        *(int(counts[epoch]) for counts in self.tally.values()),
                        int(self.judgements[epoch]),
                        int(epoch) + 1,
                    )
                    for epoch in np.unique(year.run_epoch[year.judged_run[self.judged]])
                ],
            )
            # A run may be judged before one that started earlier: their studies are assessed anew.
            cursor.execute(
                "with studied as (select distinct e.study_id from judgements j"
                " join epochs e on e.id = j.epoch_id where j.id = any(%s)),"
                " forgotten as (update epochs set evidence = null from studied"
                " where epochs.study_id = studied.study_id)"
                " update studies set assessment = null from studied where id = study_id",
                [(self.judged + 1).tolist()],
            )
            cursor.executemany(
                "update runs set outcome = %s, state = %s, verdict = %s, judged_at = %s,"
                " judged_ordinal = %s where id = %s",
                [self._revision(run) for run in self.again],
            )
            cursor.executemany(
                "insert into pins (study_id, parametrization, uid, why) values (%s, %s, %s, %s)"
                " on conflict do nothing",
                [
                    (place + 1, self.points[place][life.pinned], 0, "as agreed with its user")
                    for place, life in enumerate(year.lives)
                    if life.pinned is not None and self._is_pinned(place)
                ],
            )

    def _revision(self, run: int) -> Row:
        year, judgement = self.year, self.holding[run]
        effect = EFFECTS[year.judged_effect[judgement]]
        at, ordinal = year.judged_at[judgement], year.judged_ordinal[judgement]
        verdict = VERDICT[effect]
        return OUTCOME[effect], STATE[effect], verdict, self.instant(at), int(ordinal), int(run) + 1

    def _is_pinned(self, study: int) -> bool:
        mine = self.runs[self.year.run_study[self.runs] == study]
        role = self.year.lives[study].role
        return bool((role[self.year.run_place[mine]] == ROLE["pinned"]).any())

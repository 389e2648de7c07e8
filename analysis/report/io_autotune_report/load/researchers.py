"""Studies and runs as data frames, straight from the database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pandas as pd

from io_autotune_report.load import assessment, database, parametrizations, tables
from io_autotune_report.load.assessment import Assessment

CHUNK = 50_000
"""Judgements in memory at a time as Python's objects; a frame is much smaller."""


def read_studies(url: str) -> pd.DataFrame:
    """All studies: the columns of ``frames.STUDIES``, one row each, by id.

    ``url`` is a libpq URL or connection string; the role of deploy/sql/report-role.sql suffices.

    Raises:
        DatabaseError: the database cannot be read; the message says what to do.
    """
    with database.connect(url) as connection:
        accounts = database.accounts(connection)
        return tables.studies(
            (
                study.study_id,
                study.application,
                study.owner_uid,
                study.user,
                accounts.get(study.study_id),
                study.accelerator,
                study.context,
                study.pinned,
            )
            for study in database.studies(connection)
        )


def read_assessments(url: str) -> dict[int, Assessment]:
    """What the service has decided of each study, by id: its gain, effects and findings.

    Raises:
        DatabaseError: the database cannot be read; the message says what to do.
    """
    with database.connect(url) as connection:
        return {
            study.study_id: assessment.decode(study.assessment)
            for study in database.studies(connection)
        }


def read_runs(url: str, studies: Sequence[int] | None = None) -> pd.DataFrame:
    """Every run that has a verdict, of some studies or of all: the columns of ``frames.RUNS``.

    One row each, by study, epoch and place in it. A run that was judged again has its latest
    verdict. 10^6 runs take about 200 MB.

    Raises:
        DatabaseError: the database cannot be read; the message says what to do.
    """
    with database.connect(url) as connection:
        wanted_studies = None if studies is None else set(studies)
        epochs = [
            epoch
            for epoch in database.epochs(connection)
            if wanted_studies is None or epoch.study_id in wanted_studies
        ]
        by_space: dict[str, str] = {}
        defaults = {}
        for epoch_id, space in database.spaces(connection, [epoch.epoch_id for epoch in epochs]):
            if space not in by_space:
                default = parametrizations.default(json.loads(space))
                by_space[space] = parametrizations.key(default)
            defaults[epoch_id] = by_space[space]
        wanted = [
            database.Wanted(epoch.epoch_id, 0, epoch.judgements)
            for epoch in epochs
            if epoch.judgements > 0
        ]
        keys: dict[str, str] = {}
        parts = [
            _part(database.judgements(connection, batch), defaults, keys)
            for batch in database.batches(wanted, CHUNK)
        ]
    if not parts:
        return tables.runs([])
    frame = pd.concat(parts, ignore_index=True)
    # A run's judgements may lie in two parts.
    return frame.drop_duplicates("run_id", keep="last", ignore_index=True)


def _part(
    judgements: Iterable[database.Judgement], defaults: dict[int, str], keys: dict[str, str]
) -> pd.DataFrame:
    rows = []
    for row in judgements:
        key = None
        if row.parametrization is not None:
            key = keys.get(row.parametrization)
            if key is None:
                key = parametrizations.key(json.loads(row.parametrization))
                keys[row.parametrization] = key
        rows.append(
            (
                row.run_id,
                row.study_id,
                row.epoch,
                row.ordinal,
                row.started_at,
                row.judged_at,
                row.elapsed,
                row.nodes,
                row.role,
                row.phase,
                row.effect,
                key,
                key == defaults[row.epoch_id],
            )
        )
    rows.sort(key=lambda row: row[1:4])
    return tables.runs(rows)

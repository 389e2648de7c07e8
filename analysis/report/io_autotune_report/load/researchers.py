"""Studies and runs as data frames, straight from the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd

from io_autotune_report.load import assessment, database, tables
from io_autotune_report.load.assessment import Assessment

CHUNK = 200
"""Studies whose judgements are text in memory at a time."""
_EVER = datetime.max.replace(tzinfo=UTC)


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
                study.cluster,
            )
            for study in database.studies(connection)
        )


def read_assessments(url: str) -> dict[int, Assessment]:
    """What the service has decided of each study, by id: its gain, effects and findings.

    Raises:
        DatabaseError: the database cannot be read; the message says what to do.
    """
    with database.connect(url) as connection:
        told = database.assessments(connection)
        return {
            study.study_id: assessment.decode(told.get(study.study_id))
            for study in database.studies(connection)
        }


def read_runs(
    url: str, studies: Sequence[int] | None = None, before: datetime = _EVER
) -> pd.DataFrame:
    """Every run that has a verdict, of some studies or of all: the columns of ``frames.RUNS``.

    One row each, by study, epoch and place in it. A run that was judged again has its latest
    verdict made before an instant. 10^6 runs take about 200 MB.

    Raises:
        DatabaseError: the database cannot be read; the message says what to do.
    """
    with database.connect(url) as connection:
        wanted = None if studies is None else set(studies)
        known = [
            study.study_id
            for study in database.studies(connection)
            if wanted is None or study.study_id in wanted
        ]
        chunks = [known[start : start + CHUNK] for start in range(0, max(len(known), 1), CHUNK)]
        parts = [tables.read(connection, chunk, before)[0] for chunk in chunks]
    return pd.concat(parts, ignore_index=True)

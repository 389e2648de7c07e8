"""Rows into the data frames of :mod:`io_autotune_report.frames`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from io_autotune_report.frames import RUNS, STUDIES

EFFECTS = ("sample", "censored", "failure", "out_of_memory", "nothing")
PHASES = ("baseline", "design", "search", "settled")
ROLES = (
    "baseline",
    "design",
    "search",
    "control",
    "settled",
    "best_known",
    "pinned",
    "observe",
)
"""The words of the store's columns, in the order of a study's life."""

ROW = (
    "run_id",
    "study_id",
    "epoch",
    "ordinal",
    "started_at",
    "judged_at",
    "elapsed",
    "nodes",
    "role",
    "phase",
    "effect",
    "key",
    "default",
)
"""What a row of judgements holds; instants in microseconds since 1970, UTC."""

_TEXT = pd.StringDtype(na_value=np.nan)
_CATEGORIES = {
    "role": pd.CategoricalDtype(list(ROLES)),
    "phase": pd.CategoricalDtype(list(PHASES)),
    "effect": pd.CategoricalDtype(list(EFFECTS)),
}


def runs(rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """The frame of runs, one row each: of a run that was judged again the latest judgement.

    ``rows`` are judgements in the order of study, epoch and ordinal, with the columns :data:`ROW`.
    """
    columns = dict(zip(ROW, zip(*rows, strict=True) if rows else [()] * len(ROW), strict=True))
    run_id = np.asarray(columns["run_id"], dtype="int64")
    holding = _last_of_each(run_id)
    data: dict[str, Any] = {}
    for name, kind in RUNS.items():
        values = columns[name]
        if name in _CATEGORIES:
            data[name] = pd.Categorical(values, dtype=_CATEGORIES[name])[holding]
        elif kind == "str":
            data[name] = pd.array(np.asarray(values, dtype=object)[holding], dtype=_TEXT)
        elif name == "nodes":
            # Where nobody said, a job is taken to have had one node: what is claimed of it is less.
            data[name] = np.array([value or 1 for value in values], dtype="int64")[holding]
        elif name == "started_at":
            micros = np.asarray(values, dtype="int64")[holding]
            data[name] = (
                pd.DatetimeIndex(micros.astype("datetime64[us]")).as_unit("ns").tz_localize("UTC")
            )
        else:
            data[name] = np.asarray(values, dtype=kind)[holding]
    return pd.DataFrame(data)


def _last_of_each(run_id: np.ndarray) -> np.ndarray:
    """The places of the last row of each run, in their order."""
    _, from_the_end = np.unique(run_id[::-1], return_index=True)
    return np.sort(run_id.size - 1 - from_the_end)


def studies(rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """The frame of studies, from rows with the columns of ``STUDIES`` in their order."""
    listed = list(rows)
    columns = list(zip(*listed, strict=True)) if listed else [()] * len(STUDIES)
    data: dict[str, Any] = {}
    for (name, kind), values in zip(STUDIES.items(), columns, strict=True):
        if kind == "str":
            data[name] = pd.array(np.asarray(values, dtype=object), dtype=_TEXT)
        elif kind == "object":
            # One by one: an array of dictionaries of equal length is still one column.
            cells = np.empty(len(values), dtype=object)
            cells[:] = values
            data[name] = cells
        else:
            data[name] = np.asarray(values, dtype=kind)
    return pd.DataFrame(data)

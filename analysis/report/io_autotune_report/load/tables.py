"""Rows into the data frames of :mod:`io_autotune_report.frames`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import psycopg

from io_autotune_report.document import Value
from io_autotune_report.frames import RUNS, STUDIES
from io_autotune_report.load import database
from io_autotune_report.load.parametrizations import default, key, parameters

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
"""In the order of a study's life."""

_TEXT = pd.StringDtype(na_value=np.nan)
_READ: dict[str, Any] = {
    "run_id": "int64",
    "study_id": "int64",
    "epoch": "int64",
    "ordinal": "int64",
    "started_at": "int64",  # microseconds since 1970, UTC
    "elapsed": "object",  # the quick parser of numbers may miss the last digit
    "nodes": "int64",
    "role": pd.CategoricalDtype(list(ROLES)),
    "phase": pd.CategoricalDtype(list(PHASES)),
    "effect": pd.CategoricalDtype(list(EFFECTS)),
    "key": "category",  # JSON as the database writes it
}
"""The columns of ``database.judgements``."""


@dataclass(frozen=True)
class Epoch:
    """An epoch of a study."""

    epoch: int
    default: dict[str, Value]
    parameters: list[dict[str, Any]]


def read(
    connection: psycopg.Connection, studies: Sequence[int], before: datetime
) -> tuple[pd.DataFrame, dict[int, list[Epoch]]]:
    """Studies' runs judged before an instant, and their epochs."""
    epochs = {
        study: [_epoch(number, space) for number, space in spaces]
        for study, spaces in database.spaces(connection, studies).items()
    }
    return runs(database.judgements(connection, studies, before), epochs), epochs


def runs(judgements: bytes, epochs: Mapping[int, Sequence[Epoch]]) -> pd.DataFrame:
    """A row for each run, its latest judgement; ``judgements`` is ordered CSV."""
    rows = pd.read_csv(
        BytesIO(judgements),
        header=None,
        names=list(_READ),
        dtype=_READ,
        keep_default_na=False,
        na_values={"key": [""]},
    ).drop_duplicates("run_id", keep="last", ignore_index=True)
    codes = rows["key"].cat.codes.to_numpy()
    keys = np.array(
        [*(key(json.loads(text)) for text in rows["key"].cat.categories), np.nan], object
    )
    rows["key"] = pd.array(keys[codes], dtype=_TEXT)
    defaults = {
        (study, each.epoch): key(each.default) for study, some in epochs.items() for each in some
    }
    places = zip(rows["study_id"], rows["epoch"], strict=True)
    rows["default"] = keys[codes] == np.array([defaults[place] for place in places], dtype=object)
    rows["elapsed"] = rows["elapsed"].to_numpy().astype("float64")
    rows["started_at"] = pd.to_datetime(rows["started_at"], unit="us", utc=True).dt.as_unit("ns")
    return rows[list(RUNS)]


def _epoch(number: int, space: str) -> Epoch:
    return Epoch(number, *_space(space))


@lru_cache(maxsize=64)
def _space(text: str) -> tuple[dict[str, Value], list[dict[str, Any]]]:
    space = json.loads(text)
    return default(space), parameters(space)


def studies(rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """From rows with the columns of ``STUDIES``."""
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

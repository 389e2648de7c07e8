"""The frames' columns. ``RUNS`` has a row for each run with a verdict, in order of judgement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

RUNS: dict[str, str] = {
    "run_id": "int64",
    "study_id": "int64",
    "epoch": "int64",  # its number in the study, from 1
    "ordinal": "int64",  # the judgement's place in its epoch, from 1
    "started_at": "datetime64[ns, UTC]",
    "elapsed": "float64",  # seconds; missing where nothing was measured
    "nodes": "int64",
    "role": "category",  # as the store names them; see below
    "phase": "category",  # baseline, design, search, settled
    "effect": "category",  # sample, censored, failure, out_of_memory, nothing
    "key": "str",  # the parametrization it counts for, as sorted JSON; missing for none
    "default": "bool",  # whether that is the epoch's default
}

STUDIES: dict[str, str] = {
    "study_id": "int64",
    "application": "str",
    "owner_uid": "int64",
    "user": "str",  # the login name, or the uid where it is not known
    "account": "str",  # of its latest run; missing where Slurm did not say
    "accelerator": "str",
    "context": "object",  # facets by name
    "pinned": "bool",
    "cluster": "str",  # missing where the service has one
}

CHOSEN_ROLES = ("settled", "best_known", "pinned")
"""Their parametrization was chosen before the run."""

EXPLORING_ROLES = ("design", "search")
"""Roles that exist to learn."""

Runs = pd.DataFrame | Mapping[str, NDArray[Any]]
"""A frame or plain columns: a frame for each study costs more than what is made of it."""


def words(runs: Runs, column: str) -> NDArray[np.object_]:
    """Text; missing is NaN."""
    return np.asarray(runs[column], dtype=object)


def numbers(runs: Runs, column: str) -> NDArray[np.float64]:
    """A column of numbers."""
    return np.asarray(runs[column], dtype=np.float64)


def instants(runs: Runs) -> NDArray[np.datetime64]:
    """Starts, UTC, to the second."""
    return np.asarray(runs["started_at"], dtype="datetime64[ns]").astype("datetime64[s]")

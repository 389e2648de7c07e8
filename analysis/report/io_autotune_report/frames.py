"""The data frames that estimators take and researchers get: their columns, and nothing else.

``RUNS``: one row for each run of a study that has a verdict, in the order of judgement.
"""

from __future__ import annotations

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
"""Columns and types. Runs of several studies may stand in one frame."""

STUDIES: dict[str, str] = {
    "study_id": "int64",
    "application": "str",
    "owner_uid": "int64",
    "user": "str",  # the login name, or the uid where it is not known
    "account": "str",  # of its latest run; missing where Slurm did not say
    "accelerator": "str",
    "context": "object",  # facets by name
    "pinned": "bool",
}
"""Columns and types of the frame of studies, one row each."""

CHOSEN_ROLES = ("settled", "best_known", "pinned")
"""Roles whose parametrization had been chosen before the run was made."""

EXPLORING_ROLES = ("design", "search")
"""Roles that exist to learn."""

"""Every kind of job, every kind of end: what takes seconds. See lives.md."""

from __future__ import annotations

import pytest
from clusters import VARIANT
from lives import ends
from lives.table import QUICK, Entry, named
from lives.together import Lives

HAS_EXTERN_STEP = VARIANT.get("run_in_job") or VARIANT.get("namespace")
"""Slurm does not miss a batch step for as long as it sees this other step of the job."""
MISSED = pytest.mark.skip("with an extern step Slurm does not notice that the batch step is gone")
ENTRIES = [
    pytest.param(
        entry,
        id=name,
        marks=[MISSED] if HAS_EXTERN_STEP and entry.end is ends.STEPD_KILLED else [],
    )
    for name, entry in named(QUICK).items()
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_job_of_this_kind_that_ends_so(entry: Entry, lives: Lives) -> None:
    """Promise: a failed run is taken for a fast one"""
    lives.check(entry)

"""Every kind of job, every kind of end: what waits for a time limit or a dead node."""

from __future__ import annotations

import pytest
from lives.table import LONG, Entry, named
from lives.together import Lives

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("entry", named(LONG).values(), ids=named(LONG))
def test_a_job_of_this_kind_that_ends_so(entry: Entry, lives: Lives) -> None:
    """Promise: a failed run is taken for a fast one"""
    lives.check(entry)

"""Every kind of job, every kind of end: what takes seconds. See lives.md."""

from __future__ import annotations

import pytest
from lives.table import QUICK, Entry, named
from lives.together import Lives


@pytest.mark.parametrize("entry", named(QUICK).values(), ids=named(QUICK))
def test_a_job_of_this_kind_that_ends_so(entry: Entry, lives: Lives) -> None:
    lives.check(entry)

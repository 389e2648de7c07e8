"""What goes wrong beside a soak is told at its end."""

from __future__ import annotations

import threading

import pytest
from soak.background import running


def test_what_runs_beside_is_told_the_end_and_waited_for() -> None:
    over, ended = threading.Event(), threading.Event()

    def target() -> None:
        over.wait()
        ended.set()

    with running(over, target):
        assert not ended.is_set()
    assert ended.is_set()


def test_a_failure_beside_is_raised() -> None:
    def target() -> None:
        raise ValueError("the watch is blind")

    with pytest.raises(ValueError, match="blind"), running(threading.Event(), target):
        pass

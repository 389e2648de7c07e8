"""What the document says of a study's life, by runs whose story is known."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from io_autotune_report.analyse import life
from io_autotune_report.analyse.changes import changes
from io_autotune_report.document import Group, Night, NodeHours
from io_autotune_report.load.assessment import UNKNOWN
from io_autotune_report.previous_report import Earlier, Kept

DEFAULT, QUICK, SLOW = (json.dumps({"a": value}) for value in (1, 2, 3))
HOUR = 3_600_000_000


def runs(*told: tuple[str, str, str, float]) -> pd.DataFrame:
    """Of role, phase, key and elapsed, an hour apart, all of which count."""
    frame = pd.DataFrame(told, columns=["role", "phase", "key", "elapsed"])
    ordinal = np.arange(1, len(told) + 1)
    at = pd.to_datetime(ordinal * HOUR, unit="us", utc=True)
    return frame.assign(
        ordinal=ordinal, epoch=1, started_at=at, effect="sample", default=frame["key"] == DEFAULT
    )


def test_what_is_chosen_is_what_the_latest_settled_run_had_since_the_change() -> None:
    frame = runs(
        ("settled", "settled", SLOW, 9),
        ("settled", "settled", QUICK, 5),
        ("control", "settled", DEFAULT, 8),
        ("settled", "settled", QUICK, 5),
        ("control", "settled", DEFAULT, 8),
    )
    choice = life.choice(frame, 1)
    assert choice is not None
    assert choice.values == {"a": 2}
    assert choice.since == "1970-01-01T02:00:00Z"
    assert life.choice(frame, 2) is None
    assert life.choice(runs(("best_known", "search", QUICK, 5)), 1) is None


def test_convergence_is_the_lowest_mean_over_the_defaults() -> None:
    frame = runs(
        ("design", "design", SLOW, 20),
        ("baseline", "baseline", DEFAULT, 10),
        ("search", "search", QUICK, 4),
        ("search", "search", QUICK, 6),
        ("baseline", "baseline", DEFAULT, 30),
    )
    # Before the default is known there is nothing to divide by.
    assert life.convergence(frame, 1) == [(2, 1.0), (3, 0.4), (4, 0.5), (5, 0.25)]
    assert life.convergence(frame, 2) == []


def test_points_are_the_newest_and_some_of_the_older_ones() -> None:
    many = runs(*(("settled", "settled", QUICK, 5.0 + n % 3) for n in range(2000)))
    points = life.points(many, life.choice(many, 1))
    assert len(points) == life.POINTS
    ordinals = [point.ordinal for point in points]
    assert ordinals == sorted(set(ordinals))
    assert ordinals[-life.NEWEST :] == list(range(1701, 2001))
    assert ordinals[0] == 1
    assert max(b - a for a, b in itertools.pairwise(ordinals)) <= 9
    assert all(point.chosen for point in points)


def test_outliers_are_those_beyond_the_fences_of_their_parametrization() -> None:
    quiet = [("settled", "settled", QUICK, 5.0 + n / 100) for n in range(20)]
    frame = runs(*quiet, ("settled", "settled", QUICK, 9.0), ("control", "settled", DEFAULT, 9.0))
    outlying = [point.ordinal for point in life.points(frame, None) if point.outlier]
    assert outlying == [21]


def _earlier(**told: Any) -> Earlier:  # noqa: ANN401 - fields of several types
    hours = NodeHours(1.0, 5.0, 1.0, 9.0, 5.0, 0.0, 0.0, None)
    night = Night("2026-01-01", "x", "", "", 1, 1, 100, UNKNOWN, hours, 0, 0)
    kept = replace(Kept(7, "a", 1, "search", 9, "not_yet", None, ""), **told)
    return Earlier(night, [], {kept.study_id: kept})


@pytest.fixture
def total() -> Group:
    hours = NodeHours(1.0, 3.5, 1.0, 9.0, 5.0, 0.0, 0.0, None)
    return Group("x", 1, 1, 120, UNKNOWN, hours)


def test_the_first_night_has_no_changes(total: Group) -> None:
    assert changes(total, [], None) == []


def test_the_sites_change_is_of_runs_and_node_hours(total: Group) -> None:
    (change,) = changes(total, [], _earlier())
    assert change.what == "20 new runs since 2026-01-01; the total saved is 90 node-minutes less"

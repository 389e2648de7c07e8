"""What runs did: medians of the default's and of the choice's, and how sure they are."""

from __future__ import annotations

import numpy as np
from histories import CHOSEN, Rows, frame, noise, settled
from io_autotune_report.analyse import life
from io_autotune_report.analyse.typical_measures import measured
from io_autotune_report.document import Measured

STEPS = {"measured_steps": 1.0}
STUDIES = 400


def of(rows: Rows, measures: dict[int, dict[str, float]]) -> dict[str, Measured]:
    runs = frame(rows)
    found = measured(runs, life.choice(runs, 1), measures)
    return {each.name: each for each in found}


def test_default_and_choice_have_their_own_medians() -> None:
    rows = settled(30, 0.5, noise(1, 0.01, 0.0), every=3)
    is_chosen = {one["run_id"]: one["key"] == CHOSEN for one in rows}
    measures = {
        run: {**STEPS, "asked_written_bytes": 50.0 if chosen else 100.0}
        for run, chosen in is_chosen.items()
    }
    # A number that is zero is not reported.
    some = [run for run, chosen in is_chosen.items() if chosen][:3]
    for run in some:
        measures[run] |= {"storage_read_bytes": 4096.0, "objective.rate": 7.0}
    found = of(rows, measures)
    assert list(found) == ["elapsed", "asked_written_bytes", "objective.rate"]
    written = found["asked_written_bytes"]
    assert written.default == Measured.Typical(100.0, 100.0, 100.0, 10)
    assert written.chosen == Measured.Typical(50.0, 50.0, 50.0, 20)
    assert found["objective.rate"].default is None
    assert found["objective.rate"].chosen == Measured.Typical(7.0, None, None, 3)
    elapsed = found["elapsed"].chosen
    assert elapsed is not None
    assert elapsed.low is not None
    assert elapsed.high is not None
    assert 45 < elapsed.low < elapsed.median < elapsed.high < 55


def test_where_the_default_is_chosen_it_is_told_once() -> None:
    rows = settled(20, 1.0, noise(1, 0.01, 0.0), every=1)
    rows[-1] |= {"role": "settled"}
    measures = {one["run_id"]: {**STEPS, "user_seconds": 1.0} for one in rows}
    found = of(rows, measures)
    assert found["user_seconds"].default is not None
    assert found["user_seconds"].chosen is None


def test_runs_that_do_not_count_or_were_not_measured_are_left_out() -> None:
    rows = settled(8, 1.0, noise(1, 0.01, 0.0), every=1)
    rows[0]["effect"] = "failure"
    measures = {one["run_id"]: {**STEPS, "read_calls": 1.0} for one in rows[:6]}
    (calls,) = [each for name, each in of(rows, measures).items() if name == "read_calls"]
    assert calls.default == Measured.Typical(1.0, None, None, 5)
    assert of(rows, {}) == {}


def test_intervals_hold_whatever_the_distribution() -> None:
    random = np.random.default_rng(3)
    for runs in (6, 25):
        held = 0
        for _ in range(STUDIES):
            rows = settled(runs, 1.0, lambda: float(random.pareto(1.5)) + 1.0, every=1)
            (found,) = of(rows, {one["run_id"]: STEPS for one in rows}).values()
            assert found.default is not None
            assert found.default.low is not None
            assert found.default.high is not None
            held += found.default.low <= 100.0 * 2 ** (1 / 1.5) <= found.default.high
        assert held / STUDIES >= 0.93, f"{runs} runs"

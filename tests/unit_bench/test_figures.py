"""Ratios, their intervals, and whether they meet their aims."""

from __future__ import annotations

import math
import random

import pytest
from bench.figures import (
    Aim,
    Estimate,
    Figure,
    mean_of_rounds,
    median,
    ratio_of_pairs,
    ratio_of_rounds,
    renewed,
    table,
)


def test_the_interval_of_rounds_is_students() -> None:
    found = mean_of_rounds([1.0, 2.0, 3.0])
    # t at 0.975 with two degrees of freedom is 4.303; the standard error is 1 / sqrt(3).
    assert found.value == pytest.approx(2.0)
    assert found.high - found.value == pytest.approx(4.303 / math.sqrt(3))
    assert math.isinf(mean_of_rounds([1.0]).high)


def test_what_slows_both_sides_of_a_round_does_not_widen_the_ratio() -> None:
    ours, theirs = [10.0, 5.0, 20.0, 1.0], [20.0, 10.0, 40.0, 2.0]
    found = ratio_of_rounds(ours, theirs)
    assert (found.low, found.value, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    rng = random.Random(7)
    rounds = sum(
        found.low <= 1.0 <= found.high
        for found in (mean_of_rounds([rng.gauss(1.0, 0.1) for _ in range(5)]) for _ in range(400))
    )
    assert 365 <= rounds <= 395
    pairs = sum(
        found.low <= 1.0 <= found.high
        for found in (median([rng.gauss(1.0, 0.1) for _ in range(60)]) for _ in range(100))
    )
    assert pairs >= 88


def test_a_few_disturbed_pairs_move_the_median_little() -> None:
    rng = random.Random(3)
    theirs = [rng.gauss(20.0, 0.5) for _ in range(100)]
    ours = [time * 1.01 for time in theirs]
    ours[3] *= 30
    found = ratio_of_pairs(ours, theirs)
    assert found.value == pytest.approx(1.01)
    assert found.high < 1.02


@pytest.mark.parametrize(
    ("aim", "figure", "said"),
    [
        (Aim(1.02), Estimate(1.01, 1.00, 1.02), "met"),
        (Aim(1.02), Estimate(1.01, 0.98, 1.04), "met, its interval is not within"),
        (Aim(1.02), Estimate(1.03, 1.00, 1.06), "missed"),
        (Aim(0.7, at_least=True), Estimate(0.8, 0.75, 0.85), "met"),
        (Aim(0.7, at_least=True), Estimate(0.72, 0.65, 0.79), "met, its interval is not within"),
        (Aim(0.7, at_least=True), Estimate(0.3, 0.2, 0.4), "missed"),
    ],
)
def test_a_figure_meets_its_aim_or_does_not(aim: Aim, figure: Estimate, said: str) -> None:
    assert aim.verdict(figure) == said


def test_numbers_have_the_digits_that_their_interval_carries() -> None:
    assert str(Estimate(1.01234, 1.00111, 1.02345)) == "1.012 (1.001 .. 1.023)"
    assert str(Estimate(123.4, 100.2, 150.9)) == "123 (100 .. 151)"
    assert str(Estimate(0.31, 0.02, 4.3)) == "0.31 (0.02 .. 4.30)", "two digits at least"
    assert str(Estimate(2.0, 2.0, 2.0)) == "2.0 (2.0 .. 2.0)"
    row = Figure("x", "ratio", Estimate(0.5, 0.4, 0.6), None, "how").row("today")
    assert row == "| x | 0.50 (0.40 .. 0.60) | ratio |  |  | how | today |"


def test_a_row_that_is_measured_anew_keeps_its_place_and_the_others_stay() -> None:
    def row(what: str, measured: str) -> str:
        return Figure(what, "ms", Estimate(1.0, 0.0, 2.0), None, "how").row(measured)

    page = table([row("a", "before"), row("b", "before")])
    now = [row("c", "today"), row("a", "today")]
    assert renewed(page, now) == [row("a", "today"), row("b", "before"), row("c", "today")]
    assert renewed("", now) == now

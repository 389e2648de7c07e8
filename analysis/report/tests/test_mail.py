"""The mail's words: short, plain, and true of little as of much."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_report
from io_autotune_report.document import NodeHours
from io_autotune_report.render.mail import WIDTH, body


def _told(hours: NodeHours) -> str:
    """The mail of a night whose total is this, on one line."""
    report = sample_report.report()
    return " ".join(body(replace(report, total=replace(report.total, node_hours=hours))).split())


@pytest.mark.parametrize(
    ("saved", "low", "high", "words"),
    [
        (12_709.4, 4_696.0, 20_723.0, "Saved in all: 12,709 node-hours (interval 4,696 to 20,723)"),
        (0.0314, -0.0021, 0.065, "Saved in all: 113 node-seconds (interval -7.6 to 234)"),
        (-42.4, -80.0, -5.04, "Lost in all: 42 node-hours (interval -80 to -5.0)"),
    ],
)
def test_node_time_is_told_in_the_unit_that_fits(
    saved: float, low: float, high: float, words: str
) -> None:
    hours = replace(sample_report.report().total.node_hours, saved=saved, low=low, high=high)
    assert words in _told(hours)


def test_what_is_not_known_is_not_nought() -> None:
    hours = sample_report.report().total.node_hours
    unknown = replace(hours, saved=None, low=None, high=None)
    assert "Not known yet what was saved" in _told(unknown)
    assert "Saved in all" not in _told(unknown)


def test_a_gain_of_what_is_maximised_is_more_of_it() -> None:
    """Of reciprocals a third less is half more."""
    report = sample_report.report()
    gain = replace(
        report.total.gain,
        verdict="faster",
        share=1 / 3,
        low=0.2,
        high=0.5,
        objective="objective.rate maximised",
    )
    told = body(replace(report, total=replace(report.total, gain=gain)))
    assert "50.0 % more rate (25.0 to 100.0 % more)" in " ".join(told.split())


def test_it_fits_a_terminal_and_carries_no_commands_to_it() -> None:
    lines = body(sample_report.report()).splitlines()
    assert all(line.isprintable() for line in lines)
    longest = max(len(word) for line in lines for word in line.split())
    assert max(map(len, lines)) <= max(WIDTH, longest + 2)

"""Intervals of sums that hold at all nightly looks together.

Asymptotic confidence sequences (Waudby-Smith et al. 2024) with Robbins' normal mixture.
"""

from __future__ import annotations

import math

PACE = 4.0
"""The mixture's weight in control runs; the interval is narrowest at about ten times as many."""


def half_width(standard_error: float, controls: float, error: float) -> float:
    """Half the interval after so many control runs."""
    ratio = max(controls, 1.0) / PACE
    factor = (1 + 1 / ratio) * (math.log1p(ratio) + 2 * math.log(1 / error))
    return standard_error * math.sqrt(factor)


def log_evidence(estimate: float, standard_error: float, controls: float) -> float:
    """The mixture's logarithm: it reaches ``log(1 / error)`` where the interval excludes 0."""
    ratio = max(controls, 1.0) / PACE
    squared = (estimate / standard_error) ** 2
    return (squared * ratio / (1 + ratio) - math.log1p(ratio)) / 2

"""Intervals of sums that hold at all nightly looks together.

An asymptotic confidence sequence: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform
central limit theory and asymptotic confidence sequences" (2024). A normal mixture over effects, as
Robbins (1970) has it, with the standard error estimated.
"""

from __future__ import annotations

import math

PACE = 4.0
"""How many control runs' worth the mixture of effects weighs: it is narrowest at about 10 times."""


def half_width(standard_error: float, controls: float, error: float) -> float:
    """Half the interval that holds at all looks, after so many control runs."""
    ratio = max(controls, 1.0) / PACE
    factor = (1 + 1 / ratio) * (math.log1p(ratio) + 2 * math.log(1 / error))
    return standard_error * math.sqrt(factor)


def log_evidence(estimate: float, standard_error: float, controls: float) -> float:
    """The mixture's logarithm: at least ``log(1 / error)`` just where the interval excludes 0."""
    ratio = max(controls, 1.0) / PACE
    squared = (estimate / standard_error) ** 2
    return (squared * ratio / (1 + ratio) - math.log1p(ratio)) / 2

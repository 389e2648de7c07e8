"""What may be claimed of many studies at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from io_autotune_report.document import Gain
from io_autotune_report.number_format import per_cent

ERROR = 0.05
"""The probability that a sum, or a study, ever shows an effect that is not there."""
POWER = 0.8
WORTH = 0.03
"""An interval within this share is called no effect."""

FALSE_DISCOVERY_RATE = 0.05
MOST_LOG = 700.0
"""Larger evidence is written as its exponential."""


def false_discovery(gains: Sequence[Gain], rate: float = FALSE_DISCOVERY_RATE) -> list[Gain]:
    """Takes back claims until at most ``rate`` of the rest are false on average.

    e-BH (Wang and Ramdas 2022): the ``i`` studies with the most evidence keep their claims if each
    has ``studies / (rate * i)``. Studies may depend on each other.
    """
    evidence = np.array([said.evidence for said in gains if said.control_runs > 0])
    ordered = np.sort(evidence)[::-1]
    places = np.arange(1, ordered.size + 1)
    held = np.flatnonzero(ordered * rate * places >= ordered.size)
    least = float(ordered[held[-1]]) if held.size else math.inf
    taken_back = (
        f"Its own runs show it, but of {ordered.size} studies looked at together some look so by"
        " chance: not sure enough yet."
    )
    return [
        replace(said, verdict="not_yet", reason=taken_back)
        if said.verdict in ("faster", "slower") and said.evidence < least
        else said
        for said in gains
    ]


def judged(said: Gain, saved: float, runs_needed: int | None) -> Gain:
    """The verdict of a sum."""
    if said.low is None or said.high is None or said.share is None:
        raise ValueError("a sum has an interval")
    if said.low <= 0 <= said.high:
        if said.low >= -WORTH and said.high <= WORTH:
            why = f"Whatever the difference is, it is less than {per_cent(WORTH)}."
            return replace(said, verdict="no_effect", reason=why)
        why = "The interval includes no effect."
        return replace(said, reason=why, runs_needed=runs_needed)
    if saved * said.share < 0:
        why = (
            "Typical runs and node-hours disagree: "
            + ("a typical run is faster, yet" if said.share > 0 else "a typical run is slower, yet")
            + (" slow runs cost more than that." if said.share > 0 else " slow runs are fewer.")
        )
        return replace(said, verdict="unclear", reason=why)
    if said.share > 0:
        return replace(said, verdict="faster", reason="The whole interval is above no effect.")
    return replace(said, verdict="slower", reason="The whole interval is below no effect.")


def not_compared(reason: str, tuned: int, controls: int) -> Gain:
    """An unknown gain, and why."""
    return Gain(
        verdict="not_yet",
        reason=reason,
        share=None,
        low=None,
        high=None,
        level=1 - ERROR,
        tuned_runs=tuned,
        control_runs=controls,
        detectable=None,
        runs_needed=None,
    )

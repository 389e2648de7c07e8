"""What may be said of one study, and of many at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from io_autotune_report.analyse.estimators.effect import ERROR, Effect
from io_autotune_report.analyse.estimators.part import Part, part
from io_autotune_report.document import Gain, Verdict
from io_autotune_report.wording import per_cent

WORTH = 0.03
"""A gain or loss of less than this share is called no effect, once the interval says so."""

FALSE_DISCOVERY_RATE = 0.05
MOST_LOG = 700.0
"""Larger evidence is written as its exponential."""


def gain(runs: pd.DataFrame) -> Gain:
    """The gain of what a study runs now. ``runs``: one study's, columns as ``frames.RUNS``.

    How often it was looked at before does not matter: the interval holds for all looks together.
    """
    return gain_of(part(runs))


def gain_of(study: Part) -> Gain:
    """The same, of a study read before."""
    now = study.present
    if now.key is None:
        why = f"Epoch {now.epoch} has not chosen a parametrization yet."
        return not_compared("not_yet", why, 0, 0)
    if now.default:
        why = "The default itself is what was chosen: there is nothing to gain."
        return replace(
            not_compared("no_effect", why, now.chosen_runs, 0), share=0.0, low=0.0, high=0.0
        )
    for found in study.effects:
        if (found.epoch, found.key) == (now.epoch, now.key):
            return _said(found)
    why = "No control run was made near the runs of the chosen parametrization yet."
    return not_compared("not_yet", why, now.chosen_runs, 0)


def false_discovery(gains: Sequence[Gain], rate: float = FALSE_DISCOVERY_RATE) -> list[Gain]:
    """Takes back claims so that, of those left, at most ``rate`` are false on average.

    e-BH (Wang and Ramdas, "False discovery rate control with e-values", 2022): of the studies that
    were compared, the ``i`` with the most evidence keep their claims if each has at least
    ``studies / (rate * i)``. It holds however studies depend on each other.
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


def _said(found: Effect) -> Gain:
    share = 1 - math.exp(-found.log_ratio) if math.isfinite(found.log_ratio) else None
    bounded = math.isfinite(found.low) and math.isfinite(found.high)
    low = 1 - math.exp(-found.low) if bounded else None
    high = 1 - math.exp(-found.high) if bounded else None
    needed = None
    if found.blocks_needed is not None:
        each = 1 + found.tuned_runs / found.blocks
        needed = max(0, round((found.blocks_needed - found.blocks) * each))
    said = Gain(
        verdict="not_yet",
        reason="",
        share=share,
        low=low,
        high=high,
        level=1 - ERROR / (found.number * (found.number + 1)),
        tuned_runs=found.tuned_runs,
        control_runs=found.blocks,
        detectable=found.detectable,
        runs_needed=None,
        evidence=math.exp(min(found.log_evidence, MOST_LOG)),
    )
    return judged(said, found.saved, needed)


def judged(said: Gain, saved: float, runs_needed: int | None) -> Gain:
    """The verdict that interval and node-hours leave."""
    if said.low is None or said.high is None or said.share is None:
        why = "Too few control runs near the tuned ones to bound the gain."
        return replace(said, reason=why, runs_needed=runs_needed)
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


def not_compared(verdict: Verdict, reason: str, tuned: int, controls: int) -> Gain:
    """A gain of which nothing is known, and why."""
    return Gain(
        verdict=verdict,
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

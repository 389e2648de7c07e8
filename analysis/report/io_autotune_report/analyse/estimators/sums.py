"""The gain of many studies, each comparison weighed by its node-hours under the default."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import ndtri, stdtrit

from io_autotune_report.analyse.estimators.confidence_sequence import half_width, log_evidence
from io_autotune_report.analyse.estimators.gain import (
    ERROR,
    MOST_LOG,
    POWER,
    judged,
    not_compared,
)
from io_autotune_report.analyse.estimators.hours import Part, node_hours_of
from io_autotune_report.document import Gain, NodeHours
from io_autotune_report.load.assessment import Effect

MOST_RUNS = 1e7
"""More runs are never named."""


def group(studies: Sequence[Part]) -> tuple[Gain, NodeHours]:
    """The gain and node-hours of studies, earlier epochs and choices included.

    A group of one says what its study says.
    """
    hours = node_hours_of(studies)
    if len(studies) == 1:
        return studies[0].assessment.gain, hours
    # Of another objective a share says nothing of time.
    timed = [study.assessment for study in studies if study.assessment.objective == "elapsed"]
    effects = [effect for assessment in timed for effect in assessment.effects]
    counted = [
        effect
        for effect in effects
        if effect.standard_error is not None and effect.log_ratio is not None
    ]
    weight = math.fsum(effect.default_hours for effect in counted)
    if not counted or weight <= 0:
        why = "No study has enough control runs yet."
        tuned = sum(effect.tuned_runs for effect in effects)
        return not_compared(why, tuned, sum(effect.blocks for effect in effects)), hours
    return total(counted), hours


def total(counted: Sequence[Effect]) -> Gain:
    """The gain over comparisons with a standard error."""
    weight = math.fsum(effect.default_hours for effect in counted)
    ratios = [effect.default_hours * math.exp(-(effect.log_ratio or 0.0)) for effect in counted]
    controls = sum(effect.blocks for effect in counted)
    tuned = sum(effect.tuned_runs for effect in counted)
    left = math.fsum(ratios) / weight
    squares = (
        (ratio * (effect.standard_error or 0.0)) ** 2
        for ratio, effect in zip(ratios, counted, strict=True)
    )
    # Of the logarithm, wider by Student's as there are few control runs to know it from.
    freedom = max(controls - len(counted), 1)
    wider = float(stdtrit(freedom, 0.975)) / float(ndtri(0.975))
    error = wider * math.sqrt(math.fsum(squares)) / weight / left
    half = half_width(error, controls, ERROR)
    estimate = -math.log(left)
    power = float(ndtri(POWER))
    times = ((half + power * error) / abs(estimate)) ** 2 if estimate else math.inf
    needed = (times - 1) * (controls + tuned)
    said = Gain(
        verdict="not_yet",
        reason="",
        share=1 - left,
        low=1 - math.exp(-estimate + half),
        high=1 - math.exp(-estimate - half),
        level=1 - ERROR,
        tuned_runs=tuned,
        control_runs=controls,
        detectable=1 - math.exp(-half - power * error),
        runs_needed=None,
        evidence=math.exp(min(log_evidence(estimate, error, controls), MOST_LOG)),
    )
    saved = math.fsum(effect.saved for effect in counted)
    return judged(said, saved, round(needed) if 0 < needed < MOST_RUNS else None)

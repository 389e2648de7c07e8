"""Node-hours saved and spent, as arithmetic sums: slow runs cost what they cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from io_autotune_report.analyse.estimators.confidence_sequence import half_width
from io_autotune_report.analyse.estimators.gain import ERROR
from io_autotune_report.analyse.estimators.run_costs import Spent, spent
from io_autotune_report.document import NodeHours
from io_autotune_report.frames import Runs
from io_autotune_report.load.assessment import Assessment


@dataclass(frozen=True)
class Part:
    """What a study adds to a sum."""

    spent: Spent
    assessment: Assessment


def node_hours(runs: Runs, assessment: Assessment) -> NodeHours:
    """Of one study."""
    return node_hours_of([Part(spent(runs), assessment)])


def node_hours_of(studies: Sequence[Part]) -> NodeHours:
    """Of one study or the sum over several."""
    effects = [effect for study in studies for effect in study.assessment.effects]
    explored = [study.spent.exploring for study in studies if study.spent.exploring is not None]
    exploring = math.fsum(explored) if explored else None
    used = math.fsum(study.spent.used for study in studies)
    if not effects:
        return NodeHours(used, None, None, None, None, exploring, None, None)
    by_chosen = math.fsum(effect.saved for effect in effects)
    controls = math.fsum(effect.controls for effect in effects)
    saved = by_chosen - (exploring or 0.0) - controls
    low = high = None
    known = [effect for effect in effects if effect.net_variance is not None]
    if known:
        # A comparison of one block says nothing of its variance: it gets the mean of the others'.
        weight = math.fsum(effect.default_hours**2 / effect.blocks for effect in known)
        variance = math.fsum(effect.net_variance or 0.0 for effect in known)
        every = math.fsum(effect.default_hours**2 / effect.blocks for effect in effects)
        variance *= every / weight if weight > 0 else 1.0
        variance += math.fsum(study.spent.exploring_variance for study in studies)
        half = half_width(math.sqrt(variance), sum(effect.blocks for effect in effects), ERROR)
        low, high = saved - half, saved + half
    now = [
        effect.a_month
        for study in studies
        if (effect := study.assessment.current) is not None and effect.a_month is not None
    ]
    return NodeHours(
        used=used,
        saved=saved,
        low=low,
        high=high,
        by_chosen=by_chosen,
        exploring=exploring,
        controls=controls,
        a_month=math.fsum(now) if now else None,
        level=None if low is None else 1 - ERROR,
    )

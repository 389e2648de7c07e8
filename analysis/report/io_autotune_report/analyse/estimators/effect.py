"""The effect that the blocks of a comparison show: estimate, interval, evidence, node-hours.

The error rate ``ERROR`` is spent on a study's whole life: comparison ``k`` gets ``1 / (k (k + 1))``
of it, which sums to 1, and within a comparison looks cost nothing (see :mod:`.ranks`). Half of it
is for each direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from io_autotune_report.analyse.estimators import ranks
from io_autotune_report.analyse.estimators.blocks import Comparison
from io_autotune_report.analyse.estimators.ranks import Array

ERROR = 0.05
"""The probability that a study without an effect ever shows one."""

POWER = 0.8
_POWER_QUANTILE = float(norm.ppf(POWER))
_MOST_BLOCKS = 20_000
_LEAST_DAYS = 7.0


@dataclass(frozen=True)
class Effect:
    """What a comparison shows. Logarithms are of the default's elapsed over the chosen one's."""

    epoch: int
    key: str
    number: int
    blocks: int
    tuned_runs: int
    log_ratio: float
    """Infinite if all runs of one side were cut short."""
    low: float
    """Of ``log_ratio``; minus infinity where so few blocks bound nothing."""
    high: float
    standard_error: float | None
    """Of ``log_ratio``; none where so few blocks tell none."""
    log_evidence: float
    """Against no effect; its share of the study's error rate is taken off already."""
    detectable: float | None
    """The share of the default's time that would have been seen with probability ``POWER``."""
    blocks_needed: int | None
    """In all, to see an effect such as this one with probability ``POWER``."""
    default_hours: float
    """Node-hours that the default would have taken for the chosen runs: the weight in sums."""
    saved: float
    """Node-hours, arithmetically."""
    controls: float
    """Node-hours spent by control runs beyond what the chosen parametrization would have taken."""
    net_variance: float | None
    """Of ``saved`` less ``controls``."""
    a_month: float | None
    """Node-hours a month, at the rate of the last 30 days; none before a week has passed."""
    last: str
    """The start of its last run."""


def log_bound(number: int | Array) -> Array:
    """What the log evidence of one direction has to reach in a study's comparison ``number``."""
    return np.log(2.0 / ERROR) + np.log(number) + np.log(np.add(number, 1))


def effect(comparison: Comparison) -> Effect:
    """Estimates a comparison."""
    c, t, count = comparison.control, comparison.tuned, comparison.count
    blocks = int(count.size)
    log_moment = np.sum(ranks.LOG_MOMENT[count], axis=0)
    centre, errors = ratio_and_error(c, t, count)
    excess = float(_excess(c, t, count, centre))
    bound = float(log_bound(comparison.number))
    target = float(ranks.critical(count, log_moment, bound)) * excess
    bounded = target < float(np.sum(ranks.SCORES[count, count]))
    low = float(ranks.crossing(c, t, count, target)) if bounded else -math.inf
    high = float(ranks.crossing(c, t, count, -target)) if bounded else math.inf
    error = float(errors) if np.isfinite(errors) else None
    total = float(np.sum(ranks.block_scores(c, t, count, 0.0)))
    evidence = float(ranks.log_evidence(abs(total) / excess, log_moment)) - bound - math.log(ERROR)
    detectable = None
    if bounded and error is not None:
        deviation = math.sqrt(float(np.sum(ranks.VARIANCE[count]))) * excess
        detectable = 1 - math.exp(-error * (target / deviation + _POWER_QUANTILE))
    return Effect(
        epoch=comparison.epoch,
        key=comparison.key,
        number=comparison.number,
        blocks=blocks,
        tuned_runs=int(np.sum(count)),
        log_ratio=float(centre),
        low=low,
        high=high,
        standard_error=error,
        log_evidence=evidence,
        detectable=detectable,
        blocks_needed=_blocks_needed(abs(total) / blocks, excess, count, log_moment, bound),
        **_hours(comparison),
        last=str(comparison.last),
    )


def ratio_and_error(control: Array, tuned: Array, count: ranks.Counts) -> tuple[Array, Array]:
    """The logarithm of the default's elapsed over the chosen one's, and its standard error.

    The error is half the way between the shifts at which the sum of scores is one standard
    deviation of it from zero; infinite where there are too few blocks for that. Arrays as in
    :mod:`.ranks`; leading axes are studies.
    """
    centre = ranks.centre(control, tuned, count)
    excess = _excess(control, tuned, count, centre)
    deviation = np.sqrt(np.sum(ranks.VARIANCE[count], axis=-1)) * excess
    low = ranks.crossing(control, tuned, count, deviation)
    high = ranks.crossing(control, tuned, count, -deviation)
    known = (np.sum(count > 0, axis=-1) > 1) & np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid="ignore"):
        return centre, np.where(known, (high - low) / 2, np.inf)


def _excess(control: Array, tuned: Array, count: ranks.Counts, centre: Array) -> Array:
    middle = np.where(np.isfinite(centre), centre, 0.0)
    scores = ranks.block_scores(control, tuned, count, middle)
    return np.sqrt(ranks.inflation(scores, count))


def _blocks_needed(
    mean: float, excess: float, count: ranks.Counts, log_moment: Array, bound: float
) -> int | None:
    """So many blocks like these, whose mean score this is, that the evidence reaches the bound."""
    seen = count.size
    blocks = np.unique(np.geomspace(1, _MOST_BLOCKS, 80).astype(np.int64))
    variance = float(np.mean(ranks.VARIANCE[count]))
    total = blocks * mean / excess - _POWER_QUANTILE * np.sqrt(blocks * variance)
    evidence = ranks.log_evidence(np.maximum(total, 0.0), blocks[:, None] * log_moment / seen)
    enough = np.flatnonzero(evidence >= bound)
    return int(blocks[enough[0]]) if enough.size else None


def _hours(comparison: Comparison) -> dict[str, Any]:
    apart = (comparison.control_seconds - comparison.tuned_seconds) / 3600
    weights = comparison.chosen_nodes
    saved = float(np.sum(weights * apart))
    blocks = apart.size
    variance = None
    if blocks > 1:
        mean = saved / float(np.sum(weights))
        net = weights - comparison.control_nodes
        squares = float(np.sum((net * (apart - mean)) ** 2))
        # Student's, as a wider normal: with few blocks the variance is hardly known.
        wider = float(student.ppf(0.975, blocks - 1)) / float(norm.ppf(0.975))
        variance = squares * blocks / (blocks - 1) * wider**2
    days = float((comparison.last - comparison.first) / np.timedelta64(1, "D"))
    a_month = None
    if days >= _LEAST_DAYS:
        rate = comparison.recent_runs / min(days, 30.0) * 30.0
        a_month = rate * saved / float(np.sum(weights))
    default_seconds = float(np.mean(comparison.control_seconds))
    return {
        "default_hours": float(np.sum(weights)) * default_seconds / 3600,
        "saved": saved,
        "net_variance": variance,
        "controls": float(np.sum(comparison.control_nodes * apart)),
        "a_month": a_month,
    }

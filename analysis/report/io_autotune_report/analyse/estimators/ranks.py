"""A control run's rank among the tuned runs near it: scores, evidence and limits.

Pure arithmetic on arrays. A *block* is one control run and the ``k`` tuned runs whose nearest
control run it is. Where the default and the chosen parametrization take the same, each of the
``k + 1`` ranks of the control run is equally likely, whatever the noise looks like: outliers, heavy
tails and slow drift included. So the null distribution is known and nothing about noise is assumed.

Every block's rank becomes a normal score ``a``. The evidence for "the control run takes longer" is

    E+ = sum over eta of weight(eta) * product over blocks of exp(eta * a) / M_k(eta)

with ``M_k(eta)`` the mean of ``exp(eta * a)`` over the ``k + 1`` ranks. The expectation of each
factor is 1 given the past if there is no effect, so E+ is a nonnegative martingale: it ever exceeds
``1 / alpha`` with a probability of at most ``alpha`` (Ville 1939), however often one looks
(Ramdas et al., "Game-theoretic statistics and safe anytime-valid inference", 2023). E- is
the same with ``-eta``. The interval for the logarithm of the ratio of control to tuned is the set
of shifts under which the evidence, after shifting, stays below the bound.

Arrays have blocks on the last axis (``control``, ``count``) and tuned runs behind it (``tuned``,
padded with NaN); leading axes are studies. Values are logarithms of elapsed; ``inf`` is a run that
was cut short: longer than all others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

MOST_TUNED = 40
"""Tuned runs in a block, at most: more say hardly anything more."""

ETAS: Array = np.array([0.05, 0.1, 0.2, 0.35, 0.65, 1.2, 3.0])
LOG_WEIGHTS: Array = np.log([0.04, 0.06, 0.10, 0.28, 0.28, 0.14, 0.10])
"""Effects that evidence looks for, in scores (about the effect over the noise), and their weights.

Any weights are valid. Most is on what 10 to 100 control runs can show; the largest is there for a
gain that is plain after a handful, the smallest for what takes years.
"""

PRIOR_BLOCKS = 10.0
"""How many blocks' worth the known variance of scores weighs against the observed one."""

_STEPS = 30


def _tables() -> tuple[Array, Array, Array]:
    places = np.arange(MOST_TUNED + 1)
    scores = np.zeros((MOST_TUNED + 1, MOST_TUNED + 1))
    variance = np.zeros(MOST_TUNED + 1)
    moment = np.zeros((MOST_TUNED + 1, ETAS.size))
    for tuned in range(1, MOST_TUNED + 1):
        row = norm.ppf((places[: tuned + 1] + 0.625) / (tuned + 1.25))
        scores[tuned, : tuned + 1] = row
        variance[tuned] = np.mean(row**2)
        moment[tuned] = logsumexp(ETAS[:, None] * row, axis=1) - np.log(tuned + 1)
    return scores, variance, moment


SCORES, VARIANCE, LOG_MOMENT = _tables()
"""By number of tuned runs: Blom's normal scores by rank, their variance, ``log M_k(eta)``."""


def block_scores(control: Array, tuned: Array, count: Counts, shift: Array | float) -> Array:
    """Each block's score after ``shift`` is taken off the control run; ties score in between."""
    moved = (control - np.asarray(shift)[..., None])[..., None]
    below = np.sum(moved > tuned, axis=-1)
    not_above = np.sum(moved >= tuned, axis=-1)
    if np.array_equal(below, not_above):
        return SCORES[count, below]
    return (SCORES[count, below] + SCORES[count, not_above]) / 2


def log_evidence(total: Array | float, log_moment: Array) -> Array:
    """The logarithm of E+ from the sum of scores and the sum of ``LOG_MOMENT`` over the blocks."""
    exponent = np.asarray(total)[..., None] * ETAS - log_moment + LOG_WEIGHTS
    most = np.max(exponent, axis=-1)
    return most + np.log(np.sum(np.exp(exponent - most[..., None]), axis=-1))


def critical(count: Counts, log_moment: Array, log_bound: Array | float) -> Array:
    """The sum of scores at which E+ reaches the bound; ``inf`` where no ranks reach it."""
    most = np.sum(SCORES[count, count], axis=-1)
    low, high = np.zeros_like(most), most.copy()
    for _ in range(_STEPS):
        middle = (low + high) / 2
        enough = log_evidence(middle, log_moment) >= log_bound
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    reachable = log_evidence(most, log_moment) >= log_bound
    return np.where(reachable, high, np.inf)


def crossing(control: Array, tuned: Array, count: Counts, target: Array | float) -> Array:
    """The shift at which the sum of scores, which falls with it, falls to ``target`` or below.

    Infinite where runs that were cut short keep it from ever getting there.
    """
    # The sum only changes where a shift makes a control run equal to a tuned one.
    with np.errstate(invalid="ignore"):
        apart = (control[..., None] - tuned).reshape((*control.shape[:-1], -1))
    steps = np.sort(np.where(np.isfinite(apart), apart, np.inf), axis=-1)
    last = np.sum(np.isfinite(steps), axis=-1) - 1
    steps[..., 0] = np.where(last < 0, 0.0, steps[..., 0])
    low, high = np.full_like(last, -2), last + 1
    for _ in range(int(np.max(last, initial=0) + 3).bit_length()):
        middle = (low + high) // 2
        shift = _after(steps, middle, last)
        total = np.sum(block_scores(control, tuned, count, shift), axis=-1)
        above = (total > target) & (middle <= last)
        searching = high - low > 1
        low = np.where(searching & above, middle, low)
        high = np.where(searching & ~above, middle, high)
    reached = np.where(high > last, np.inf, _at(steps, np.clip(high, 0, np.maximum(last, 0))))
    return np.where(high < 0, -np.inf, reached)


def _at(steps: Array, place: Counts) -> Array:
    return np.take_along_axis(steps, place[..., None], axis=-1)[..., 0]


def _after(steps: Array, place: Counts, last: Counts) -> Array:
    """A shift between this step and the next; before the first one for -1."""
    last = np.maximum(last, 0)
    here = _at(steps, np.clip(place, 0, last))
    there = _at(steps, np.clip(place + 1, 0, last))
    between = np.where(place < 0, here - 1.0, np.where(place >= last, here + 1.0, 0.0))
    return np.where(between == 0.0, (here + there) / 2, between)


def centre(control: Array, tuned: Array, count: Counts) -> Array:
    """The shift that makes the sum of scores zero: Hodges and Lehmann's estimate from ranks."""
    least = np.finfo(np.float64).eps * 64
    last_above = crossing(control, tuned, count, least)
    first_below = crossing(control, tuned, count, -least)
    # Where either is infinite so is the estimate's side, and the other says what there is to say.
    both = np.isfinite(last_above) & np.isfinite(first_below)
    either = np.where(np.isfinite(last_above), last_above, first_below)
    with np.errstate(invalid="ignore"):
        return np.where(both, (last_above + first_below) / 2, either)


def inflation(scores: Array, count: Counts) -> Array:
    """By how much the scores' variance exceeds the known one, at least 1.

    It does where the control runs are noisier than the tuned ones: the ranks are then not equally
    likely though neither is faster. ``scores`` are those at :func:`centre`.
    """
    known = np.sum(VARIANCE[count], axis=-1)
    used = np.maximum(np.sum(count > 0, axis=-1), 1)
    known = np.maximum(known, np.finfo(np.float64).tiny)
    prior = known / used * PRIOR_BLOCKS
    # One degree of freedom goes into the centre.
    seen = np.sum(scores**2, axis=-1) * used / np.maximum(used - 1, 1)
    return np.maximum(1.0, (seen + prior) / (known + prior))

"""What the estimators say of simulated studies at every look: the code of the report, vectorised.

The report's own functions of :mod:`..estimators.ranks` are called, with studies on a leading axis;
that they say what ``estimators.gain`` says is a test. A look is after each control run and the
tuned runs around it: nights in between see nothing that the next such look does not see.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from io_autotune_report.analyse.estimators import ranks
from io_autotune_report.analyse.estimators.effect import ERROR, log_bound
from io_autotune_report.analyse.estimators.ranks import Array
from numpy.typing import NDArray

from guarantees.worlds import Blocks

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Looks:
    """By study and look."""

    claimed: NDArray[np.int64]
    """1 for faster, -1 for slower, 0 for neither."""
    covered: Flags
    """Whether the interval holds the truth."""
    evidence: Array
    """As :attr:`..document.Gain.evidence`."""


def look(
    blocks: Blocks, truth: Array, looks: list[int] | None = None, *, claims: bool = True
) -> Looks:
    """What is said after so many blocks; after each, if left out.

    Without ``claims`` only ``covered`` holds, which is had sooner.
    """
    control, tuned, _ = blocks.control, blocks.tuned, blocks.seconds
    studies, most, each = tuned.shape
    looks = list(range(1, most + 1)) if looks is None else looks
    count = np.full((studies, most), each)
    at_none = np.cumsum(ranks.block_scores(control, tuned, count, 0.0), axis=1)
    at_truth = np.cumsum(ranks.block_scores(control, tuned, count, truth), axis=1)
    seconds_apart = np.cumsum(blocks.seconds[0] - blocks.seconds[1], axis=1)
    claimed = np.zeros((studies, len(looks)), dtype=np.int64)
    covered = np.ones((studies, len(looks)), dtype=bool)
    evidence = np.zeros((studies, len(looks)))
    bound = float(log_bound(1))
    for place, seen in enumerate(looks):
        moment = seen * ranks.LOG_MOMENT[each]
        critical = float(ranks.critical(count[0, :seen], moment, bound))
        none, true = at_none[:, seen - 1], at_truth[:, seen - 1]
        evidence[:, place] = ranks.log_evidence(np.abs(none), moment)
        # Inflated variance only widens: it is had where it may matter.
        extreme = np.maximum(np.abs(true), np.abs(none) if claims else 0.0)
        close = np.flatnonzero(extreme >= critical)
        if close.size:
            args = control[close, :seen], tuned[close, :seen], count[close, :seen]
            scores = ranks.block_scores(*args, ranks.centre(*args))
            excess = np.sqrt(ranks.inflation(scores, args[2]))
            total = none[close] / excess
            sign = np.where(np.abs(total) >= critical, np.sign(total), 0)
            agrees = sign * seconds_apart[close, seen - 1] > 0
            claimed[close, place] = np.where(agrees, sign, 0)
            covered[close, place] = np.abs(true[close] / excess) < critical
            evidence[close, place] = ranks.log_evidence(np.abs(total), moment)
    return Looks(claimed, covered, np.exp(np.minimum(evidence - bound, 500.0)) / ERROR)

"""What a person should look at, or may stop looking at, in the service's words or our own."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

import numpy as np
import pandas as pd

from io_autotune_report.document import Finding, FindingKind, Study
from io_autotune_report.frames import EXPLORING_ROLES, Runs, numbers, words
from io_autotune_report.load.assessment import Found
from io_autotune_report.load.parametrizations import key
from io_autotune_report.number_format import node_time, per_cent

QUIET_DAYS = 30

_WORTH = 0.1
_WASTEFUL = 1.5
_LEAST_EXPLORED = 15


@dataclass(frozen=True)
class Explored:
    """Design and search runs, over the default's mean."""

    runs: int
    mean: float
    best: float
    """The best mean of a parametrization, by all of its runs."""


def explored(here: Runs) -> Explored | None:
    """Of one epoch's runs; none where nothing compares."""
    elapsed, keys = numbers(here, "elapsed"), words(here, "key")
    counted = (words(here, "effect") == "sample") & (elapsed > 0) & ~pd.isna(keys)
    default = counted & (numbers(here, "default") > 0)
    tried = counted & np.isin(words(here, "role"), EXPLORING_ROLES)
    others = counted & ~default
    # A design may have the default among its points, and nothing else may have counted yet.
    if not tried.any() or not default.any() or not others.any():
        return None
    codes, _ = pd.factorize(keys[others])
    means = np.bincount(codes, weights=elapsed[others]) / np.bincount(codes)
    mean = float(elapsed[default].mean())
    return Explored(
        int(tried.sum()), float(elapsed[tried].mean()) / mean, float(means.min()) / mean
    )


def findings(study: Study, found: tuple[Found, ...], search: Explored | None) -> list[Finding]:
    """Of one study; ``found`` is the service's."""
    return [
        *_regression(study),
        *(_rendered(study, each) for each in found),
        *_waste(study, search),
        *_already_best(study),
    ]


def _rendered(study: Study, found: Found) -> Finding:
    # Shown apart from the study's runs, it has to name what it is about.
    under = "" if found.parametrization is None else f"{key(found.parametrization)}: "
    known = (kind for kind in get_args(FindingKind) if kind == found.kind)
    kind: FindingKind = next(known, "other")
    return _finding(study, kind, under + found.what, found.action)


def _finding(study: Study, kind: FindingKind, what: str, do: str) -> Finding:
    return Finding(kind, study.study_id, study.application, what, do)


def _regression(study: Study) -> Iterator[Finding]:
    gain, number = study.gain, study.study_id
    if gain.verdict == "slower" and gain.share is not None and gain.high is not None:
        yield _finding(
            study,
            "regression",
            (
                f"What is chosen takes {per_cent(-gain.share)} longer than the default"
                if gain.objective == "elapsed"
                else f"What is chosen is {per_cent(-gain.share)} worse than the default by"
                f" {gain.objective}"
            )
            + f" ({per_cent(-gain.high)} at least), by {gain.control_runs} control runs.",
            f'`io-autotune reset study:{number} --why "chosen parametrization is slower"` searches'
            " anew; `io-autotune explain JOBID` says why it was chosen.",
        )


def _waste(study: Study, search: Explored | None) -> Iterator[Finding]:
    hours, number = study.node_hours, study.study_id
    # What was spent is spent: once nothing is explored any more, there is nothing to end.
    if study.phase in ("settled", "pinned"):
        return
    if hours.high is not None and hours.saved is not None and hours.high < 0:
        gains = hours.by_chosen is not None and hours.by_chosen > 0
        yield _finding(
            study,
            "waste",
            f"Tuning has cost {node_time(-hours.saved)} more than it saved, and the search has not"
            " ended.",
            f'`io-autotune pin study:{number} --why "enough explored"` ends that with what is'
            " recommended now."
            if gains
            else f"{_pin_default(study)} ends it.",
        )
        return
    if search is None or search.runs < _LEAST_EXPLORED:
        return
    if search.mean > _WASTEFUL and search.best > 1 - _WORTH:
        yield _finding(
            study,
            "waste",
            f"{search.runs} exploring runs took {search.mean:.1f} times the default on average, and"
            " none of what they tried is a tenth faster.",
            f'`io-autotune pin study:{number} --why "nothing to win"` ends the search with what is'
            " recommended now.",
        )


def _pin_default(study: Study) -> str:
    """Pins the default: one of its values suffices."""
    known = [each for each in study.parameters if each.default is not None]
    if not known:
        return f'`io-autotune pin study:{study.study_id} --why "default is best"`'
    # What the page says is copied into a shell, and names are not ours.
    value = shlex.quote(f"{known[0].name}={known[0].default}")
    return f'`io-autotune pin study:{study.study_id} {value} --why "default is best"`'


def quiet(study: Study, last_run: datetime, now: datetime) -> Iterator[Finding]:
    """Whether its search rests at the night's end."""
    days = (now - last_run).days
    if study.phase not in ("settled", "pinned") and days > QUIET_DAYS:
        yield _finding(
            study,
            "quiet",
            f"No run for {days} days, and the search has not ended.",
            "Nothing has to be done: it goes on with the next run.",
        )


def _already_best(study: Study) -> Iterator[Finding]:
    if study.phase == "settled" and study.gain.verdict == "no_effect":
        yield _finding(
            study,
            "already_best",
            f"The default is as good as anything that {study.counted} runs have found."
            f" {study.gain.reason}",
            f"{_pin_default(study)} stops here; that is a result.",
        )

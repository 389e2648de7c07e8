"""The results of the report's own code on sites whose truth is known."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import msgspec
from io_autotune_report.analyse.estimators.gain import false_discovery
from io_autotune_report.analyse.estimators.sums import total
from io_autotune_report.document import Gain


@dataclass(frozen=True)
class Claims:
    """Sites, each with its claims after control of the false discovery rate."""

    sites: int
    studies: int
    false: float
    """The share of false ones among a site's claims, on average."""
    most: float
    """The same at the worst site."""
    found: float
    """The share of effects that are claimed."""
    a_site: float
    """Claims."""


@dataclass(frozen=True)
class Totals:
    """Shares of a world's sites, each looked at in every night of its life."""

    sites: int
    end: float
    """The interval of the site's total holds the truth in the last night."""
    always: float
    """In each night."""
    false: float
    """Of those whose studies have no effect: claimed to gain or lose in some night."""


@dataclass(frozen=True)
class _Night:
    holds: bool
    claims: bool
    is_null: bool


def read(lines: Iterable[str]) -> tuple[Claims, dict[str, Totals]]:
    """Analyses the sites that the example prints; totals by world."""
    claims: list[tuple[float, float, int]] = []
    studies = 0
    lives: dict[str, dict[int, list[_Night]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        ((kind, said),) = json.loads(line).items()
        if kind == "claims":
            studies = len(said["studies"])
            claims.append(_claims(said["studies"]))
        else:
            lives[said["world"]][said["site"]].extend(_night(said["effects"]))
    false, found, held = zip(*claims, strict=True)
    said_of_claims = Claims(
        len(claims), studies, fmean(false), max(false), fmean(found), fmean(held)
    )
    return said_of_claims, {world: _totals(list(sites.values())) for world, sites in lives.items()}


def _claims(studies: list[dict[str, Any]]) -> tuple[float, float, int]:
    held = [
        said.verdict in ("faster", "slower")
        for said in false_discovery(
            msgspec.convert([study["gain"] for study in studies], list[Gain])
        )
    ]
    true = [study["truth"] != 0 for study in studies]
    found = sum(map(all, zip(held, true, strict=True)))
    return (sum(held) - found) / max(sum(held), 1), found / sum(true), sum(held)


def _night(studies: list[dict[str, Any]]) -> list[_Night]:
    # As in the report, a comparison counts once its error is known.
    counted = [
        study
        for study in studies
        if study["effect"]["standard_error"] is not None
        and study["effect"]["log_ratio"] is not None
    ]
    if not counted:
        return []
    # The report's own names.
    effects: list[Any] = [SimpleNamespace(**study["effect"]) for study in counted]
    said = total(effects)
    hours = math.fsum(study["hours"] for study in counted)
    left = math.fsum(study["hours"] * math.exp(-study["truth"]) for study in counted) / hours
    if said.low is None or said.high is None:
        raise ValueError(f"a total without an interval: {said}")
    return [
        _Night(
            holds=said.low <= 1 - left <= said.high,
            claims=not said.low <= 0 <= said.high,
            is_null=all(study["truth"] == 0 for study in studies),
        )
    ]


def _totals(sites: list[list[_Night]]) -> Totals:
    null = [nights for nights in sites if all(night.is_null for night in nights)]
    return Totals(
        sites=len(sites),
        end=fmean(nights[-1].holds for nights in sites),
        always=fmean(all(night.holds for night in nights) for nights in sites),
        false=fmean(any(night.claims for night in nights) for nights in null),
    )

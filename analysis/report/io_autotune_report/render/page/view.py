"""Groups, verdicts and shares for the templates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from io_autotune_report.render.page import selection, words

if TYPE_CHECKING:
    from io_autotune_report.document import (
        Group,
        Importance,
        Measured,
        NodeHours,
        Parameter,
        Report,
    )

LEAST_MONTHS = 2
"""One month, or quarter, is the total."""

MOST_PERIODS = 12


@dataclass(frozen=True)
class GroupTable:
    """A table of groups."""

    key: str
    title: str
    head: str
    part: selection.Part[Group]


def groups(report: Report) -> list[GroupTable]:
    """The tables of groups that have rows."""
    tables = [
        GroupTable("clusters", "Clusters", "Cluster", _part(report.clusters)),
        GroupTable("accelerators", "Accelerators", "Accelerator", _part(report.accelerators)),
        GroupTable("accounts", "Accounts", "Account", _part(report.accounts)),
        GroupTable("users", "Users", "User", _part(report.users)),
        GroupTable("applications", "Applications", "Application", _part(report.applications)),
    ]
    return [table for table in tables if table.part.total]


_part = selection.groups


@dataclass(frozen=True)
class Period:
    """A month or a quarter, and the node-hours saved in it, as each night before knew them."""

    label: str
    saved: float
    whole: bool = True
    """False for the first, which also has all that was saved before the first night."""


def periods(history: list[tuple[str, float]]) -> list[tuple[str, list[Period]]]:
    """What was saved in each month and quarter, the latest first; none before a second month."""
    ends = {night[:7]: saved for night, saved in history if words.known(saved)}
    if len(ends) < LEAST_MONTHS:
        return []

    def sums(ends: dict[str, float]) -> list[Period]:
        first, so_far = next(iter(ends.items()))
        # The nights before the first that is kept are in its total.
        made = [Period(f"until {first}", so_far, whole=False)]
        made += [Period(label, end - was) for (_, was), (label, end) in pairwise(ends.items())]
        return made[: -MOST_PERIODS - 1 : -1]

    months = {words.month(month): saved for month, saved in ends.items()}
    quarters = {words.quarter(month): saved for month, saved in ends.items()}
    both = [("Month", sums(months)), ("Quarter", sums(quarters))]
    return [(head, rows) for head, rows in both if len(rows) >= LEAST_MONTHS]


def share_saved(hours: NodeHours) -> float | None:
    """What was saved, as a share of what the defaults would have used."""
    if hours.saved is None or not words.known(hours.saved) or hours.used + hours.saved <= 0:
        return None
    return hours.saved / (hours.used + hours.saved)


def cost(hours: NodeHours) -> float | None:
    """What exploring and control runs took beyond what they would have taken otherwise."""
    if hours.exploring is None and hours.controls is None:
        return None
    return (hours.exploring or 0.0) + (hours.controls or 0.0)


def by_claim(report: Report) -> tuple[int, float, float] | None:
    """How many studies have a claimed gain, what they saved, and what all others did."""
    saved = [study for study in report.studies if study.gain.verdict == "faster"]
    hours = [study.node_hours.saved for study in saved]
    theirs = math.fsum(one for one in hours if one is not None and words.known(one))
    total = report.total.node_hours.saved
    if total is None or not words.known(total) or len(saved) in (0, len(report.studies)):
        return None
    return len(saved), theirs, total - theirs


def verdicts(report: Report) -> dict[str, int]:
    """Studies by verdict, without empty ones."""
    counts = {
        verdict: sum(study.gain.verdict == verdict for study in report.studies)
        for verdict in words.VERDICTS
    }
    return {verdict: number for verdict, number in counts.items() if number}


@dataclass(frozen=True)
class ImportanceRow:
    """A parameter's or a pair's three shares."""

    label: str
    shares: tuple[float | None, float | None, float | None]


def importance(said: Importance) -> list[ImportanceRow]:
    """Rows of what any method names."""
    methods = [
        {tuple(share.parameters): share.share for share in shares}
        for shares in (said.r2, said.anova, said.forest)
    ]
    every = {names: None for method in methods for names in method}
    table = [
        ImportanceRow(
            " \u00d7 ".join(words.plain(name) for name in names),
            (methods[0].get(names), methods[1].get(names), methods[2].get(names)),
        )
        for names in every
    ]
    return sorted(table, key=lambda row: -max(share or 0.0 for share in row.shares))


def measured_runs(measures: list[Measured]) -> str:
    """How many runs measures are of."""

    def most(typical: list[Measured.Typical | None]) -> str:
        return words.count(max((one.runs for one in typical if one), default=0))

    default, chosen = (
        most([each.default for each in measures]),
        most([each.chosen for each in measures]),
    )
    return f"{default} runs of the default and {chosen} of what was chosen"


def differs(study_parameters: list[Parameter]) -> int:
    """Parameters chosen other than their default."""
    return sum(
        parameter.chosen is not None and parameter.chosen != parameter.default
        for parameter in study_parameters
    )

"""Groups, verdicts and shares for the templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from io_autotune_report.render.page import selection, words

if TYPE_CHECKING:
    from io_autotune_report.document import Group, Importance, Measured, Parameter, Report


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

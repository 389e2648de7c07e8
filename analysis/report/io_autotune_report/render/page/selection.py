"""What of a large site stands on the page, which stays below 5 MB.

A study with figures takes about 20 kB, a row 1.5 kB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from io_autotune_report.render.page import words

if TYPE_CHECKING:
    from io_autotune_report.document import ExploringSpent, Finding, Group, Report, Study

Item = TypeVar("Item")

DETAILS = 100
"""With figures: cards and changes first, then claims, then node-hours."""

ROWS = 1000
"""In the table: those with figures, then by node-hours."""

GROUPS = 300
"""Of a table of groups, by node-hours."""

FINDINGS = 100
"""Findings, the most urgent first."""

SAVERS = 5
"""Those that saved most."""

CHANGES = 100
"""Changes since the night before."""


@dataclass(frozen=True)
class Part(Generic[Item]):
    """What is shown of something, and how much there is."""

    shown: list[Item]
    total: int

    @property
    def left_out(self) -> int:
        """How many are in the files alone."""
        return self.total - len(self.shown)


def _used(part: Study | Group) -> float:
    return part.node_hours.used if words.known(part.node_hours.used) else 0.0


def detailed(report: Report) -> list[Study]:
    """Studies with figures, by application."""
    news = {finding.study_id for finding in report.findings if finding.needs_a_person}
    news |= {change.study_id for change in report.changes if change.study_id is not None}

    def rank(study: Study) -> tuple[bool, bool, float]:
        return study.study_id not in news, not words.claims(study.gain), -_used(study)

    chosen = sorted(report.studies, key=rank)[:DETAILS]
    return sorted(chosen, key=lambda study: (study.application, study.study_id))


def rows(report: Report) -> Part[Study]:
    """The table's studies, by node-hours."""
    kept = {study.study_id for study in detailed(report)}
    by_use = sorted(report.studies, key=lambda study: (study.study_id not in kept, -_used(study)))
    return Part(sorted(by_use[:ROWS], key=_used, reverse=True), len(report.studies))


def groups(all_groups: list[Group]) -> Part[Group]:
    """Groups, by node-hours."""
    return Part(sorted(all_groups, key=_used, reverse=True)[:GROUPS], len(all_groups))


def budgets(report: Report) -> Part[ExploringSpent]:
    """Budgets for exploring, by node-hours."""
    return Part(report.exploring[:GROUPS], len(report.exploring))


def findings(report: Report, *, asking: bool) -> Part[Finding]:
    """The most urgent of the findings that ask something of a person, or of the others."""
    those = [each for each in report.findings if each.needs_a_person == asking]
    return Part(those[:FINDINGS], len(those))


def savers(report: Report) -> list[Study]:
    """The studies with a claimed gain that saved most."""
    faster = [study for study in report.studies if study.gain.verdict == "faster" and _saved(study)]
    return sorted(faster, key=_saved, reverse=True)[:SAVERS]


def _saved(study: Study) -> float:
    saved = study.node_hours.saved
    return max(saved, 0.0) if saved is not None and words.known(saved) else 0.0

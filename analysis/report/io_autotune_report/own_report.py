"""A report of one user's studies alone, of the figures of a site's report. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io_autotune_report.document import Group, Report

FORGOTTEN = 4_000_000_000
"""From here on are the uids that stand for users whom the service has forgotten (store/forget)."""


def owners(report: Report) -> list[Group]:
    """The users who have studies in a report and can ask for them, each with their sum."""
    return [group for group in report.users if group.uid is not None and group.uid < FORGOTTEN]


def own_report(report: Report, owner: Group) -> Report:
    """The report as far as it is about one of its :func:`owners`.

    Nothing of others is left: neither sums over several users nor the names of their studies.
    """
    studies = [study for study in report.studies if study.uid == owner.uid]
    own = {study.study_id for study in studies}
    runs = [datetime.fromisoformat(point.at) for study in studies for point in study.points]
    zone = datetime.fromisoformat(report.last).tzinfo
    # A budget is known by its user's name alone, and two users may have had one name.
    name_is_theirs = sum(group.name == owner.name for group in report.users) == 1
    return replace(
        report,
        total=owner,
        clusters=[],
        accelerators=[],
        users=[],
        accounts=[],
        applications=[],
        studies=studies,
        findings=[finding for finding in report.findings if finding.study_id in own],
        changes=[change for change in report.changes if change.study_id in own],
        history=[],
        not_counted=[],
        exploring=[
            spent
            for spent in report.exploring
            if name_is_theirs and (spent.budget_of, spent.name) == ("user", owner.name)
        ],
        site_defaults=[],
        since=min(runs).astimezone(zone).isoformat() if runs else None,
    )

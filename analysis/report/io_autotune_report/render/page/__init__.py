"""The report as one self-contained HTML page a night, and the index of nights.

The Content-Security-Policy allows only the page's own style and script. Names are untrusted:
templates escape them. Scripts only sort, filter and copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from io_autotune_report.render.page import selection, view, words
from io_autotune_report.render.page.environment import template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from io_autotune_report.document import Night, Report

__all__ = ["render", "render_index"]


def render(report: Report, *, index: str | None = None, owner: str | None = None) -> str:
    """The page; ``index`` is the index of nights, relative to it.

    ``owner`` is who all of the studies are of, if it is one user's own page.
    """
    detailed = selection.detailed(report)
    return template("report.html.j2").render(
        report=report,
        index=index,
        owner=owner,
        elsewhere=(
            "All of them are in the files beside this page."
            if owner is None
            else "io-autotune status has all of your studies."
        ),
        findings=selection.findings(report, asking=True),
        notes=selection.findings(report, asking=False),
        savers=selection.savers(report),
        periods=view.periods(report.history),
        changes=report.changes[: selection.CHANGES],
        rows=selection.rows(report),
        detailed=detailed,
        linked={study.study_id for study in detailed},
        groups=view.groups(report),
        verdicts=view.verdicts(report),
        budgets=selection.budgets(report),
        by_id={study.study_id: study for study in report.studies},
    )


def render_index(nights: Sequence[Night]) -> str:
    """The index of nights, the newest first, wherever they stand in ``nights``."""
    newest_first = sorted(nights, key=lambda night: (night.last, night.folder), reverse=True)
    return template("nights.html.j2").render(
        nights=newest_first,
        history=[
            (night.first, night.node_hours.saved)
            for night in reversed(newest_first)
            if night.node_hours.saved is not None and words.is_one_day(night.first, night.last)
        ],
    )

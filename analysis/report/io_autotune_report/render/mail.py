"""A mail's body in 72 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from io_autotune_report.document import (
    Change,
    Finding,
    Gain,
    Group,
    NodeHours,
    Report,
    SiteDefault,
)
from io_autotune_report.number_format import node_amount, node_time, node_unit, per_cent
from io_autotune_report.render.page import view, words

WIDTH = 72
MOST = 12
"""Lines of a list; the page has all."""
APPLICATIONS = 8


def body(report: Report) -> str:
    """The text; the sender adds a subject."""
    return "\n".join(_clean(line) for line in _lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    days = words.span(report.first, report.last).replace(words.NBSP, " ")
    yield from _wrapped(f"io-autotune at {report.site}: {days}")
    yield ""
    yield from _total(report.total)
    yield ""
    yield from _list("Since the night before:", [_change(each) for each in report.changes])
    owners = {study.study_id: study.user for study in report.studies}
    urgent = [each for each in report.findings if each.needs_a_person]
    yield from _list("To look at:", [_finding(each, owners.get(each.study_id)) for each in urgent])
    proposed = [one for one in report.site_defaults if one.values and one.in_force is None]
    yield from _list("A default for everybody:", [_proposal(one) for one in proposed])
    yield from _applications(report)
    yield from _wrapped(
        f"Of the gains claimed, {per_cent(report.false_discovery_rate, 1)} may be false. What may"
        " be claimed, and how: docs/derivation/report-statistics.md. All figures: index.html,"
        " report.json, studies.csv and groups.csv of this night."
    )


def _proposal(one: SiteDefault) -> str:
    where = one.accelerator if one.cluster is None else f"{one.accelerator} on {one.cluster}"
    return (
        f"{where}: {words.settings(one.values or {})}. {one.gain} of {one.studies} studies gain;"
        f" one more application is expected to take {words.change(one.ratio)}."
    )


def _total(total: Group) -> Iterator[str]:
    yield from _wrapped(_saved(total.node_hours))
    yield from _wrapped(f"Chosen parametrizations against the default: {_gain(total.gain)}.")
    studies = _word("study", "studies", total.studies)
    runs = _word("run", "runs", total.runs)
    yield from _wrapped(
        f"{total.studies:,} {studies}, {total.settled:,} of them with a choice;"
        f" {total.runs:,} {runs}."
    )


def _word(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def _saved(hours: NodeHours) -> str:
    if hours.saved is None:
        return f"Not known yet what was saved, of {node_time(hours.used)} used."
    word = "Saved" if hours.saved >= 0 else "Lost"
    interval = ""
    if hours.low is not None and hours.high is not None:
        unit = node_unit(hours.saved)
        ends = [node_amount(end, unit) for end in (hours.low, hours.high)]
        interval = f" (interval {' to '.join(ends)})"
    cost = view.cost(hours)
    took = ""
    if cost:
        did = "cost" if cost > 0 else "saved"
        took = f" Exploring and comparing {did} {node_time(abs(cost))}, which that sum has in it."
    month = (
        f" What is chosen now brings {node_time(hours.a_month)} a month." if hours.a_month else ""
    )
    saved, used = node_time(abs(hours.saved)), node_time(hours.used)
    return f"{word} in all: {saved}{interval}, of {used} used.{took}{month}"


def _gain(gain: Gain) -> str:
    if gain.share is None or gain.low is None or gain.high is None:
        return gain.reason.rstrip(".")
    beginnings = {
        "not_yet": "not told apart yet; estimate ",
        "no_effect": "no difference worth telling; estimate ",
        "unclear": "unclear; estimate ",
    }
    told = words.of_maximised(gain)
    interval = ""
    if told.low is not None and told.high is not None:
        interval = f" ({words.less_or_more(told.low, told.high)})"
    said = f"{beginnings.get(gain.verdict, '')}{words.claim(gain)}{interval}"
    return said.replace(words.NBSP, " ")


def _applications(report: Report) -> Iterator[str]:
    claimed = [group for group in report.applications if group.gain.verdict in ("faster", "slower")]
    claimed.sort(key=lambda group: -abs(group.node_hours.saved or 0.0))
    lines = [f"{group.name}: {_gain(group.gain)}" for group in claimed]
    yield from _list("Applications with a gain or a loss:", lines, APPLICATIONS)


def _list(title: str, lines: list[str], most: int = MOST) -> Iterator[str]:
    if not lines:
        return
    yield title
    for line in lines[:most]:
        yield from _wrapped(line, "- ", "  ")
    if len(lines) > most:
        yield f"- and {len(lines) - most:,} more"
    yield ""


def _change(change: Change) -> str:
    return change.what if change.application is None else f"{change.application}: {change.what}"


def _finding(finding: Finding, owner: str | None) -> str:
    whose = "" if owner is None else f" of {owner}"
    kind = finding.kind.replace("_", " ")
    return f"{finding.application}{whose} ({kind}): {finding.what} {finding.do}"


def _wrapped(text: str, first: str = "", other: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=other, break_on_hyphens=False
    )


def _clean(line: str) -> str:
    """Users choose names: no control characters get out."""
    return "".join(sign if sign.isprintable() else "?" for sign in line)

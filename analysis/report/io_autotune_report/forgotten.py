"""A kept report without the names of users whom the service has forgotten. Pure.

Figures stay as they were told. What is the user's own alone is called as the database calls it now:
their studies, and the groups, findings and changes of these. What others have too keeps its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from io_autotune_report.document import Change, ExploringSpent, Finding, Gain, Group, Report, Study

REPORTED = "objective."
"""What the names of measures begin with that applications report themselves."""


@dataclass(frozen=True)
class Forgotten:
    """How a study of a forgotten user is called."""

    study_id: int
    application: str
    user: str
    full_name: str | None


def names_any(users: Mapping[int, str], forgotten: Mapping[int, Forgotten]) -> bool:
    """Whether a report with these users, by study, calls a study of a forgotten user otherwise."""
    return any(
        study_id in forgotten and user != forgotten[study_id].user
        for study_id, user in users.items()
    )


def without_names(report: Report, forgotten: Mapping[int, Forgotten]) -> Report:
    """The report as it would have been told of the forgotten under their new names."""
    theirs = [study for study in report.studies if study.study_id in forgotten]
    others = [study for study in report.studies if study.study_id not in forgotten]
    now = {study.study_id: forgotten[study.study_id] for study in theirs}
    # Reports that earlier versions kept have no uids: there a name that others have stays.
    own_names = {study.uid: now[study.study_id].user for study in theirs if study.uid is not None}
    users = _own(theirs, others, lambda one: one.user, lambda one: now[one.study_id].user)
    accounts = _own(theirs, others, lambda one: one.account, lambda one: now[one.study_id].user)
    applications = _own(
        theirs, others, lambda one: one.application, lambda one: now[one.study_id].application
    )
    told = {name for study in others for name in _reported(study)}
    own = sorted({name for study in theirs for name in _reported(study)} - told)
    measures = {name: f"forgotten-{place}" for place, name in enumerate(own, 1)}

    def renamed(study: Study) -> Study:
        called = now.get(study.study_id)
        if called is None:
            return study
        return replace(
            study,
            application=called.application,
            user=called.user,
            account=None if study.account is None else accounts.get(study.account, study.account),
            full_name=called.full_name,
            uid=None,
            gain=_gain(study.gain, measures),
            measures=[replace(one, name=_named(one.name, measures)) for one in study.measures],
            # It names a node and the latest job there; the database has it no more.
            inside_job=None,
        )

    def groups(listed: list[Group], names: Mapping[str, str]) -> list[Group]:
        return [
            replace(one, name=names.get(one.name, one.name), gain=_gain(one.gain, measures))
            for one in listed
        ]

    def finding(one: Finding) -> Finding:
        if one.study_id not in now:
            return one
        return replace(
            one,
            application=now[one.study_id].application,
            what=_in_words(one.what, measures),
            do=_in_words(one.do, measures),
        )

    called_now: dict[str, Mapping[str, str]] = {"user": users, "account": accounts}

    def spent(one: ExploringSpent) -> ExploringSpent:
        return replace(one, name=called_now.get(one.budget_of, {}).get(one.name, one.name))

    def change(one: Change) -> Change:
        if one.study_id not in now:
            return one
        return replace(one, application=now[one.study_id].application)

    return replace(
        report,
        total=replace(report.total, gain=_gain(report.total.gain, measures)),
        clusters=groups(report.clusters, {}),
        accelerators=groups(report.accelerators, {}),
        users=[
            replace(one, name=own_names[one.uid], uid=None) if one.uid in own_names else one
            for one in groups(report.users, {} if own_names else users)
        ],
        accounts=groups(report.accounts, accounts),
        applications=groups(report.applications, applications),
        studies=[renamed(study) for study in report.studies],
        findings=[finding(one) for one in report.findings],
        changes=[change(one) for one in report.changes],
        exploring=[spent(one) for one in report.exploring],
    )


def _own(
    theirs: Iterable[Study],
    others: Iterable[Study],
    name: Callable[[Study], str | None],
    new: Callable[[Study], str],
) -> dict[str, str]:
    """New names of what is named in no study of another user."""
    shared = {name(study) for study in others}
    own: dict[str, str] = {}
    for study in theirs:
        was = name(study)
        if was is not None and was not in shared:
            own.setdefault(was, new(study))
    return own


def _reported(study: Study) -> list[str]:
    """The names of measures that the application reports."""
    named = [study.gain.objective.removesuffix(" maximised"), *(one.name for one in study.measures)]
    return [name.removeprefix(REPORTED) for name in named if name.startswith(REPORTED)]


def _named(name: str, measures: Mapping[str, str]) -> str:
    measure = name.removeprefix(REPORTED)
    if measure == name or measure not in measures:
        return name
    return REPORTED + measures[measure]


def _gain(gain: Gain, measures: Mapping[str, str]) -> Gain:
    measure = gain.objective.removesuffix(" maximised")
    more = gain.objective.removeprefix(measure)
    return replace(gain, objective=_named(measure, measures) + more)


def _in_words(text: str, measures: Mapping[str, str]) -> str:
    if not measures:
        return text
    any_of = "|".join(map(re.escape, measures))
    return re.sub(
        rf"(?<![A-Za-z0-9_-])({any_of})(?![A-Za-z0-9_-])", lambda found: measures[found[1]], text
    )

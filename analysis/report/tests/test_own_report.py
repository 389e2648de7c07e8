"""A user's own page: theirs alone, and as the nightly report has it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import date
from typing import TYPE_CHECKING

import pytest
from io_autotune_report.analyse.assembly import told
from io_autotune_report.document import Finding, FindingKind, Group, Report
from io_autotune_report.forgotten import Forgotten, without_names
from io_autotune_report.own_report import FORGOTTEN, own_report, owners
from io_autotune_report.render import page
from io_autotune_report.render.archive import USERS, Archive, Span
from io_autotune_report.render.page import words
from sample_report import report

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def whole() -> Report:
    return report()


def _of(whole: Report, name: str) -> Group:
    (owner,) = (group for group in owners(whole) if group.name == name)
    return owner


def test_nothing_of_others_is_in_a_users_own_report(whole: Report) -> None:
    """Attack (others): A user reads their own page for what it tells of other users.

    Outcome: It has their own studies, findings, changes and budgets, and no sum over others.
    """
    owner = _of(whole, "tnowak")
    own = own_report(whole, owner)
    assert {study.user for study in own.studies} == {"tnowak"}
    assert len(own.studies) == owner.studies == 2
    assert own.total == owner
    text = json.dumps(asdict(own))
    for study in whole.studies:
        if study.user != "tnowak":
            assert json.dumps(study.application) not in text
            assert json.dumps(study.user) not in text
    for left_out in (own.history, own.site_defaults, own.not_counted, own.users):
        assert left_out == []
    assert [change.application for change in own.changes] == ["gromacs-checkpoint"]
    mine = own_report(whole, _of(whole, "mgarcia"))
    assert [(one.budget_of, one.name) for one in mine.exploring] == [("user", "mgarcia")]


def test_a_users_own_page_begins_with_their_own_runs(whole: Report) -> None:
    owner = _of(whole, "okafor")
    own = own_report(whole, owner)
    first = min(point.at for study in own.studies for point in study.points)
    assert own.since is not None
    assert whole.since is not None
    assert own.since[:10] == first[:10]
    assert whole.since[:10] < first[:10]


def test_nobody_has_a_page_who_was_forgotten_before(whole: Report) -> None:
    known = owners(whole)
    gone = [replace(group, uid=FORGOTTEN + place) for place, group in enumerate(whole.users)]
    assert owners(replace(whole, users=gone)) == []
    assert len(known) == len(whole.users)


def test_who_was_forgotten_leaves_no_name_that_another_has_too(whole: Report) -> None:
    first, second = whole.studies[:2]
    named = [replace(first, user="same", uid=1), replace(second, user="same", uid=2)]
    groups = [replace(_of(whole, "mgarcia"), name="same", uid=uid) for uid in (1, 2)]
    two = replace(whole, studies=named, users=groups)
    after = without_names(two, {first.study_id: Forgotten(first.study_id, "left", "left-1", None)})
    assert [(group.name, group.uid) for group in after.users] == [("left-1", None), ("same", 2)]


def test_of_two_users_with_one_name_each_has_their_own(whole: Report) -> None:
    first, second = whole.studies[:2]
    named = [replace(first, user="same", uid=1), replace(second, user="same", uid=2)]
    groups = [replace(_of(whole, "mgarcia"), name="same", uid=uid) for uid in (1, 2)]
    spent = [replace(whole.exploring[3], name="same")]
    two = replace(whole, studies=named, users=groups, exploring=spent)
    for group, study in zip(groups, named, strict=True):
        own = own_report(two, group)
        assert own.studies == [study]
        assert own.exploring == [], "it is not known whose budget that is"


def test_the_page_is_the_reports_and_points_to_nothing_that_a_user_has_not(whole: Report) -> None:
    owner = _of(whole, "tnowak")
    own = page.render(own_report(whole, owner), owner=owner.name)
    nightly = page.render(whole, index="../index.html")
    assert "<h1>I/O tuning of" in own
    for elsewhere in ("beside this page", "../index.html", "report.json", 'id="users"'):
        assert elsewhere in nightly
        assert elsewhere not in own
    (study, *_) = own_report(whole, owner).studies
    begins = f'<details class="study" id="study-{study.study_id}">'
    details = nightly[nightly.index(begins) :]
    details = details[: details.index('<details class="study"', 1)]
    assert details.rstrip() in own, "each of their studies is told as the report tells it"
    assert words.gain_sentence(study.gain) in own.replace("&#39;", "'")


def test_the_latest_night_has_a_page_for_each_user_and_earlier_ones_none(
    whole: Report, tmp_path: Path
) -> None:
    archive = Archive(tmp_path)
    for day in (19, 20):
        one = date(2026, 11, day)
        archive.write(whole, Span(one, one))
    expected = sorted(f"{owner.uid}.html" for owner in owners(whole))
    assert sorted(path.name for path in (tmp_path / "latest" / USERS).iterdir()) == expected
    assert not (tmp_path / "2026-11-19" / USERS).exists()
    # Neither a range nor a night that is made again has what only the latest night has.
    archive.write(whole, Span(date(2026, 11, 1), date(2026, 11, 20)))
    archive.write(whole, Span(date(2026, 11, 18), date(2026, 11, 18)))
    with_pages = sorted(path.parent.name for path in tmp_path.glob(f"2026*/{USERS}"))
    assert with_pages == ["2026-11-20"]


def test_who_was_forgotten_has_no_page_any_more(whole: Report, tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    one = date(2026, 11, 20)
    archive.write(whole, Span(one, one))
    owner = _of(whole, "mgarcia")
    theirs = [study.study_id for study in whole.studies if study.uid == owner.uid]
    assert archive.rename({id_: Forgotten(id_, "left", "left-1", None) for id_ in theirs}) == []
    left = {path.name for path in (tmp_path / "latest" / USERS).iterdir()}
    assert f"{owner.uid}.html" not in left
    assert len(left) == len(owners(whole)) - 1
    kept = (tmp_path / "latest" / "report.json").read_text("utf-8")
    assert f'"uid":{owner.uid}' not in kept


def test_no_study_has_two_cards_that_exclude_each_other() -> None:
    def of(kind: FindingKind) -> Finding:
        return Finding(kind, 7, "ocean", "It is so.", "Do it.")

    both = [of("regression"), of("drift"), of("waste")]
    assert [each.kind for each in told(both, loses=True)] == ["regression", "drift"]
    assert [each.kind for each in told(both, loses=False)] == ["drift", "waste"]

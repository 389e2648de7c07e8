"""The document of a night.

A study's evaluation is kept until its judgements or the program change. All else is made anew.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache, partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from io_autotune_report.analyse import estimators
from io_autotune_report.analyse.changes import changes
from io_autotune_report.analyse.estimators.gain import FALSE_DISCOVERY_RATE
from io_autotune_report.analyse.evaluation import Assessed, assessed, evaluate
from io_autotune_report.document import (
    SCHEMA,
    ExploringSpent,
    Finding,
    FindingKind,
    Gain,
    Group,
    NotCounted,
    Report,
    SiteDefault,
    Study,
)
from io_autotune_report.frames import RUNS
from io_autotune_report.load import State, assessment, database, measures, online, tables
from io_autotune_report.load.database import Standing, StudyRow
from io_autotune_report.load.site_settings import site_default
from io_autotune_report.previous_report import Earlier

CHUNK = 2_000
"""Judgements that a process evaluates, and keeps, in one go."""
WORTH = 10
"""A process more pays for its start with so many chunks."""

Progress = Callable[[int, int], None]
"""Takes how much is done, of how much."""
Results = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Asked:
    """A study to be evaluated."""

    study: StudyRow
    account: str | None


@dataclass(frozen=True)
class Occasion:
    """What a report is made of besides the history."""

    site: str
    first: datetime
    last: datetime
    """Exclusive."""
    night: date
    """The last day, by the site's clock: its name in the history."""
    before: Earlier | None
    """The night before, if it is kept."""
    generated_at: datetime


@dataclass(frozen=True)
class Sums:
    """What the database adds up for the range."""

    not_counted: list[NotCounted]
    exploring: list[ExploringSpent]
    site_defaults: list[SiteDefault]


def assemble(
    url: str,
    state: State,
    occasion: Occasion,
    processes: int = 0,
    progress: Progress = lambda *_: None,
) -> Report:
    """Make the document of one snapshot; ``processes`` evaluate, 0: one a processor."""
    with database.connect(url) as connection:
        rows = {row.study_id: row for row in database.studies(connection)}
        accounts = database.accounts(connection)
        assessments = database.assessments(connection)
        standings = database.standings(connection, occasion.last)
        not_counted = database.not_counted(connection, occasion.first, occasion.last)
        exploring = database.exploring_spent(
            connection, occasion.first.date(), occasion.last.date()
        )
        settings = [site_default(row) for row in database.site_settings(connection)]
        asked = {
            each.study_id: Asked(rows[each.study_id], accounts.get(each.study_id))
            for each in standings
        }
        grounds = {
            each.study_id: f"{_release()} {each} {asked[each.study_id]}" for each in standings
        }
        known = state.grounds()
        stale = [each for each in standings if known.get(each.study_id) != grounds[each.study_id]]
        chunks = [[asked[each.study_id] for each in chunk] for chunk in _chunks(stale, CHUNK)]
        sizes = {each.study_id: each.judgements for each in stale}
        done, total = 0, sum(sizes.values())
        work = partial(_evaluate, url, database.snapshot(connection), occasion.last)
        for results in _evaluated(work, chunks, processes or len(os.sched_getaffinity(0))):
            state.keep((study_id, grounds[study_id], result) for study_id, result in results)
            done += sum(sizes[study_id] for study_id, _ in results)
            progress(done, total)
    # The directory is the program's own: nobody else writes what is read here.
    studies = [
        assessed(
            pickle.loads(state.result(each.study_id)),
            assessment.decode(assessments.get(each.study_id)),
            occasion.last,
        )
        for each in standings
    ]
    first = min((each.first for each in standings), default=None)
    return _document(
        occasion,
        first,
        studies,
        Sums(not_counted, exploring, [one for one in settings if one is not None]),
    )


def _chunks(standings: Iterable[Standing], size: int) -> Iterator[list[Standing]]:
    chunk: list[Standing] = []
    for standing in standings:
        chunk.append(standing)
        if sum(each.judgements for each in chunk) >= size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


@cache
def _release() -> str:
    """A hash of the program's own text."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _evaluated(
    work: Callable[[list[Asked]], Results], chunks: list[list[Asked]], processes: int
) -> Iterator[Results]:
    processes = min(processes, len(chunks) // WORTH)
    if processes <= 1:
        yield from map(work, chunks)
        return
    # Forked, a process would share what this one has open.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, chunks)


def _evaluate(url: str, snapshot: str, before: datetime, chunk: list[Asked]) -> Results:
    with database.connect(url, snapshot) as connection:
        studies = [each.study.study_id for each in chunk]
        frame, epochs = tables.read(connection, studies, before)
        inside = online.read(connection, studies, before)
        told = measures.read(connection, studies, before)
    columns = {name: _column(frame[name]) for name in RUNS}
    edges = np.searchsorted(columns["study_id"], [*studies, 2**62])
    results = []
    for each, (start, stop) in zip(chunk, pairwise(edges), strict=True):
        runs = {name: column[start:stop] for name, column in columns.items()}
        study_id = each.study.study_id
        evaluation = evaluate(each.study, each.account, epochs[study_id], runs, told)
        study = replace(evaluation.study, inside_job=inside.get(study_id))
        results.append((study_id, pickle.dumps(replace(evaluation, study=study))))
    return results


def _column(column: pd.Series[Any]) -> NDArray[Any]:
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return np.asarray(column, dtype="datetime64[ns]")
    return column.to_numpy(dtype=None if column.dtype.kind in "ifb" else object)


def _document(
    occasion: Occasion,
    first_judged: datetime | None,
    evaluations: list[Assessed],
    sums: Sums,
) -> Report:
    rate = FALSE_DISCOVERY_RATE
    gains = estimators.false_discovery([each.study.gain for each in evaluations], rate)
    studies = [
        replace(each.study, gain=gain) for each, gain in zip(evaluations, gains, strict=True)
    ]
    total = _group("", evaluations, gains)
    saved = total.node_hours.saved
    history = [] if occasion.before is None else occasion.before.history
    if saved is not None:
        history = [*history, (occasion.night.isoformat(), saved)]

    def groups(name: Callable[[Study], str | None]) -> list[Group]:
        return _groups(evaluations, gains, name)

    names = {study.uid: study.user for study in studies}
    users = [
        replace(one, name=names[int(one.name)], uid=int(one.name))
        # Two users may have had one name, the second after the first had left.
        for one in groups(lambda study: str(study.uid))
    ]
    accounts = groups(lambda study: study.account)
    of_budgets = {
        "user": users,
        "account": accounts,
        "partition": groups(lambda study: study.context.get("partition")),
        "site": [total],
    }
    return Report(
        schema=SCHEMA,
        site=occasion.site,
        generated_at=_instant(occasion.generated_at),
        first=occasion.first.isoformat(timespec="seconds"),
        last=occasion.last.isoformat(timespec="seconds"),
        look=_looks(first_judged, occasion.last),
        false_discovery_rate=rate,
        total=replace(total, name=occasion.site),
        clusters=groups(lambda study: study.cluster),
        accelerators=groups(lambda study: study.accelerator),
        users=users,
        accounts=accounts,
        applications=groups(lambda study: study.application),
        studies=studies,
        findings=_findings(evaluations, gains),
        changes=changes(total, studies, occasion.before),
        history=history,
        not_counted=sums.not_counted,
        exploring=[
            replace(each, saved=_saved(of_budgets[each.budget_of], each.name))
            for each in sums.exploring
        ],
        site_defaults=sums.site_defaults,
        since=(
            None
            if first_judged is None
            else first_judged.astimezone(occasion.last.tzinfo).isoformat(timespec="seconds")
        ),
        before=None if occasion.before is None else occasion.before.night.folder,
    )


def _saved(groups: list[Group], name: str) -> float | None:
    """Node-hours that tuning has saved the group of this name."""
    return next((each.node_hours.saved for each in groups if each.name == name), None)


def _looks(first_judged: datetime | None, last: datetime) -> int:
    """One each night since the first verdict, made or not."""
    if first_judged is None:
        return 1
    return max(1, (last - first_judged).days + 1)


def _groups(
    evaluations: list[Assessed], gains: list[Gain], name: Callable[[Study], str | None]
) -> list[Group]:
    """What saved most first."""
    members: dict[str, list[int]] = {}
    for place, each in enumerate(evaluations):
        named = name(each.study)
        if named is not None:
            members.setdefault(named, []).append(place)
    groups = [
        _group(named, [evaluations[place] for place in places], [gains[place] for place in places])
        for named, places in members.items()
    ]
    return sorted(groups, key=lambda group: (-(group.node_hours.saved or 0.0), group.name))


def _group(name: str, evaluations: list[Assessed], gains: list[Gain]) -> Group:
    gain, hours = estimators.group([each.part for each in evaluations])
    if len(evaluations) == 1:
        # It says what its study says, once that was held against all others.
        gain = gains[0]
    return Group(
        name=name,
        studies=len(evaluations),
        settled=sum(each.settled for each in evaluations),
        runs=sum(each.study.runs for each in evaluations),
        gain=gain,
        node_hours=hours,
    )


def _findings(evaluations: list[Assessed], gains: list[Gain]) -> list[Finding]:
    """By urgency, then by node-hours used."""
    order = get_args(FindingKind)
    listed = [
        (order.index(finding.kind), -each.study.node_hours.used, place, finding)
        for place, (each, gain) in enumerate(zip(evaluations, gains, strict=True))
        # A loss that does not hold against all studies' looks is not shown as one either.
        for finding in told(each.findings, loses=gain.verdict == each.study.gain.verdict)
    ]
    return [finding for *_, finding in sorted(listed, key=lambda each: each[:3])]


def told(findings: list[Finding], *, loses: bool) -> list[Finding]:
    """The findings of one study that are shown, none of which asks for the contrary of another.

    Who should search anew, because what was chosen is slower, cannot also end the search because
    of what it has cost.
    """
    shown = [each for each in findings if each.kind != "regression" or loses]
    if any(each.kind == "regression" for each in shown):
        return [each for each in shown if each.kind != "waste"]
    return shown


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

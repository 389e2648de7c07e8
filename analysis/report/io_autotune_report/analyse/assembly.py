"""The document of a night: every study by what is known of it, anew only where there is news.

What a study's runs say depends on its own judgements and on nothing else, so that it is kept until
there are more of them (or another release evaluates them). What the service has decided of a study
(its gain, its findings) is rendered as it was read last. What is said of many studies together
(sums, the rate of false discoveries, changes) is made anew every night, which is cheap.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from io_autotune_report.analyse import estimators
from io_autotune_report.analyse.changes import changes
from io_autotune_report.analyse.estimators.gain import FALSE_DISCOVERY_RATE
from io_autotune_report.analyse.evaluation import Assessed, Evaluation, assessed, evaluate
from io_autotune_report.document import SCHEMA, Finding, Gain, Group, Report, Study
from io_autotune_report.earlier import Earlier
from io_autotune_report.load.mirror import Mirror, Progress, Standing

URGENCY = (
    "regression",
    "quarantine",
    "drift",
    "mixed",
    "ineffective",
    "waste",
    "already_best",
    "quiet",
)
"""Kinds of findings, those first that cost most while nobody looks."""
CHUNK = 2_000
"""Judgements whose studies are evaluated by a process in one go; kept as soon as it is through."""


@dataclass(frozen=True)
class Occasion:
    """What a report is made of besides the history."""

    site: str
    first: datetime
    last: datetime
    """Exclusive."""
    night: date
    """The last day in it, by the site's clock: what it is called in the history."""
    before: Earlier | None
    """The night before, if it is kept."""
    generated_at: datetime


def assemble(
    mirror: Mirror,
    state: Path,
    occasion: Occasion,
    processes: int = 0,
    progress: Progress = lambda *_: None,
) -> Report:
    """Make the document; ``state`` is the mirror's directory.

    ``processes`` evaluate studies, 0: as many as there are processors.
    """
    standings = mirror.standings(occasion.last)
    rows = {row[0]: row for row in mirror.studies()}
    grounds = {each.study_id: _grounds(each, rows[each.study_id]) for each in standings}
    stale = [
        each for each in standings if not mirror.has_result(each.study_id, grounds[each.study_id])
    ]
    done, total = 0, sum(each.judgements for each in stale)
    chunks = [
        ([rows[each.study_id] for each in chunk], occasion.last) for chunk in _chunks(stale, CHUNK)
    ]
    sizes = {each.study_id: each.judgements for each in stale}
    for results in _evaluated(state, chunks, processes or len(os.sched_getaffinity(0))):
        mirror.keep((study_id, grounds[study_id], result) for study_id, result in results)
        done += sum(sizes[study_id] for study_id, _ in results)
        progress(done, total)
    assessments = mirror.assessments()
    studies = [
        assessed(
            _kept(mirror.result(each.study_id, grounds[each.study_id])),
            assessments[each.study_id],
            occasion.last,
        )
        for each in standings
    ]
    return _document(occasion, mirror.first_judged(), studies)


def _chunks(standings: Iterable[Standing], size: int) -> Iterator[list[Standing]]:
    chunk: list[Standing] = []
    for standing in standings:
        chunk.append(standing)
        if sum(each.judgements for each in chunk) >= size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _grounds(standing: Standing, row: tuple[Any, ...]) -> str:
    """What an evaluation was made from, and by what."""
    return f"{_release()} {standing.judgements} {standing.grounds} {row}"


@cache
def _release() -> str:
    """What tells this program's evaluations from another one's: its own text."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


Chunk = tuple[list[tuple[Any, ...]], datetime]
Results = list[tuple[int, bytes]]


def _evaluated(state: Path, chunks: list[Chunk], processes: int) -> Iterator[Results]:
    """Each chunk's results, in whatever order they are through."""
    if processes == 1 or len(chunks) <= 1:
        _begin(state)
        yield from map(_evaluate, chunks)
        return
    processes = min(processes, len(chunks))
    # Forked, a process would share what this one has open.
    with ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_begin, initargs=(state,)
    ) as pool:
        yield from pool.map(_evaluate, chunks)


_mirror: Mirror | None = None
"""In a process that evaluates, what it reads from."""


def _begin(state: Path) -> None:
    global _mirror  # noqa: PLW0603 - a pool's initializer has no other way
    _mirror = Mirror.reader(state)


def _evaluate(chunk: Chunk) -> Results:
    rows, before = chunk
    if _mirror is None:
        raise RuntimeError("a process evaluates before it has begun")
    return [(row[0], pickle.dumps(evaluate(_mirror, row, before))) for row in rows]


def _kept(result: bytes | None) -> Evaluation:
    """The directory is the program's own: nobody else writes what is read here."""
    if result is None:
        raise RuntimeError("an evaluation is gone that was kept a moment ago")
    return pickle.loads(result)


def _document(
    occasion: Occasion, first_judged: datetime | None, evaluations: list[Assessed]
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

    return Report(
        schema=SCHEMA,
        site=occasion.site,
        generated_at=_instant(occasion.generated_at),
        first=occasion.first.isoformat(timespec="seconds"),
        last=occasion.last.isoformat(timespec="seconds"),
        look=_looks(first_judged, occasion.last),
        false_discovery_rate=rate,
        total=replace(total, name=occasion.site),
        accelerators=groups(lambda study: study.accelerator),
        users=groups(lambda study: study.user),
        accounts=groups(lambda study: study.account),
        applications=groups(lambda study: study.application),
        studies=studies,
        findings=_findings(evaluations, gains),
        changes=changes(total, studies, occasion.before),
        history=history,
    )


def _looks(first_judged: datetime | None, last: datetime) -> int:
    """One for each night since there was anything to look at, made or not."""
    if first_judged is None:
        return 1
    return max(1, (last - first_judged).days + 1)


def _groups(
    evaluations: list[Assessed], gains: list[Gain], name: Callable[[Study], str | None]
) -> list[Group]:
    """By name, what was saved most first."""
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
    """The most urgent kind first, then where most node-hours are used."""
    listed = [
        (URGENCY.index(finding.kind), -each.study.node_hours.used, place, finding)
        for place, (each, gain) in enumerate(zip(evaluations, gains, strict=True))
        for finding in each.findings
        # A loss that does not hold against all studies' looks is not shown as one either.
        if finding.kind != "regression" or gain.verdict == each.study.gain.verdict
    ]
    return [finding for *_, finding in sorted(listed, key=lambda each: each[:3])]


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

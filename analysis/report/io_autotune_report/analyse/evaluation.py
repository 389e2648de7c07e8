"""One study's evaluation: its runs, which is long work, joined with the service's assessment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from io_autotune_report.analyse import estimators, life, understanding
from io_autotune_report.analyse.typical_measures import measured
from io_autotune_report.document import Finding, Importance, NodeHours, Parameter, Study
from io_autotune_report.frames import instants, words
from io_autotune_report.load.assessment import UNKNOWN, Assessment
from io_autotune_report.load.database import StudyRow
from io_autotune_report.load.measures import Measures
from io_autotune_report.load.tables import Epoch


@dataclass(frozen=True)
class Evaluation:
    """What a study's runs say."""

    study: Study
    """But for its gain, its node-hours and what the service estimates."""
    spent: estimators.Spent
    explored: understanding.Explored | None
    settled: bool
    last_run: datetime


@dataclass(frozen=True)
class Assessed:
    """A study of the night, and its part in sums."""

    study: Study
    part: estimators.Part
    findings: list[Finding]
    settled: bool


MONTH = timedelta(days=30)
FAILED = ("failure", "out_of_memory")
"""Effects of runs that speak against their parametrization."""
_NO_HOURS = NodeHours(0.0, None, None, None, None, None, None, None)


def assessed(evaluation: Evaluation, assessment: Assessment, now: datetime) -> Assessed:
    """Joins runs and assessment at an instant."""
    if now - evaluation.last_run > MONTH:
        # It saves nothing a month.
        effects = tuple(msgspec.structs.replace(each, a_month=None) for each in assessment.effects)
        assessment = replace(assessment, effects=effects)
    part = estimators.Part(evaluation.spent, assessment)
    study = replace(
        evaluation.study,
        gain=assessment.gain,
        cleaned=assessment.cleaned,
        node_hours=estimators.node_hours_of([part]),
    )
    findings = [
        *understanding.findings(study, assessment.findings, evaluation.explored),
        *understanding.quiet(study, evaluation.last_run, now),
    ]
    return Assessed(study, part, findings, evaluation.settled)


def evaluate(
    study: StudyRow,
    account: str | None,
    epochs: Sequence[Epoch],
    runs: Mapping[str, NDArray[Any]],
    measures: Measures,
) -> Evaluation:
    """Evaluate a study by its runs, one at least."""
    number = runs["epoch"].max()
    epoch = next(each for each in epochs if each.epoch == number)
    current = runs["epoch"] == number
    here = {name: column[current] for name, column in runs.items()}
    phases, effects = words(here, "phase"), words(runs, "effect")
    chosen = life.choice(runs, epoch.epoch)
    known = understanding.gather(here)
    importance = understanding.importance(here, known)
    return Evaluation(
        Study(
            study_id=study.study_id,
            application=study.application,
            user=study.user,
            account=account,
            accelerator=study.accelerator,
            context=study.context,
            epoch=epoch.epoch,
            phase="pinned" if study.pinned else str(phases[-1]),
            runs=effects.size,
            counted=int((effects == "sample").sum()),
            failed=int(np.isin(effects, FAILED).sum()),
            gain=UNKNOWN,
            node_hours=_NO_HOURS,
            parameters=_parameters(epoch, chosen, importance),
            chosen_since=None if chosen is None else chosen.since,
            convergence=life.convergence(runs, epoch.epoch),
            points=life.points(runs, chosen),
            importance=importance,
            surfaces=understanding.surfaces(here, importance, known),
            noise=understanding.noise(here),
            cluster=study.cluster,
            full_name=study.full_name,
            uid=study.owner_uid,
            measures=measured(here, chosen, measures),
        ),
        estimators.spent(runs),
        understanding.explored(here),
        settled=bool((phases == "settled").any()),
        last_run=instants(runs).max().item().replace(tzinfo=UTC),
    )


def _parameters(
    epoch: Epoch, chosen: life.Choice | None, importance: Importance
) -> list[Parameter]:
    values = {} if chosen is None else chosen.values
    shares: dict[str, float] = {}
    # One-hot least squares takes each parameter alone, so that two that were changed together both
    # have the share of one: it stands with its source among the statistics.
    for each in importance.anova or importance.forest:
        if len(each.parameters) == 1:
            shares[each.parameters[0]] = each.share
    return [
        Parameter(
            name=each["name"],
            default=epoch.default.get(each["name"]),
            chosen=values.get(each["name"]),
            importance=shares.get(each["name"]),
        )
        for each in epoch.parameters
    ]

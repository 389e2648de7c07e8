"""One study's evaluation: what its runs say, and then what the service says of it.

The first is long work, and kept until there are more verdicts. The second is rendered anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pandas as pd

from io_autotune_report.analyse import estimators, life, understanding
from io_autotune_report.document import Finding, Importance, NodeHours, Parameter, Study
from io_autotune_report.load import tables
from io_autotune_report.load.assessment import UNKNOWN, Assessment
from io_autotune_report.load.mirror import Epoch, Mirror


@dataclass(frozen=True)
class Evaluation:
    """What a study's runs say."""

    study: Study
    """But for its gain and its node-hours."""
    spent: estimators.Spent
    explored: understanding.Explored | None
    settled: bool
    last_run: pd.Timestamp


@dataclass(frozen=True)
class Assessed:
    """A study as the night has it, and what sums over studies need of it."""

    study: Study
    part: estimators.Part
    findings: list[Finding]
    settled: bool


MONTH = timedelta(days=30)
FAILED = ("failure", "out_of_memory")
"""Effects of runs that speak against their parametrization."""
_NO_HOURS = NodeHours(0.0, None, None, None, None, None, None, None)


def assessed(evaluation: Evaluation, assessment: Assessment, now: datetime) -> Assessed:
    """Joins what the runs say with what the service says, at an instant."""
    if now - evaluation.last_run > MONTH:
        # It saves nothing a month.
        effects = tuple(msgspec.structs.replace(each, a_month=None) for each in assessment.effects)
        assessment = replace(assessment, effects=effects)
    part = estimators.Part(evaluation.spent, assessment)
    study = replace(
        evaluation.study,
        gain=assessment.gain,
        node_hours=estimators.node_hours_of([part]),
    )
    findings = [
        *understanding.findings(study, assessment.findings, evaluation.explored),
        *understanding.quiet(study, evaluation.last_run, pd.Timestamp(now)),
    ]
    return Assessed(study, part, findings, evaluation.settled)


def evaluate(mirror: Mirror, row: Sequence[Any], before: datetime) -> Evaluation:
    """Evaluate a study by the judgements made before an instant, of which there is one at least.

    ``row`` is the study's of ``frames.STUDIES``.
    """
    study_id = row[0]
    runs = tables.runs(mirror.judgements(study_id, before))
    epochs = [epoch for epoch in mirror.epochs(study_id) if epoch.epoch <= runs["epoch"].max()]
    pin = mirror.pin(study_id)
    return _evaluated(row, epochs, runs, pin)


def _evaluated(
    row: Sequence[Any], epochs: list[Epoch], runs: pd.DataFrame, pin: str | None
) -> Evaluation:
    study_id, application, _, user, account, accelerator, context, _ = row
    epoch = epochs[-1]
    here = runs[runs["epoch"] == epoch.epoch]
    chosen = life.choice(runs, epoch.epoch)
    counted = int((runs["effect"] == "sample").sum())
    phase = "pinned" if pin is not None else str(here["phase"].iloc[-1])
    importance = understanding.importance(here)
    study = Study(
        study_id=study_id,
        application=application,
        user=user,
        account=account,
        accelerator=accelerator,
        context=context,
        epoch=epoch.epoch,
        phase=phase,
        runs=len(runs),
        counted=counted,
        failed=int(runs["effect"].isin(FAILED).sum()),
        gain=UNKNOWN,
        node_hours=_NO_HOURS,
        parameters=_parameters(epoch, chosen, importance),
        chosen_since=None if chosen is None else chosen.since,
        convergence=life.convergence(runs, epoch.epoch),
        points=life.points(runs, chosen),
        importance=importance,
        surfaces=understanding.surfaces(here, importance),
        noise=understanding.noise(here),
    )
    settled = bool((here["phase"] == "settled").any())
    return Evaluation(
        study,
        estimators.spent(runs),
        understanding.explored(here),
        settled,
        runs["started_at"].max(),
    )


def _parameters(
    epoch: Epoch, chosen: life.Choice | None, importance: Importance
) -> list[Parameter]:
    values = {} if chosen is None else chosen.values
    shares: dict[str, float] = {}
    for way in (importance.r2, importance.anova, importance.forest):
        for each in way:
            if len(each.parameters) == 1:
                name = each.parameters[0]
                shares[name] = max(each.share, shares.get(name, 0.0))
    return [
        Parameter(
            name=each["name"],
            default=epoch.default.get(each["name"]),
            chosen=values.get(each["name"]),
            importance=shares.get(each["name"]),
        )
        for each in epoch.parameters
    ]

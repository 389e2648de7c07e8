"""``studies.csv`` and ``groups.csv``: one row each, the same numbers as the page's."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from io_autotune_analysis.document import Gain, Group, NodeHours, Report, Study
from io_autotune_analysis.files.decoding import dumps

Cell = str | int | float | None

GAIN = (
    "verdict",
    "gain",
    "gain_low",
    "gain_high",
    "level",
    "tuned_runs",
    "control_runs",
    "detectable",
    "runs_needed",
)
NODE_HOURS = (
    "node_hours_used",
    "node_hours_saved",
    "node_hours_low",
    "node_hours_high",
    "node_hours_by_chosen",
    "node_hours_exploring",
    "node_hours_controls",
    "node_hours_a_month",
)
STUDIES = (
    "study_id",
    "application",
    "user",
    "account",
    "accelerator",
    "context",
    "epoch",
    "phase",
    "runs",
    "counted",
    "failed",
    *GAIN,
    *NODE_HOURS,
    "chosen",
    "chosen_since",
    "noise",
)
"""Columns; a cell is empty where nothing is known. ``chosen`` and ``context`` are JSON."""
GROUPS = ("kind", "name", "studies", "settled", "runs", *GAIN, *NODE_HOURS)
"""Columns; ``kind`` is site, accelerator, user, account or application."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take a cell for a formula by: names are their users' to choose."""


@dataclass(frozen=True)
class Kept:
    """What a night's ``studies.csv`` says of a study: enough to tell what has changed since."""

    study_id: int
    application: str
    epoch: int
    phase: str
    runs: int
    verdict: str
    gain: float | None
    chosen: str


def write(report: Report, directory: Path) -> None:
    """Write both files."""
    _write(directory / "studies.csv", STUDIES, map(_study, report.studies))
    groups = [
        ("site", [report.total]),
        ("accelerator", report.accelerators),
        ("user", report.users),
        ("account", report.accounts),
        ("application", report.applications),
    ]
    rows = (_group(kind, group) for kind, listed in groups for group in listed)
    _write(directory / "groups.csv", GROUPS, rows)


def read(path: Path) -> dict[int, Kept]:
    """What a ``studies.csv`` says, by study.

    Raises:
        OSError, KeyError, ValueError: it cannot be read.
    """
    with path.open(newline="", encoding="utf-8") as lines:
        return {
            int(row["study_id"]): Kept(
                study_id=int(row["study_id"]),
                application=row["application"],
                epoch=int(row["epoch"]),
                phase=row["phase"],
                runs=int(row["runs"]),
                verdict=row["verdict"],
                gain=float(row["gain"]) if row["gain"] else None,
                chosen=row["chosen"],
            )
            for row in csv.DictReader(lines)
        }


def kept(study: Study) -> Kept:
    """What :func:`read` would say of it."""
    return Kept(
        study_id=study.study_id,
        application=_text(study.application),
        epoch=study.epoch,
        phase=study.phase,
        runs=study.runs,
        verdict=study.gain.verdict,
        gain=study.gain.share,
        chosen=_chosen(study),
    )


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _study(study: Study) -> list[Cell]:
    return [
        study.study_id,
        _text(study.application),
        _text(study.user),
        _text(study.account or ""),
        study.accelerator,
        dumps(study.context),
        study.epoch,
        study.phase,
        study.runs,
        study.counted,
        study.failed,
        *_gain(study.gain),
        *_node_hours(study.node_hours),
        _chosen(study),
        study.chosen_since,
        study.noise.cv,
    ]


def _group(kind: str, group: Group) -> list[Cell]:
    return [
        kind,
        _text(group.name),
        group.studies,
        group.settled,
        group.runs,
        *_gain(group.gain),
        *_node_hours(group.node_hours),
    ]


def _gain(gain: Gain) -> list[Cell]:
    return [
        gain.verdict,
        gain.share,
        gain.low,
        gain.high,
        gain.level,
        gain.tuned_runs,
        gain.control_runs,
        gain.detectable,
        gain.runs_needed,
    ]


def _node_hours(hours: NodeHours) -> list[Cell]:
    return [
        hours.used,
        hours.saved,
        hours.low,
        hours.high,
        hours.by_chosen,
        hours.exploring,
        hours.controls,
        hours.a_month,
    ]


def _chosen(study: Study) -> str:
    """The chosen parametrization; empty where there is none."""
    chosen = {each.name: each.chosen for each in study.parameters if each.chosen is not None}
    return dumps(chosen) if chosen else ""


def _text(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text

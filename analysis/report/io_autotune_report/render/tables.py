"""``studies.csv`` and ``groups.csv``."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from io_autotune_report.document import Gain, Group, NodeHours, Report, Study
from io_autotune_report.json_text import dumps
from io_autotune_report.previous_report import Kept, chosen, text

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
NODE_HOURS = tuple(f"node_hours_{field.name}" for field in fields(NodeHours))
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
    "cluster",
    "full_name",
)
"""Empty where unknown; ``chosen`` and ``context`` are JSON."""
GROUPS = ("kind", "name", "studies", "settled", "runs", *GAIN, *NODE_HOURS)
"""``kind`` is site, cluster, accelerator, user, account or application."""


def write(report: Report, directory: Path) -> None:
    """Write both files."""
    _write(directory / "studies.csv", STUDIES, map(_study, report.studies))
    groups = [
        ("site", [report.total]),
        ("cluster", report.clusters),
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


def users(path: Path) -> dict[int, str]:
    """Whose the studies of a ``studies.csv`` are.

    Raises:
        OSError, KeyError, ValueError: it cannot be read.
    """
    with path.open(newline="", encoding="utf-8") as lines:
        return {
            int(row["study_id"]): row["user"].removeprefix("'") for row in csv.DictReader(lines)
        }


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _study(study: Study) -> list[Cell]:
    return [
        study.study_id,
        text(study.application),
        text(study.user),
        text(study.account or ""),
        study.accelerator,
        dumps(study.context),
        study.epoch,
        study.phase,
        study.runs,
        study.counted,
        study.failed,
        *_gain(study.gain),
        *astuple(study.node_hours),
        chosen(study),
        study.chosen_since,
        study.noise.cv,
        text(study.cluster or ""),
        text(study.full_name or ""),
    ]


def _group(kind: str, group: Group) -> list[Cell]:
    return [
        kind,
        text(group.name),
        group.studies,
        group.settled,
        group.runs,
        *_gain(group.gain),
        *astuple(group.node_hours),
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

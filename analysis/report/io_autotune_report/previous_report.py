"""What an earlier night's files say, for what has changed since."""

from __future__ import annotations

from dataclasses import dataclass

from io_autotune_report.document import Night, Study
from io_autotune_report.json_text import dumps

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets take such cells for formulas, and users choose names."""


@dataclass(frozen=True)
class Kept:
    """A row of an earlier ``studies.csv``."""

    study_id: int
    application: str
    epoch: int
    phase: str
    runs: int
    verdict: str
    gain: float | None
    chosen: str


@dataclass(frozen=True)
class Earlier:
    """What an earlier night's files say."""

    night: Night
    history: list[tuple[str, float]]
    studies: dict[int, Kept]


def kept(study: Study) -> Kept:
    """What :func:`render.tables.read` would say of it."""
    return Kept(
        study_id=study.study_id,
        application=text(study.application),
        epoch=study.epoch,
        phase=study.phase,
        runs=study.runs,
        verdict=study.gain.verdict,
        gain=study.gain.share,
        chosen=chosen(study),
    )


def chosen(study: Study) -> str:
    """The chosen parametrization; empty where there is none."""
    chosen = {each.name: each.chosen for each in study.parameters if each.chosen is not None}
    return dumps(chosen) if chosen else ""


def text(named: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{named}" if named.startswith(FORMULA) else named

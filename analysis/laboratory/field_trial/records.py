"""What is kept of a trial: every run, as it was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from field_trial.listing import Setting


@dataclass(frozen=True)
class Run:
    """One job."""

    setting: Setting
    """What differed from the default."""
    elapsed: float | None
    """Seconds, as the service has them; None if it has none."""
    counted: bool
    verdict: str
    """Why it does not count; empty if it does."""
    result: str
    """The checksum of what the job left; empty if it left nothing."""
    load: float
    """How many processes of the machine ran or wanted to, on average over a minute."""
    role: str = ""
    """In a study: what the run was for."""


@dataclass(frozen=True)
class Said:
    """What the study said of itself after one of its runs."""

    runs: int
    phase: str
    why: str
    """In words, what comes next and why."""
    verdict: str
    """Of the gain: ``faster``, ``slower``, or another word."""
    low: float | None
    """The lower end of the gain's interval, as a share of the default's time."""
    high: float | None
    chosen: Setting
    next: str
    """What the next run gets, and by which rule, as the service tells it."""


@dataclass
class Record:
    """All that is measured of one application."""

    application: str
    began: str = ""
    kernel: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    study: list[Run] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    blocks: list[dict[str, Run]] = field(default_factory=list)
    """Each has a run of every setting that is compared, in an order that was drawn."""
    problem: str = ""
    """Why it could not be run, or not to its end."""

    def save(self, path: Path) -> None:
        """Write it, whole or not at all."""
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        draft.rename(path)


def load(path: Path) -> Record:
    """Return what ``Record.save`` wrote."""
    told = json.loads(path.read_text(encoding="utf-8"))
    return Record(
        **{
            **told,
            "study": [Run(**run) for run in told["study"]],
            "said": [Said(**said) for said in told["said"]],
            "blocks": [_block(block) for block in told["blocks"]],
        }
    )


def _block(told: Mapping[str, Any]) -> dict[str, Run]:
    return {name: Run(**run) for name, run in told.items()}


def name_of(setting: Setting) -> str:
    """Return a setting in words, ``default`` if nothing differs."""
    return " ".join(f"{name}={value}" for name, value in sorted(setting.items())) or "default"

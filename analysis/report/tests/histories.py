"""Runs of a study, made up: as a site's database would show them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from io_autotune_report.load.assessment import UNKNOWN, Assessment, Effect

DEFAULT, CHOSEN = '{"a":1}', '{"a":2}'
START = pd.Timestamp("2026-01-01", tz="UTC")

Rows = list[dict[str, Any]]


def noise(seed: int, cv: float, outliers: float = 1 / 16) -> Callable[[], float]:
    """Factors of elapsed: log-normal, and so many runs 30 to 60 % slower."""
    random = np.random.default_rng(seed)

    def factor() -> float:
        slow = random.uniform(1.3, 1.6) if random.random() < outliers else 1.0
        return float(np.exp(cv * random.standard_normal()) * slow)

    return factor


def settled(
    runs: int,
    ratio: float,
    factor: Callable[[], float],
    every: int = 10,
    key: str = CHOSEN,
    epoch: int = 1,
    since: int = 0,
) -> Rows:
    """A settled epoch: the first run is a control run, then one in ``every``."""
    rows: Rows = []
    for place in range(runs):
        control = place % every == 0
        rows.append(
            row(
                since + place + 1,
                100 * (1.0 if control else ratio) * factor(),
                "control" if control else "settled",
                "settled",
                DEFAULT if control else key,
                epoch,
            )
        )
    return rows


def unsettled(factor: Callable[[], float], epoch: int = 1) -> Rows:
    """Four baseline runs, then a design and a search that cost a fifth more than the default."""
    rows = [row(n + 1, 100 * factor(), "baseline", "baseline", DEFAULT, epoch) for n in range(4)]
    for n in range(4, 20):
        role = "design" if n < 12 else "search"
        rows.append(row(n + 1, 120 * factor(), role, role, f'{{"a":{n}}}', epoch))
    return rows


def row(
    ordinal: int, elapsed: float, role: str, phase: str, key: str, epoch: int = 1
) -> dict[str, Any]:
    """One run that counted, an hour after the one before."""
    return {
        "run_id": epoch * 100_000 + ordinal,
        "study_id": 1,
        "epoch": epoch,
        "ordinal": ordinal,
        "started_at": START + pd.Timedelta(hours=epoch * 10_000 + ordinal),
        "elapsed": elapsed,
        "nodes": 4,
        "role": role,
        "phase": phase,
        "effect": "sample",
        "key": key,
        "default": key == DEFAULT,
    }


def frame(rows: Rows) -> pd.DataFrame:
    """Runs as the night reads them."""
    runs = pd.DataFrame(rows)
    for column in ("role", "phase", "effect"):
        runs[column] = runs[column].astype("category")
    return runs


_EFFECT = Effect(
    epoch=1,
    parametrization=CHOSEN,
    number=1,
    blocks=20,
    tuned_runs=180,
    log_ratio=0.3,
    standard_error=0.05,
    default_hours=20.0,
    saved=5.0,
    controls=0.5,
    net_variance=0.5,
    a_month=10.0,
    last=0,
)


def effect(**known: Any) -> Effect:  # noqa: ANN401 - fields of several types
    """An effect as the service has it."""
    return msgspec.structs.replace(_EFFECT, **known)


def assessment(*effects: Effect, **gain: Any) -> Assessment:  # noqa: ANN401 - likewise
    """What the service says of a study in its first epoch."""
    controls = effects[-1].blocks if effects else 0
    known = {"control_runs": controls, "reason": "Its runs show it.", **gain}
    return Assessment(1, replace(UNKNOWN, **known), effects)

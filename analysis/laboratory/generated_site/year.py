"""The generated year as columns: every run of every study, and every judgement of every run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from generated_site import plan
from generated_site.plan import DAY, Application, PlannedStudy, Shape
from generated_site.play import EFFECT, Life, play

REVISED = 0.004
"""The share of runs whose truth arrives late: nothing at first, then what they really were."""


@dataclass(frozen=True)
class Epoch:
    """An epoch of a study; both by their places."""

    study: int
    ordinal: int
    opened_at: float
    """Seconds after the year's start."""


@dataclass(frozen=True)
class Year:
    """Runs are in the order of their starts, judgements in the order in which they were made."""

    shape: Shape
    applications: list[Application]
    studies: list[PlannedStudy]
    lives: list[Life]
    epochs: list[Epoch]
    run_study: np.ndarray
    run_epoch: np.ndarray
    """Places in ``epochs``."""
    run_place: np.ndarray
    """The run's place in its study's life."""
    started_at: np.ndarray
    """Seconds after the year's start."""
    judged_run: np.ndarray
    """Of each judgement its run."""
    judged_at: np.ndarray
    judged_effect: np.ndarray
    judged_ordinal: np.ndarray
    """In its epoch, from 1."""


def make(shape: Shape) -> Year:
    """Make the year; the same shape gives the same one."""
    rng = np.random.default_rng(shape.seed)
    applications = plan.applications(shape, rng)
    studies = plan.studies(shape, applications, rng)
    lives, starts, of_epoch = [], [], []
    epochs: list[Epoch] = []
    for place, study in enumerate(studies):
        mine = np.random.default_rng([shape.seed, place])
        when = _starts(applications[study.application], study.runs, mine)
        life = play(study, when, mine)
        of_epoch.append(life.epoch - 1 + len(epochs))
        epochs += [
            # A reset opens an epoch a moment before its first run.
            Epoch(place, number, float(when[first]) - 1.0)
            for number, first in enumerate(life.opened, start=1)
        ]
        lives.append(life)
        starts.append(when)
    started_at = np.concatenate(starts)
    order = np.argsort(started_at, kind="stable")
    judgements = _judgements(
        np.random.default_rng([shape.seed, 1 << 40]),
        started_at[order],
        np.concatenate([life.elapsed for life in lives])[order],
        np.concatenate([life.effect for life in lives])[order],
        np.concatenate(of_epoch)[order],
    )
    return Year(
        shape,
        applications,
        studies,
        lives,
        epochs,
        np.repeat(np.arange(len(studies)), [life.epoch.size for life in lives])[order],
        np.concatenate(of_epoch)[order],
        np.concatenate([np.arange(life.epoch.size) for life in lives])[order],
        started_at[order],
        *judgements,
    )


def _starts(owner: Application, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Starts while the owner is present; a weekend day has a third of a working day's runs."""
    first, last = int(owner.start // DAY), max(int(owner.end // DAY), int(owner.start // DAY) + 1)
    days = np.arange(first, last)
    weights = np.where(days % 7 < 5, 3.0, 1.0)
    drawn = rng.choice(days, size=runs, p=weights / weights.sum())
    # Never two at once: an epoch's runs have an order.
    return np.sort(drawn * DAY + rng.uniform(0, DAY, runs)) + np.arange(runs) * 1e-3


def _judgements(
    rng: np.random.Generator,
    started_at: np.ndarray,
    elapsed: np.ndarray,
    effect: np.ndarray,
    epoch: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A run is judged seconds after its end; a few are judged again a day later."""
    run = np.arange(started_at.size)
    at = started_at + elapsed + rng.uniform(2, 60, run.size)
    again = run[rng.random(run.size) < REVISED]
    again = again[effect[again] != EFFECT["nothing"]]
    first = effect.copy()
    first[again] = EFFECT["nothing"]
    run, effect = np.concatenate([run, again]), np.concatenate([first, effect[again]])
    at = np.concatenate([at, at[again] + DAY])
    order = np.argsort(at, kind="stable")
    run, effect, at = run[order], effect[order], at[order]
    return run, at, effect, _places(epoch[run])


def _places(group: np.ndarray) -> np.ndarray:
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    ends = np.cumsum(sizes)
    places = np.empty(group.size, dtype=int)
    places[order] = np.arange(group.size) - np.repeat(ends - sizes, sizes) + 1
    return places

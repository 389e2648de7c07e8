"""Plays a study: the service's phases, and run times from the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from io_autotune_report.load.tables import EFFECTS, PHASES, ROLES

from generated_site.accelerators import Accelerator, Point
from generated_site.plan import DAY, PlannedStudy, Truth

BASELINE = 4
DESIGN = 15
BUDGET = 50
CONTROL_CHANCE = 0.1
"""Runs of a settled epoch after which its gain counts as resolved, if there is any."""
MIXED = 0.9
"""Noise of different work under one name."""

ROLE = {name: code for code, name in enumerate(ROLES)}
PHASE = {name: code for code, name in enumerate(PHASES)}
EFFECT = {name: code for code, name in enumerate(EFFECTS)}


@dataclass(frozen=True)
class Life:
    """A study's runs in the order of their starts: an entry each, unless said otherwise."""

    epoch: np.ndarray
    """From 1."""
    role: np.ndarray
    """Places in ``ROLES``; likewise phase and effect."""
    phase: np.ndarray
    effect: np.ndarray
    point: np.ndarray
    """Places in ``points``."""
    elapsed: np.ndarray
    """Seconds; of a run that failed until it did."""
    points: list[Point]
    """Every parametrization that was ever run."""
    opened: list[int]
    """Each epoch's first run."""
    pinned: int | None
    """The place in ``points`` that the study is pinned to in the end."""


class _Epoch:
    """What is known while an epoch is played."""

    def __init__(self, accelerator: Accelerator, truth: Truth) -> None:
        self.accelerator = accelerator
        self.truth = truth
        self.seen: dict[Point, list[float]] = {}
        self.points: list[Point] = [accelerator.default]

    def learn(self, point: Point, elapsed: float) -> None:
        self.seen.setdefault(point, []).append(float(np.log(elapsed)))

    def ranked(self, runs: int) -> list[Point]:
        """The points with at least this many runs, the quickest first."""
        known = [(np.mean(logs), point) for point, logs in self.seen.items() if len(logs) >= runs]
        return [point for _, point in sorted(known)]

    def best(self) -> Point:
        ranked = self.ranked(2)
        return ranked[0] if ranked else self.accelerator.default

    def child(self, rng: np.random.Generator) -> Point:
        """One of the best again a third of the time, else a mutated crossover of two of them."""
        parents = self.ranked(1)[:5] or [self.accelerator.default]
        if rng.random() < 1 / 3:
            return parents[int(rng.integers(min(3, len(parents))))]
        one, other = (parents[int(rng.integers(len(parents)))] for _ in range(2))
        mixed = [a if rng.random() < 1 / 2 else b for a, b in zip(one, other, strict=True)]
        place = int(rng.integers(len(mixed)))
        mixed[place] = int(rng.integers(self.accelerator.levels()[place]))
        return self.accelerator.canonical(tuple(mixed))


def play(study: PlannedStudy, starts: np.ndarray, rng: np.random.Generator) -> Life:
    """Play the study's runs; ``starts`` are seconds after the year's start, ascending."""
    opened = _openings(study, starts.size, rng)
    ends = [*opened[1:], starts.size]
    parts = []
    points: dict[Point, int] = {}
    for number, (first, end) in enumerate(zip(opened, ends, strict=True), start=1):
        factor = _climate(study, starts[first:end], rng)
        part = _play_epoch(study, factor, rng, points)
        parts.append(np.vstack([np.full(end - first, number), part]))
    columns = np.hstack(parts)
    epoch, role, phase, effect, point = (columns[row].astype(int) for row in range(5))
    chosen = point[role == ROLE["settled"]]
    pinned = None
    if study.pinned and chosen.size:
        pinned = int(chosen[-1])
        late = np.arange(starts.size) >= int(starts.size * 0.8)
        # Pinning changes a run's role, not its outcome.
        role = np.where(late & (point == pinned), ROLE["pinned"], role)
    return Life(epoch, role, phase, effect, point, columns[5], list(points), opened, pinned)


def _openings(study: PlannedStudy, runs: int, rng: np.random.Generator) -> list[int]:
    """Resets fall into the second half of the preceding runs."""
    opened = [0]
    for _ in range(study.resets):
        left = runs - opened[-1]
        if left > 4 * BUDGET:
            opened.append(opened[-1] + int(rng.uniform(0.5, 0.9) * left))
    return opened


def _climate(study: PlannedStudy, starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A run's time over the default's median, without the parametrization's effect."""
    truth = study.truth
    noise = MIXED if study.observed else truth.noise
    when, step = truth.step
    logs = rng.normal(0, noise, starts.size)
    logs += truth.drift * starts / (365 * DAY) + np.where(starts >= when, step, 0.0)
    slow = rng.random(starts.size) < truth.outliers
    return np.exp(logs) * np.where(slow, rng.uniform(1.3, 1.6, starts.size), 1.0)


def _play_epoch(
    study: PlannedStudy, factor: np.ndarray, rng: np.random.Generator, places: dict[Point, int]
) -> np.ndarray:
    """Rows role, phase, effect, point, elapsed; new points are added to ``places``."""
    known = _Epoch(study.accelerator, study.truth)
    exploring = min(factor.size, 0 if study.observed else BASELINE + BUDGET)
    failing = rng.random(factor.size)
    columns = [
        _explore(known, study, number, (factor[number], failing[number]), rng)
        for number in range(exploring)
    ]
    points = [column[3] for column in columns]
    for point in points:
        places.setdefault(point, len(places))
    rows = (
        np.array(
            [
                (role, phase, effect, places[point], elapsed)
                for role, phase, effect, point, elapsed in columns
            ]
        )
        .reshape(-1, 5)
        .T
    )
    rest = _settled(known, study, factor[exploring:], failing[exploring:], rng, places)
    return np.hstack([rows, rest])


def _explore(
    known: _Epoch,
    study: PlannedStudy,
    number: int,
    luck: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[int, int, int, Point, float]:
    default = study.accelerator.default
    if number < BASELINE:
        role, phase, point = ROLE["baseline"], PHASE["baseline"], default
    elif number < BASELINE + DESIGN:
        role, phase, point = ROLE["design"], PHASE["design"], study.accelerator.draw(rng)
    else:
        role, phase, point = ROLE["search"], PHASE["search"], known.child(rng)
    if number >= BASELINE and rng.random() < 0.06:
        role, point = ROLE["best_known"], known.best()
    effect, elapsed = _outcome(study.truth, np.array([point]), *(np.array([x]) for x in luck))
    if effect[0] == EFFECT["sample"]:
        known.learn(point, float(elapsed[0]))
    return role, phase, int(effect[0]), point, float(elapsed[0])


def _settled(
    known: _Epoch,
    study: PlannedStudy,
    factor: np.ndarray,
    failing: np.ndarray,
    rng: np.random.Generator,
    places: dict[Point, int],
) -> np.ndarray:
    """The rest of an epoch: the best known, interleaved with control runs."""
    default, best = study.accelerator.default, known.best()
    control = rng.random(factor.size) < CONTROL_CHANCE
    for point in (default, best):
        places.setdefault(point, len(places))
    if study.observed:
        control[:] = True
    points = np.where(control[:, None], default, best).reshape(-1, len(default))
    effect, elapsed = _outcome(study.truth, points, factor, failing)
    role = np.where(control, ROLE["control"], ROLE["settled"])
    phase = np.full(factor.size, PHASE["settled"])
    if study.observed:
        role[:], phase[:] = ROLE["observe"], PHASE["baseline"]
    place = np.where(control, places[default], places[best])
    return np.vstack([role, phase, effect, place, elapsed])


def _outcome(
    truth: Truth, points: np.ndarray, factor: np.ndarray, luck: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How runs end, and how long they take; ``luck`` is uniform in 0..1."""
    logs = np.zeros(factor.size)
    for parameter, effects in enumerate(truth.effects):
        logs += np.asarray(effects)[points[:, parameter]]
    elapsed = truth.elapsed * np.exp(logs) * factor
    deadly = np.zeros(factor.size, dtype=bool)
    if truth.deadly is not None:
        parameter, level = truth.deadly
        deadly = points[:, parameter] == level
    failing = np.where(deadly, 0.5, truth.failing)
    limit = truth.elapsed * truth.limit
    late = elapsed > limit
    effect = np.where(late, EFFECT["censored"], EFFECT["sample"])
    effect = np.where(luck < failing, EFFECT["failure"], effect)
    effect = np.where(deadly & (luck < failing), EFFECT["out_of_memory"], effect)
    # Cancelled, preempted, or on a failed node.
    effect = np.where(luck > 0.985, EFFECT["nothing"], effect)
    return effect, np.minimum(elapsed, limit)

"""The generated site's users and applications, and what tuning can gain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from generated_site.accelerators import ACCELERATORS, Accelerator, Point

DAY = 86_400.0
"""Seconds."""
UPGRADE = 0.62
"""When in the year the file system was upgraded: much took less time from then on."""

_FIELDS = ("climate", "lattice", "cfd", "genomics", "astro", "seismic", "materials", "plasma")
_WORKS = ("checkpoint", "restart", "postproc", "ensemble", "assimilate", "mesh", "reduce", "train")
_GIVEN = ("ada", "ben", "chen", "dora", "emil", "fatima", "goran", "hana", "ivan", "jana", "kim")
_PARTITIONS = ("normal", "large", "debug", "gpu")


@dataclass(frozen=True)
class Shape:
    """The size of the year."""

    seed: int = 1
    last: date = date(2026, 11, 20)
    """Its last day."""
    days: int = 365
    applications: int = 300
    studies: int = 700
    """About so many."""
    runs: int = 60_000
    """About so many."""

    @property
    def first(self) -> date:
        """Its first day."""
        return self.last - timedelta(days=self.days - 1)


@dataclass(frozen=True)
class Application:
    """An application of a user."""

    name: str
    uid: int
    user: str
    account: str
    start: float
    """Seconds after the year's start."""
    end: float
    weight: float
    """How often it runs, against others."""


@dataclass(frozen=True)
class Truth:
    """The parameters of a study's run times."""

    elapsed: float
    """The default's median at the year's start, seconds."""
    noise: float
    """Standard deviation of its logarithm."""
    outliers: float
    """The share of runs that take 30 to 60 % longer."""
    effects: tuple[tuple[float, ...], ...]
    """By parameter and level, added to the logarithm; 0 at the default."""
    drift: float
    """Added to the logarithm over the year, slowly."""
    step: tuple[float, float]
    """When (seconds) and by how much its logarithm changes at once."""
    failing: float
    """The share of runs that fail, whatever the parametrization."""
    deadly: tuple[int, int] | None
    """A parameter's level under which every other run is out of memory."""
    limit: float
    """The job's time limit over the default's median."""

    def log_ratio(self, point: Point) -> float:
        """The log ratio of a parametrization's time to the default's."""
        return sum(effect[level] for effect, level in zip(self.effects, point, strict=True))


@dataclass(frozen=True)
class PlannedStudy:
    """A study before it is played."""

    application: int
    """Its place in the list of applications."""
    accelerator: Accelerator
    nodes: int
    partition: str
    truth: Truth
    runs: int
    observed: bool
    """Different work under one name: only observed."""
    pinned: bool
    resets: int


def applications(shape: Shape, rng: np.random.Generator) -> list[Application]:
    """Users who come and go, with one to a dozen applications each."""
    made: list[Application] = []
    span = shape.days * DAY
    user = 0
    while len(made) < shape.applications:
        user += 1
        name = f"{_GIVEN[user % len(_GIVEN)]}{user:03}"
        account = f"{_FIELDS[int(rng.integers(len(_FIELDS)))]}-{int(rng.integers(1, 5))}"
        # Two thirds are present all year; others come later, or leave.
        start = 0.0 if rng.random() < 2 / 3 else rng.uniform(0, 0.7) * span
        end = span if rng.random() < 2 / 3 else start + rng.uniform(0.15, 1) * (span - start)
        for _ in range(min(int(rng.geometric(0.35)), shape.applications - len(made), 12)):
            field = _FIELDS[int(rng.integers(len(_FIELDS)))]
            work = _WORKS[int(rng.integers(len(_WORKS)))]
            made.append(
                Application(
                    name=f"{field}_{work}_{len(made):03}.sh",
                    uid=10_000 + user,
                    user=name,
                    account=account,
                    start=start + rng.uniform(0, 0.2) * (end - start),
                    end=end,
                    weight=float(rng.lognormal(0, 1)),
                )
            )
    return made


def studies(
    shape: Shape, owners: list[Application], rng: np.random.Generator
) -> list[PlannedStudy]:
    """One study per application or several: other node counts, partitions, accelerators."""
    extra = rng.multinomial(
        max(0, shape.studies - len(owners)), np.full(len(owners), 1 / len(owners))
    )
    which = np.repeat(np.arange(len(owners)), extra + 1)
    weights = np.array([owners[place].weight for place in which]) * rng.lognormal(
        0, 0.8, which.size
    )
    runs = np.maximum(1, np.round(weights / weights.sum() * shape.runs)).astype(int)
    taken: set[tuple[int, str, int, str]] = set()
    made = []
    for place, count in zip(which, runs, strict=True):
        accelerator, nodes, partition = _context(int(place), taken, rng)
        made.append(
            PlannedStudy(
                application=int(place),
                accelerator=accelerator,
                nodes=nodes,
                partition=partition,
                truth=_truth(shape, accelerator, rng),
                runs=int(count),
                observed=bool(rng.random() < 0.03),
                pinned=bool(rng.random() < 0.02),
                resets=int(rng.binomial(2, 0.05)),
            )
        )
    return made


def _context(
    application: int, taken: set[tuple[int, str, int, str]], rng: np.random.Generator
) -> tuple[Accelerator, int, str]:
    """A combination of which the application has no study yet."""
    while True:
        accelerator = ACCELERATORS[int(rng.choice(len(ACCELERATORS), p=[0.6, 0.25, 0.15]))]
        nodes = int(2 ** rng.integers(0, 8))
        partition = _PARTITIONS[int(rng.integers(len(_PARTITIONS)))]
        context = (application, accelerator.name, nodes, partition)
        if context not in taken:
            taken.add(context)
            return accelerator, nodes, partition


def _truth(shape: Shape, accelerator: Accelerator, rng: np.random.Generator) -> Truth:
    span = shape.days * DAY
    step = (0.0, 0.0)
    if accelerator.name != "lustre-client":
        step = (UPGRADE * span, float(rng.choice([0.0, -0.06])))
    if rng.random() < 0.06:
        step = (float(rng.uniform(0.3, 0.9)) * span, float(rng.choice([-0.25, 0.2, 0.35])))
    deadly = None
    if rng.random() < 0.04:
        parameter = int(rng.integers(len(accelerator.parameters)))
        others = [
            level
            for level in range(accelerator.levels()[parameter])
            if level != accelerator.default[parameter]
        ]
        deadly = (parameter, int(rng.choice(others)))
    return Truth(
        elapsed=float(np.clip(rng.lognormal(np.log(600), 1), 20, 40_000)),
        noise=float(rng.uniform(0.03, 0.25)),
        outliers=float(rng.choice([0.0, 1 / 16])),
        effects=_effects(accelerator, rng),
        drift=float(rng.normal(0, 0.05)),
        step=step,
        failing=float(rng.beta(1, 40)),
        deadly=deadly,
        limit=float(rng.uniform(1.3, 5)),
    )


def _effects(accelerator: Accelerator, rng: np.random.Generator) -> tuple[tuple[float, ...], ...]:
    """A fifth of the studies cannot gain; in about a sixth the default is best."""
    kind = rng.choice(["nothing", "default_best", "gain"], p=[0.2, 0.16, 0.64])
    default, levels = accelerator.default, accelerator.levels()
    raw = [rng.normal(0, 1, count) * rng.exponential(1) for count in levels]
    raw = [effect - effect[at] for effect, at in zip(raw, default, strict=True)]
    if kind == "nothing":
        scaled = [np.zeros(count) for count in levels]
    elif kind == "default_best":
        scaled = [0.15 * np.abs(effect) for effect in raw]
    else:
        best = sum(float(effect.min()) for effect in raw)
        gain = -np.log1p(-rng.beta(1.5, 5))
        scaled = [effect * (gain / -best if best < 0 else 0.0) for effect in raw]
    return tuple(tuple(float(value) for value in np.clip(each, -2, 1)) for each in scaled)

"""The 2020 paper's algorithm in Python, under other interpretations of the paper.

It shares only the tables and their draws with the engine. Under the engine's interpretation it must
reproduce the engine's figures; the others show how much of the distance from the paper's figures an
interpretation explains.
"""

import math
import random
from collections import defaultdict
from dataclasses import dataclass

from peers.tables import Point, Table

DESIGN_POINTS = 15
POOL = 5
MUTATION_RATE = 0.2
DRAWS = 100


@dataclass(frozen=True)
class Interpretation:
    """What the paper leaves open."""

    words: str
    budget: int = 50
    """Iterations, those of the design among them."""
    resamples_count: bool = True
    """Whether a run that resampling asks for is an iteration."""
    returns: bool = False
    """Whether a child may be a parametrization that was tested, and is then run again."""
    picks: bool = False
    """Whether parents are picked by 1 / (mean - least mean + 1 s), and not in tournaments."""


@dataclass(frozen=True)
class Course:
    """The places of a study's runs and of its recommendation."""

    runs: list[int]
    recommended: int


@dataclass(frozen=True)
class Figures:
    """Means over studies, as in the paper's table II, except for the last three."""

    success: float
    """%: how often the optimum is recommended."""
    distance: float
    """%: the recommended parametrization's mean time beyond the optimum's."""
    steps: float
    """The number of the first run of what is recommended."""
    average: float
    """%: the mean time of what was run beyond the optimum's."""
    tried: float
    """%: how often the optimum was run at all."""
    nearest: float
    """%: the mean time of the best that was run, beyond the optimum's."""
    levels: float
    """From the recommended parametrization to the optimum, each parameter scaled to 0..1."""


def replay(table: Table, interpretation: Interpretation, share: float | None, seed: int) -> Course:
    """A study of the conventional genetic algorithm; `share` adds resampling by standard error.

    `share` is p of th_se = p * mean of the design (section VI-A-c).
    """
    return _Study(table, interpretation, seed).run(share)


def sample(table: Table, interpretation: Interpretation, seed: int) -> Course:
    """A study of the random sampler, without replacement."""
    study = _Study(table, interpretation, seed)
    for place in study.random.sample(range(len(table.points)), interpretation.budget):
        study.measure(place)
    return study.course()


def figures(table: Table, courses: list[Course]) -> Figures:
    """The figures of some studies."""
    best = table.truths[table.best]

    def mean(of: list[float]) -> float:
        return sum(of) / len(of)

    def beyond(place: int) -> float:
        return 100.0 * (table.truths[place] / best - 1.0)

    return Figures(
        success=mean([100.0 * (course.recommended == table.best) for course in courses]),
        distance=mean([beyond(course.recommended) for course in courses]),
        steps=mean([course.runs.index(course.recommended) + 1.0 for course in courses]),
        average=mean([mean([beyond(place) for place in course.runs]) for course in courses]),
        tried=mean([100.0 * (table.best in course.runs) for course in courses]),
        nearest=mean([min(beyond(place) for place in course.runs) for course in courses]),
        levels=mean([_levels(table, course.recommended) for course in courses]),
    )


def _levels(table: Table, place: int) -> float:
    pairs = zip(table.parameters, table.points[place], table.points[table.best], strict=True)
    return math.sqrt(sum(((a - b) / max(p.levels - 1, 1)) ** 2 for p, a, b in pairs))


class _Study:
    def __init__(self, table: Table, interpretation: Interpretation, seed: int) -> None:
        self.table, self.interpretation, self.seed = table, interpretation, seed
        self.random = random.Random(seed)
        self.seen: dict[int, list[float]] = defaultdict(list)
        self.design: list[int] = []
        self.runs: list[int] = []
        self.iterations = 0

    def measure(self, place: int, counts: bool = True) -> None:
        self.seen[place].append(self.table.draw(place, len(self.seen[place]), self.seed))
        self.runs.append(place)
        self.iterations += counts

    def course(self) -> Course:
        return Course(self.runs, min(self.seen, key=self._mean))

    def run(self, share: float | None) -> Course:
        self.design = self._design()
        for place in self.design:
            self.measure(place)
        threshold = None if share is None else share * _mean([self._mean(p) for p in self.seen])
        counts = self.interpretation.resamples_count
        while self.iterations < self.interpretation.budget:
            child = self._child(share is not None)
            if child is None:
                break
            self.measure(child)
            while threshold is not None and not self._suffices(child, threshold):
                if counts and self.iterations >= self.interpretation.budget:
                    break
                self.measure(child, counts)
        return self.course()

    def _mean(self, place: int) -> float:
        return _mean(self.seen[place])

    def _suffices(self, place: int, threshold: float) -> bool:
        times = self.seen[place]
        if len(times) < 2:  # noqa: PLR2004 - one time has no spread
            return False
        mean = _mean(times)
        variance = sum((time - mean) ** 2 for time in times) / (len(times) - 1)
        return math.sqrt(variance / len(times)) < threshold

    def _design(self) -> list[int]:
        """A Latin hypercube: each parameter's levels evenly, shuffled independently."""
        columns = []
        for parameter in self.table.parameters:
            levels = [nth * parameter.levels // DESIGN_POINTS for nth in range(DESIGN_POINTS)]
            self.random.shuffle(levels)
            columns.append(levels)
        points = dict.fromkeys(zip(*columns, strict=True))
        return [place for point in points if (place := self.table.place(point)) is not None]

    def _child(self, resampled: bool) -> int | None:
        """None if everything was tested."""
        for _ in range(DRAWS):
            child = self.table.place(self._bred())
            if child is None:
                continue
            # As in the engine: with resampling a design point may become a child.
            again = resampled and child in self.design and len(self.seen[child]) == 1
            if self.interpretation.returns or again or child not in self.seen:
                return child
        untested = [place for place in range(len(self.table.points)) if place not in self.seen]
        return self.random.choice(untested) if untested else None

    def _bred(self) -> Point:
        one, other = (self.table.points[place] for place in self._parents())
        cut = self.random.randrange(1, len(one)) if len(one) > 1 else 1
        child = [*one[:cut], *other[cut:]]
        if self.random.random() < MUTATION_RATE:
            self._step(child)
        return tuple(child)

    def _parents(self) -> list[int]:
        tested = sorted(self.seen)
        if not self.interpretation.picks:
            pools = self.random.sample(tested, min(2 * POOL, len(tested) // 2 * 2))
            half = len(pools) // 2
            return [min(pool, key=self._mean) for pool in (pools[:half], pools[half:])]
        parents: list[int] = []
        for _ in range(2):
            means = [self._mean(place) for place in tested]
            weights = [1.0 / (mean - min(means) + 1.0) for mean in means]
            parents += self.random.choices(tested, weights)
            tested.remove(parents[-1])
        return parents

    def _step(self, point: list[int]) -> None:
        """Moves one parameter to a neighbouring level, or to any other category."""
        parameters = self.table.parameters
        nth = self.random.choice([n for n, p in enumerate(parameters) if p.levels > 1])
        levels = range(parameters[nth].levels)
        near = [level for level in levels if abs(level - point[nth]) == 1]
        others = [level for level in levels if level != point[nth]]
        point[nth] = self.random.choice(near if parameters[nth].ordered else others)


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)

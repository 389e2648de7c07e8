"""The families. Every table of one has the same trait and a space and effects of its own."""

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

Point = tuple[int, ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter by its number of levels; without `ordered` its levels are categories."""

    levels: int
    ordered: bool


@dataclass(frozen=True)
class Run:
    """A row of a table: the mean of runs that scatter by a share of it."""

    elapsed: float
    scatter: float


Runs = Callable[[Point], list[Run]]
"""The rows of a point; none where runs fail."""

_DEFAULT_S = 100.0
_HALF = 0.5


class _World:
    """A random space with a smooth response, the logarithm of time over the default's."""

    def __init__(self, draw: random.Random, parameters: list[Parameter] | None = None) -> None:
        ordered = draw.randint(3, 4)
        sizes = [Parameter(draw.choice([4, 5, 6, 8]), True) for _ in range(ordered)]
        self.parameters = parameters or [*sizes, Parameter(draw.choice([2, 3, 4]), False)]
        self.default = tuple((one.levels - 1) // 2 if one.ordered else 0 for one in self.parameters)
        self._effects = [self._effect(one, draw) for one in self.parameters]
        self._pair = draw.sample(range(ordered), 2)
        self._twist = draw.uniform(-0.5, 0.5)

    @staticmethod
    def _effect(parameter: Parameter, draw: random.Random) -> list[float]:
        if not parameter.ordered:
            return [draw.gauss(0.0, 0.25) for _ in range(parameter.levels)]
        best, strength = draw.random(), draw.uniform(0.1, 0.9)
        places = [level / (parameter.levels - 1) for level in range(parameter.levels)]
        return [strength * (place - best) ** 2 * 2.0 for place in places]

    def share(self, point: Point, index: int) -> float:
        """The level's place in the parameter's range, 0 to 1."""
        return point[index] / (self.parameters[index].levels - 1)

    def smooth(self, point: Point) -> float:
        """The response without the family's trait."""
        one, other = (self.share(point, index) - 0.5 for index in self._pair)
        effects = zip(self._effects, point, strict=True)
        return sum(effect[level] for effect, level in effects) + 4.0 * self._twist * one * other

    def points(self) -> list[Point]:
        """All points, in order."""
        return list(itertools.product(*(range(one.levels) for one in self.parameters)))

    def seconds(self, response: float) -> float:
        """The time of a response."""
        return _DEFAULT_S * math.exp(response - self.smooth(self.default))


def _rugged(world: _World, draw: random.Random) -> Runs:
    """Each point has an offset of its own, beside the smooth response."""
    offsets = {point: draw.gauss(0.0, 0.25) for point in world.points()}
    return lambda point: [Run(world.seconds(world.smooth(point) + offsets[point]), 0.05)]


def _ridged(world: _World, draw: random.Random) -> Runs:
    """Two parameters have to fit each other; along the ridge the response hardly changes."""
    steep = draw.uniform(1.5, 3.0)

    def runs(point: Point) -> list[Run]:
        off = abs(world.share(point, 0) - world.share(point, 1))
        return [Run(world.seconds(0.4 * world.smooth(point) + steep * off), 0.05)]

    return runs


def _failing(world: _World, draw: random.Random) -> Runs:
    """Half of the space fails: where two parameters are large together, and one category."""
    limit, category = draw.uniform(0.8, 1.1), len(world.parameters) - 1
    fails = draw.randint(1, world.parameters[category].levels - 1)

    def runs(point: Point) -> list[Run]:
        demand = world.share(point, 0) + world.share(point, 1)
        far = demand > limit or point[category] == fails
        if far and point != world.default:
            return []
        return [Run(world.seconds(world.smooth(point)), 0.08)]

    return runs


def _tails(world: _World, draw: random.Random) -> Runs:
    """Beyond a cliff times grow by the level, up to a hundredfold; most of the space is not."""
    index = draw.randrange(len(world.parameters) - 1)
    upwards, far = draw.random() < _HALF, math.log(draw.uniform(40.0, 100.0))

    def runs(point: Point) -> list[Run]:
        share = world.share(point, index)
        beyond = max(0.0, (share if upwards else 1.0 - share) - 0.6) / 0.4
        return [Run(world.seconds(world.smooth(point) + far * beyond), 0.05)]

    return runs


def _heteroscedastic(world: _World, draw: random.Random) -> Runs:
    """The noise grows with one parameter, from 1 % to 40 %."""
    index = draw.randrange(len(world.parameters) - 1)
    return lambda point: [
        Run(world.seconds(world.smooth(point)), 0.01 * 40.0 ** world.share(point, index))
    ]


def _unstable(world: _World, draw: random.Random) -> Runs:
    """The best tenth in the median is 30 % to 90 % slower in a fifth of its runs."""
    ranked = sorted(world.points(), key=world.smooth)
    excess = {point: draw.uniform(1.3, 1.9) for point in ranked[: len(ranked) // 10]}

    def runs(point: Point) -> list[Run]:
        seconds = world.seconds(world.smooth(point))
        slow = seconds * excess.get(point, 1.0)
        return [Run(seconds, 0.05)] * 4 + [Run(slow, 0.05)]

    return runs


def _switched(world: _World, draw: random.Random) -> Runs:
    """The category decides which of two parameters matters, and where its best is."""
    categories = world.parameters[-1].levels
    decides = [(draw.randrange(2), draw.random()) for _ in range(categories)]
    strength = draw.uniform(1.0, 2.5)

    def runs(point: Point) -> list[Run]:
        index, best = decides[point[-1]]
        off = strength * (world.share(point, index) - best) ** 2
        return [Run(world.seconds(0.5 * world.smooth(point) + off), 0.07)]

    return runs


def _flags(world: _World, draw: random.Random) -> Runs:
    """Ten switches: few matter, and some pairs of these do only together."""
    weights = [draw.gauss(0.0, 1.0) ** 3 * 0.12 for _ in world.parameters]
    together = []
    for _ in range(4):
        one, other = draw.sample(range(len(world.parameters)), 2)
        together.append((one, other, draw.gauss(0.0, 0.25)))

    def runs(point: Point) -> list[Run]:
        alone = sum(weight * level for weight, level in zip(weights, point, strict=True))
        pairs = sum(weight * point[one] * point[other] for one, other, weight in together)
        return [Run(_DEFAULT_S * math.exp(alone + pairs), 0.06)]

    return runs


_SWITCHES = [Parameter(2, False) for _ in range(10)]

FAMILIES: dict[str, Callable[[_World, random.Random], Runs]] = {
    "rugged": _rugged,
    "ridged": _ridged,
    "failing": _failing,
    "tails": _tails,
    "heteroscedastic": _heteroscedastic,
    "unstable": _unstable,
    "switched": _switched,
    "flags": _flags,
}


def table(family: str, number: int) -> tuple[_World, Runs]:
    """The space and the rows of one table of a family."""
    draw = random.Random(f"{family}-{number}")
    world = _World(draw, _SWITCHES if family == "flags" else None)
    return world, FAMILIES[family](world, draw)

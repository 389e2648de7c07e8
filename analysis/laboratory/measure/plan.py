"""The measured runs and their order. Pure.

Every block holds every parametrization once, shuffled anew: drift affects all parametrizations
alike and shows as a difference between blocks.
"""

import itertools
import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Value = int | float | str
Point = tuple[Value, ...]
"""A parametrization: for each parameter of the grid its value, in the grid's order."""

_KINDS = {"ordered": "ordinal", "categories": "categorical"}
"""The catalogue's words for kinds, and those of measured tables (docs/papers/simulate.md)."""


class PlanError(Exception):
    """An impossible plan: what was asked, what is wrong, what to do."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of the grid: some of the catalogue's values, and the default."""

    name: str
    kind: str
    """``ordinal`` or ``categorical``."""
    values: tuple[Value, ...]
    default: Value


@dataclass(frozen=True)
class Workload:
    """The job: ``strided`` with collective MPI-IO (tests/workloads/README.md)."""

    ranks: int
    block_size: int
    """Bytes of one block."""
    blocks: int
    """Blocks of each rank."""

    def script(self, scratch: str) -> str:
        """The batch script; the shared file lies in the directory ``scratch``."""
        return (
            "#!/bin/sh\n"
            f"srun strided --file {scratch}/shared.$SLURM_JOB_ID"
            f" --block-size {self.block_size} --blocks {self.blocks} --collective\n"
        )

    def __str__(self) -> str:
        """Describes the job."""
        mebibytes = self.ranks * self.block_size * self.blocks / 2**20
        return (
            f"{self.ranks} ranks on one node write {mebibytes:g} MiB to one file in interleaved"
            f" blocks of {self.block_size} bytes by collective MPI-IO, read them back and verify"
        )


@dataclass(frozen=True)
class Planned:
    """One run to be made."""

    block: int
    """From 0; the table's ``rep``."""
    place: int
    """The parametrization's place in the grid, from 0."""


@dataclass(frozen=True)
class Plan:
    """A full grid, run in several blocks, each in its own order."""

    accelerator: str
    parameters: tuple[Parameter, ...]
    workload: Any
    """A dataclass that describes itself as text."""
    blocks: int
    seed: int
    objective: str = "elapsed seconds of a Slurm job, as io-autotune records it; see README.md"
    first: tuple[dict[str, Value], ...] = ()
    """Other defaults, with which studies can begin too."""

    @property
    def points(self) -> list[Point]:
        """All parametrizations, the last parameter changing fastest."""
        return list(itertools.product(*(parameter.values for parameter in self.parameters)))

    @property
    def default(self) -> Point:
        """The default's parametrization."""
        return tuple(parameter.default for parameter in self.parameters)

    def named(self, point: Point) -> dict[str, Value]:
        """A parametrization by parameter names."""
        names = (parameter.name for parameter in self.parameters)
        return dict(zip(names, point, strict=True))

    def block(self, number: int) -> list[Planned]:
        """A block's runs in their order."""
        # Its own generator: a block's order does not depend on the other blocks.
        places = list(range(len(self.points)))
        random.Random(f"{self.seed}/{number}").shuffle(places)
        return [Planned(number, place) for place in places]

    def as_json(self) -> dict[str, Any]:
        """The plan as JSON types: one journal never mixes two plans, but can get more blocks."""
        left_out = {"blocks"} if self.first else {"blocks", "first"}
        return {name: value for name, value in asdict(self).items() if name not in left_out}


def parameters_of(catalogue: str, levels: Mapping[str, Sequence[Value]]) -> tuple[Parameter, ...]:
    """The grid's parameters, from a catalogue file's TOML text and the values to measure.

    Raises PlanError if the catalogue lacks a parameter or value, or the values lack its default,
    which all are compared with.
    """
    known = {raw["name"]: raw for raw in tomllib.loads(catalogue)["parameters"]}
    found = []
    for name, values in levels.items():
        raw = known.get(name)
        if raw is None:
            raise PlanError(f"the catalogue has no parameter {name!r}; it has {', '.join(known)}")
        if raw["kind"] not in _KINDS:
            raise PlanError(f"{name}: a grid takes lists and categories, not {raw['kind']!r}")
        strange = [value for value in values if value not in raw["values"]]
        if strange or len(set(values)) < len(values):
            raise PlanError(f"{name}: {list(values)} must be different ones of {raw['values']}")
        if raw["default"] not in values:
            raise PlanError(
                f"{name}: the default, {raw['default']!r}, must be among {list(values)}"
            )
        found.append(Parameter(name, _KINDS[raw["kind"]], tuple(values), raw["default"]))
    return tuple(found)

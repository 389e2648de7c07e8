"""What a program that is measured is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Chosen = dict[str, Any]
"""A value for each parameter."""


Measures = dict[str, float]
"""More results of a run, all above zero where they mean anything."""


class RunFailed(Exception):
    """A parametrization that the program refuses or does not survive, in its own words."""


@dataclass(frozen=True)
class Program:
    """A space and a function that measures one point of it."""

    name: str
    domain: str
    levels: dict[str, list[Any]]
    categories: frozenset[str]
    default: Chosen
    run: Callable[[Path, Chosen], float | tuple[float, Measures]]
    """The seconds of one run in a folder of its own, and `measures`; raises RunFailed."""
    needs: tuple[str, ...] = ()
    """Commands that have to be installed."""
    measures: tuple[str, ...] = ()
    """The names of what each run measures besides."""
    folder: str = "held-out"
    """The folder of its table."""
    integers: frozenset[str] = frozenset()
    """Parameters whose levels are numbers of something, and not just an order."""

    def kind(self, name: str) -> str:
        """The parameter's kind, in the words of tables (docs/papers/simulate.md)."""
        if name in self.categories:
            return "categorical"
        return "int" if name in self.integers else "ordinal"

"""Invariants: what must hold, how often each was checked, and what was wrong. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

F = TypeVar("F")
"""The facts that invariants are about."""


@dataclass(frozen=True)
class Finding:
    """What a look at one thing, or at several, has found."""

    wrong: str | None = None
    """What is wrong with them."""
    excuse: str | None = None
    """Why nobody promised anything about them: what was done to them."""
    number: int = 1
    """How many they were."""


Findings = Iterator[Finding]


@dataclass(frozen=True)
class Invariant(Generic[F]):
    """One thing that must hold."""

    name: str
    means: str
    check: Callable[[F], Findings]
    at_end: bool = False
    """Whether it holds only once all has come to rest."""
    promises: tuple[str, ...] = ()
    """Of the soak's: the rows of docs/never.md that it would see broken."""


@dataclass
class Tally:
    """How often an invariant was checked, and what was wrong."""

    rounds: int = 0
    looked_at: int = 0
    """Things looked at in the last round."""
    in_all: int = 0
    """In all rounds."""
    violations: dict[str, str] = field(default_factory=dict)
    """What was wrong, and when it was seen first."""
    excused: Counter[str] = field(default_factory=Counter)
    """Why things were excused in the last round, and how many."""


class Checker(Generic[F]):
    """Checks the invariants again and again, and keeps what was violated."""

    def __init__(self, invariants: Sequence[Invariant[F]]) -> None:
        """Begin with nothing checked."""
        self._invariants = invariants
        self.tallies = {one.name: Tally() for one in invariants}

    def check(self, facts: F, when: str, *, at_end: bool) -> list[str]:
        """Check them, and return what is violated and was not before."""
        new = []
        for one in self._invariants:
            if one.at_end and not at_end:
                continue
            tally = self.tallies[one.name]
            tally.rounds += 1
            tally.looked_at = 0
            tally.excused.clear()
            for found in one.check(facts):
                if found.excuse is not None:
                    tally.excused[found.excuse] += found.number
                    continue
                tally.looked_at += found.number
                tally.in_all += found.number
                if found.wrong is not None and found.wrong not in tally.violations:
                    tally.violations[found.wrong] = when
                    new.append(f"{one.name}: {found.wrong}")
        return new

"""The distributions that packages are made for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """A suite of Debian that packages are built for, in a clean root of its own."""

    name: str
    """As mmdebstrap takes it."""
    release: int
    """Debian's number: versions end in it, so that each release's are later than the last's."""
    python: str
    """The version of its python3, whose wheels the report brings along."""


SUITES = (Suite("bookworm", 12, "3.11"), Suite("trixie", 13, "3.13"), Suite("forky", 14, "3.14"))
OLDEST = SUITES[0]
"""Where the programs in Rust are built, for all: its C library is the oldest."""


def named(name: str) -> Suite:
    """Return a suite.

    Raises:
        ValueError: there is none of this name.

    """
    for suite in SUITES:
        if suite.name == name:
            return suite
    names = ", ".join(suite.name for suite in SUITES)
    raise ValueError(f"there are no packages for {name!r}; the suites are {names}")

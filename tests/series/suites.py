"""Debian's suites, and the series of Slurm that each has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """A suite of Debian."""

    name: str
    """As mmdebstrap takes it."""
    slurm: str
    """The series of its Slurm."""
    more: tuple[str, ...] = ()
    """Packages beyond those of every suite."""
    without: tuple[str, ...] = ()
    """Packages that it does not have now."""

    @property
    def has_auth_slurm(self) -> bool:
        """Whether it has auth/slurm with the sackd that serves clients (Slurm 24.05 on)."""
        return "sackd" in self.more


SUITES = (
    Suite("bookworm", "22.05"),
    Suite("trixie", "24.11", ("sackd",)),
    Suite("testing", "26.05", ("sackd",), without=("rclone",)),
)

EVERY = ("python3-pytest", "python3-pytest-xdist", "procps", "kmod")
"""What the tests need on top of the groups of deploy/install-deps."""
GROUPS = ("build", "cluster", "accounting", "test")
"""The groups of deploy/install-deps that a root has."""


def named(name: str) -> Suite:
    """Return a suite.

    Raises:
        ValueError: there is none of this name.

    """
    for suite in SUITES:
        if suite.name == name:
            return suite
    names = ", ".join(suite.name for suite in SUITES)
    raise ValueError(f"there is no suite {name!r} here; the suites are {names}")

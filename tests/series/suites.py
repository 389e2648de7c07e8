"""Debian's suites, and the series of Slurm that each has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """One make-up of the clusters of a suite."""

    name: str
    variant: Mapping[str, object]
    """The fields of devcluster's Variant in which every cluster differs."""
    whole: bool
    """Whether the whole suite of tests is run, or one job of every kind with every end."""

    @property
    def slug(self) -> str:
        """Its name as a directory's."""
        return re.sub("[^A-Za-z0-9]+", "-", self.name)

    @property
    def clusters_share(self) -> bool:
        """Whether several can run on one host: auth/slurm and configless have one place there."""
        return self.variant["auth"] == "munge" and "configless" not in self.variant


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

    namespaces: tuple[str, ...] = ()
    """Plugins that give a job a mount namespace of its own."""

    def cells(self) -> list[Cell]:
        """Return what is run in it."""
        auths = ("munge", "slurm") if "sackd" in self.more else ("munge",)
        kinds: dict[str, dict[str, object]] = {"plain": {}, "configless": {"configless": True}}
        if "sackd" in self.more:
            kinds["RunInJob"] = {"run_in_job": True}
        kinds.update((plugin, {"namespace": plugin}) for plugin in self.namespaces)
        cells = [
            Cell(f"auth/{auth}, {name}", {**variant, "auth": auth}, whole=name == "plain")
            for auth in auths
            for name, variant in kinds.items()
        ]
        if "sackd" in self.more:
            variant = {"client_ids": True, "auth": "slurm"}
            cells.append(Cell("auth/slurm, use_client_ids", variant, whole=False))
        return cells


SUITES = (
    Suite("bookworm", "22.05", namespaces=("job_container/tmpfs",)),
    Suite("trixie", "24.11", ("sackd",), namespaces=("job_container/tmpfs",)),
    Suite(
        "testing",
        "26.05",
        ("sackd",),
        without=("rclone",),
        namespaces=("namespace/tmpfs", "namespace/linux"),
    ),
)

EVERY = ("python3-pytest", "python3-pytest-xdist")
"""What runs the tests in a root; the host has an environment of its own, tests/requirements.txt."""
GROUPS = ("build", "cluster-test")
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

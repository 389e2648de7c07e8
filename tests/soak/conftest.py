"""The soak's options, and its cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusters import cluster_of_its_own, say_at_the_end
from devcluster import Variant
from harness import Site

from soak.soak import prepared

NODES = 4
JOBS = 160
SEED = 12
"""Under it a short soak has its kills, a full spool and a mute service early."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add how long the soak is to be, and under which seed."""
    parser.addoption("--jobs", type=int, default=JOBS, help=f"so many jobs (default: {JOBS})")
    parser.addoption("--seed", type=int, default=SEED, help=f"of the operations (default: {SEED})")
    parser.addoption("--write-soak", action="store_true", help="write docs/measurements/soak.md")


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster of the soak's own."""
    options = {"nodes": NODES, "variant": Variant(clock=True)}
    with cluster_of_its_own(request, "soak", **options) as site, prepared(site):
        yield site


def pytest_configure(config: pytest.Config) -> None:
    """Let the cluster say at the end where its logs are."""
    say_at_the_end(config)

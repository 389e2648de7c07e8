"""The soak's options, and its cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusters import MESSAGES, cluster_of_its_own
from devcluster import Variant
from harness import Site

from soak.soak import prepared

NODES = 4
JOBS = 100
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


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say where the cluster's logs are, past what pytest captures."""
    for message in config.stash.get(MESSAGES, []):
        terminalreporter.write_line(message)

"""Fixtures of the tests on a real cluster, and what renews lives.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import SHARED, cluster_of_its_own, say, say_at_the_end
from forging import make_forger
from harness import Site
from lives.record import Record
from lives.together import Lives

WRITE_LIVES = "--write-lives"
"""The option by which lives.md is renewed."""
LONGEST_FIRST = (
    "test_tuning",
    "test_lives",
    "test_burst_buffers",
    "test_attacks_service",
    "test_replicas",
    "test_outages",
    "test_attacks",
    "test_plugin_file",
    "test_coordinators",
    "test_in_force",
    "test_attacks_node",
    "test_limits",
    "test_gain",
)
"""Modules that would keep one worker busy when the others have ended, were they not begun first."""
RECORD: pytest.StashKey[Record] = pytest.StashKey()
"""What lives.md is compared with, or renewed from."""


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up the cluster that most tests share. A module of tests may have its own instead."""
    with cluster_of_its_own(request, SHARED) as site:
        # Whichever test is the first, and wherever Slurm puts its job.
        site.introduce_nodes()
        yield site


@pytest.fixture(scope="module")
def forger(site: Site) -> Path:
    """Return a slurm.conf by which a user's sbatch sends any request."""
    return make_forger(site)


@pytest.fixture(autouse=True)
def _no_node_is_lost(site: Site) -> Iterator[None]:
    """After each test every node still takes jobs.

    Promise: a node drains
    """
    yield
    site.check_nodes()


@pytest.fixture(scope="module")
def lives(request: pytest.FixtureRequest, site: Site) -> Lives:
    """Let the jobs of all the module's selected combinations live at once."""
    return Lives(site, request, request.config.stash[RECORD])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that renews lives.md."""
    parser.addoption(WRITE_LIVES, action="store_true", help="write what was recorded into lives.md")


def pytest_configure(config: pytest.Config) -> None:
    """Read lives.md, and let the clusters say at the end where their logs are."""
    say_at_the_end(config)
    config.stash[RECORD] = Record(writes=config.getoption(WRITE_LIVES))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest modules; all else stays in its order."""
    last = len(LONGEST_FIRST)
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, last))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write lives.md, where that was asked for."""
    if session.config.stash[RECORD].write():
        say(session.config, "lives.md is renewed: look at what has changed in it")

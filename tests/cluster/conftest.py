"""Fixtures of the tests on a real cluster, and what renews lives.md."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusters import MESSAGES, SHARED, cluster_of_its_own, say
from harness import Site
from lives.record import Record
from lives.together import Lives

WRITE_LIVES = "--write-lives"
"""The option by which lives.md is renewed."""
RECORD: pytest.StashKey[Record] = pytest.StashKey()
"""What lives.md is compared with, or renewed from."""


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up the cluster that most tests share. A module of tests may have its own instead."""
    with cluster_of_its_own(request, SHARED) as site:
        # Whichever test is the first, and wherever Slurm puts its job.
        site.introduce_nodes()
        yield site


@pytest.fixture(autouse=True)
def _no_node_is_lost(site: Site) -> Iterator[None]:
    """After each test every node still takes jobs."""
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
    """Read lives.md."""
    config.stash[RECORD] = Record(writes=config.getoption(WRITE_LIVES))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write lives.md, where that was asked for."""
    if session.config.stash[RECORD].write():
        say(session.config, "lives.md is renewed: look at what has changed in it")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say where the clusters' logs are, past what pytest captures."""
    for message in config.stash.get(MESSAGES, []):
        terminalreporter.write_line(message)

"""Fixtures of the tests of the command."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import say_at_the_end

from command.place import Place, place_of_session
from command.service import Service, service


@pytest.fixture(scope="session")
def where(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Return the place in which the session's services run."""
    if os.geteuid() != 0 or "DATABASE_URL" not in os.environ:
        pytest.exit(
            "tests/command plays nodes and runs the command as their users: run it as root, by"
            " tests/with-postgres",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )
    with place_of_session(request, "command") as made:
        yield made


@pytest.fixture(scope="session")
def served(where: Place) -> Iterator[Service]:
    """Run the service that most tests share."""
    with service(where, "served") as running:
        yield running


@pytest.fixture
def shared(where: Place) -> Iterator[Path]:
    """Make a directory in which everybody reads and writes."""
    path = where.paths.scratch / "shared"
    path.mkdir()
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


def pytest_configure(config: pytest.Config) -> None:
    """Let what is to be said at the end be said."""
    say_at_the_end(config)

"""Fixtures of the tests with PostgreSQL as sites have it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from clusters import KEPT_LOGS, WORKER, say_at_the_end
from command.place import Place, PlayedSlurm, place_of_session
from command.service import More, Service

from database.servers import Server, keep_logs

Runs = Callable[[str, str, More], AbstractContextManager[Service]]
"""Runs a service of a name, on the database of a URL, with more in its service.toml."""


@pytest.fixture(scope="session")
def where(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Return the place in which the session's services run."""
    if os.geteuid() != 0:
        pytest.exit(
            "tests/database plays nodes, and runs servers as the account postgres: run it as root",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )
    with pytest.MonkeyPatch.context() as patch:
        # Each test has servers of its own.
        patch.setenv("DATABASE_URL", "postgres:///none?host=/nonexistent")
        with place_of_session(request, "database") as made:
            yield made


@pytest.fixture
def root(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Make a directory for servers, which their account can enter."""
    path = Path(tempfile.mkdtemp(prefix="io-autotune-database-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    if request.session.testsfailed:
        kept = KEPT_LOGS / f"database-servers{WORKER}"
        kept.mkdir(parents=True, exist_ok=True)
        keep_logs(path, kept)
    shutil.rmtree(path)


@pytest.fixture
def server(root: Path) -> Iterator[Server]:
    """Run a server with the service's database, without a schema."""
    made = Server(root, "h1")
    made.make()
    with made.running():
        made.create()
        yield made


@pytest.fixture
def run_service(where: Place) -> Runs:
    """Return what runs a service."""

    @contextmanager
    def run(name: str, url: str, more: More) -> Iterator[Service]:
        slurm = PlayedSlurm(where, f"{name}-alpha", "alpha")
        made = Service(where, name, name, [slurm])
        database = {"url": url, **more.get("database", {})}
        with made.running({**more, "database": database}):
            yield made

    return run


def pytest_configure(config: pytest.Config) -> None:
    """Let what is to be said at the end be said."""
    say_at_the_end(config)

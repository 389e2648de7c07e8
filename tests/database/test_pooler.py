"""A PgBouncer in transaction mode between the service and its database."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from command.jobs import End
from command.place import SERVICE_USER, Place
from command.service import ALICE
from devcluster import command

from database.conftest import Runs
from database.servers import Pooler, Server, await_in_log, held

SESSIONS = 3
"""Fewer than the service has connections: each of them uses any."""
JOBS = 30


def migrate(where: Place, url: str, expected: int = 0) -> str:
    """Bring the schema up to date, and return what the program says."""
    argv = [str(where.paths.bin / "io-autotuned"), "--migrate", url]
    done = command.run(argv, user=SERVICE_USER, timeout=60.0, check=False)
    assert done.returncode == expected, done.stderr
    return done.stderr


@pytest.fixture
def pooler(root: Path, server: Server) -> Pooler:
    """Return a PgBouncer before the test's server."""
    return Pooler(root, server, SESSIONS)


def test_starts_and_reports_at_once_share_few_sessions(
    where: Place, server: Server, pooler: Pooler, run_service: Runs
) -> None:
    """Promise: a report is counted twice

    Attack (database): Thirty jobs at once share three sessions of PgBouncer in transaction mode.
    Outcome: Each run is counted once.
    """
    migrate(where, server.url())
    with (
        pooler.running(),
        run_service("pooled", pooler.url, {"database": {"pooler": "transaction"}}) as served,
    ):
        for turn in range(3):
            jobs = [served.job(ALICE, f"pooled{number % 5}") for number in range(JOBS)]
            given = served.start(*jobs)
            runs = served.end([(job, one, End()) for job, one in zip(jobs, given, strict=True)])
            assert {run["state"] for run in runs} == {"counted"}, turn
        assert server.sql("select count(*), count(distinct job_id) from runs") == ["90|90"]
        assert server.sql("select count(*), count(distinct run_id) from reports") == ["90|90"]
        assert served.tuner(ALICE, "doctor").returncode == 0


def test_the_services_time_outs_are_in_force(
    where: Place, server: Server, pooler: Pooler, run_service: Runs
) -> None:
    migrate(where, server.url())
    with (
        pooler.running(),
        run_service("bounded", pooler.url, {"database": {"pooler": "transaction"}}) as served,
    ):
        served.run(ALICE, "bounded")
        with held(server, "lock table runs in access exclusive mode"):
            began = time.monotonic()
            (answer,) = served.try_start(served.job(ALICE, "bounded"))
            assert answer.problem is not None
            assert served.tuner(ALICE, "history", "bounded").returncode != 0
            await_in_log(server.log, "canceling statement due to lock timeout")
            assert time.monotonic() - began < 30.0
        served.run(ALICE, "bounded")
        # What a transaction has set is not left to the next client of its session.
        left = "select count(*) from pg_stat_activity where application_name like 'io-autotuned %'"
        assert server.sql(left) == ["0"]


def test_a_pooler_that_the_configuration_does_not_name_is_found(
    where: Place, server: Server, pooler: Pooler
) -> None:
    migrate(where, server.url())
    with pooler.running():
        said = migrate(where, pooler.url, expected=1)
        assert "unsupported startup parameter" in said
        assert 'set pooler = \\"transaction\\" in [database]' in said
    with pooler.running(ignore_startup_parameters="options"):
        said = migrate(where, pooler.url, expected=1)
        assert "the time-outs that the service sets for its sessions are not in force" in said
        assert 'set pooler = \\"transaction\\" in [database]' in said


def test_a_pooler_whose_server_is_gone_and_one_that_lacks_the_database_are_called_so(
    where: Place, server: Server, pooler: Pooler
) -> None:
    with pooler.running(ignore_startup_parameters="options"):
        said = migrate(where, pooler.url.replace("io_autotune", "other"), expected=1)
        assert "lacks the database" in said
        server.kill()
        assert "127.0.0.1" in migrate(where, pooler.url, expected=1)

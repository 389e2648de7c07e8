"""What ``--check`` lets pass starts, and what cannot start is refused with what to write."""

from __future__ import annotations

import subprocess
import urllib.request
from pathlib import Path

from command.jobs import End
from command.place import Place
from command.service import ALICE, ROOT, More
from devcluster import command, ports
from harness import await_true

from database.conftest import Runs
from database.servers import Server, await_in_log

PATIENCE_MS = 2000.0
"""A prolog's."""


def checked(
    where: Place, served_toml: Path, line: str, root: Path
) -> subprocess.CompletedProcess[str]:
    """Let the program check a service.toml in which the database's URL is on this line."""
    text = served_toml.read_text(encoding="utf-8").splitlines()
    changed = [line if one.startswith("url = ") else one for one in text]
    path = root / "service.toml"
    path.write_text("\n".join(changed), encoding="utf-8")
    argv = [str(where.paths.bin / "io-autotuned"), "--config", str(path), "--check"]
    return command.run(argv, check=False)


def test_what_cannot_start_does_not_pass(
    where: Place, server: Server, run_service: Runs, root: Path
) -> None:
    """Attack (database): The database's URL is empty, another's, or misspelt.
    Outcome: It is refused with what to write, and no password is shown.
    """
    with run_service("checked", server.url(), {}):
        served_toml = where.paths.etc / "checked.toml"
        done = checked(where, served_toml, f'url = "{server.url()}"', root)
        assert done.returncode == 0, done.stderr
        for url, expected in (
            ("", "the URL is empty"),
            ("host=h user=me password=s3cret", "this is no URL"),
            ("mysql:///io_autotune", "mysql:// is not PostgreSQL"),
            ("postgres://me:s3cret@h/db?sslmode=verify_full", "it is disable, allow, prefer"),
            ("postgres://me:s3cret@h/db?sslmod=require", "is unknown: the service knows"),
            ("postgres://h/db?sslmode=verify-full", "needs sslrootcert"),
            (
                "postgres://me:s3cret@h/db?sslmode=verify-full&sslrootcert=/none.pem",
                "sslrootcert=/none.pem: No such",
            ),
        ):
            done = checked(where, served_toml, f'url = "{url}"', root)
            assert done.returncode == 1, url
            assert expected in done.stderr, f"{url}: {done.stderr}"
            assert "s3cret" not in done.stderr


def gauges(port: int) -> dict[str, int]:
    """Return what the metrics say of the database."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5.0) as answer:
        lines = [line.split() for line in answer.read().decode().splitlines()]
    return {
        line[0].removeprefix("io_autotune_database_"): int(line[1])
        for line in lines
        if line[0].startswith("io_autotune_database_")
    }


def test_a_database_that_takes_no_writes_is_told_everywhere_and_nothing_is_lost(
    where: Place, server: Server, run_service: Runs
) -> None:
    """Promise: a report is lost

    Attack (database): The server takes no writes, ends, vanishes, or has no role, database or
    connection left.
    Outcome: It is named within seconds; histories can be read, and reports count once later.
    """
    port = ports.ephemeral()
    said = "takes no writes: default_transaction_read_only is on"
    more: More = {"listen": {"metrics": f"127.0.0.1:{port}"}}
    with run_service("read-only", server.url(), more) as served:
        served.run(ALICE, "before")
        assert gauges(port) == {"up": 1, "writable": 1}
        running, later = served.job(ALICE, "before"), served.job(ALICE, "before")
        (given,) = served.start(running)
        server.set("default_transaction_read_only = on")
        await_true("it is not ready", lambda: not served.readiness()["ready"])
        (problem,) = served.readiness()["problems"]
        assert said in problem
        assert "alter system reset default_transaction_read_only" in problem
        await_true("the metrics say so", lambda: gauges(port) == {"up": 1, "writable": 0})
        found = {one["name"]: one for one in served.told(ROOT, "doctor")["checks"]}
        assert found["database"]["state"] == "failed"
        assert said in found["database"]["detail"]
        assert "alter system reset" in found["database"]["fix"]
        assert found["schema"]["state"] == "ok"
        (answer,) = served.try_start(later)
        assert "takes no writes now" in str(answer.problem)
        assert answer.milliseconds < PATIENCE_MS
        (answer,) = served.try_finish((running, given, End()))
        assert "takes no writes now" in str(answer.problem)
        assert served.ask(ALICE, "status", "before"), "histories can be read"
        server.set("default_transaction_read_only = off")
        await_true("it is ready", lambda: served.readiness()["ready"])
        (run,) = served.end([(running, given, End())])
        assert run["state"] == "counted"
        served.run(ALICE, "before")
        assert gauges(port) == {"up": 1, "writable": 1}
        counted = "select count(*), count(distinct run_id) from reports"
        assert server.sql(counted) == ["3|3"]
    await_in_log(where.paths.log_of("read-only"), said)


def test_a_role_without_connections_and_a_server_that_ends_are_called_so(
    server: Server, run_service: Runs
) -> None:
    server.sql("create role io_autotune_limited superuser login")
    with run_service("limited", server.url(user="io_autotune_limited"), {}) as served:
        # A superuser has no limit, and it owns what it has made.
        server.sql("alter role io_autotune_limited nosuperuser connection limit 0")
        drop = "select pg_terminate_backend(pid) from pg_stat_activity"
        server.sql(f"{drop} where usename = 'io_autotune_limited'")
        await_true("it is not ready", lambda: not served.readiness()["ready"])
        (problem,) = served.readiness()["problems"]
        assert "too many connections for role" in problem
        assert "connection limit" in problem
        server.sql("alter role io_autotune_limited connection limit -1")
        await_true("it is ready", lambda: served.readiness()["ready"])
        server.kill()
        await_true("it is not ready", lambda: not served.readiness()["ready"])
        (problem,) = served.readiness()["problems"]
        assert "no server listens there" in problem
        (answer,) = served.try_start(served.job(ALICE, "without"))
        assert answer.milliseconds < PATIENCE_MS

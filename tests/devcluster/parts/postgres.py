"""PostgreSQL: the cluster's own, reachable by its Unix socket only."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

from devcluster import accounts, clock, command, files
from devcluster.errors import ClusterError
from devcluster.parts.part import Part
from devcluster.paths import Paths
from devcluster.record import Record
from devcluster.render import DATABASE
from devcluster.users import DATABASE_ADMIN, SERVICE_USER

_DEBIAN = Path("/usr/lib/postgresql")
_ROLES = Path(__file__).resolve().parents[3] / "deploy" / "sql" / "roles.sql"


def programs(data: Path, debian: Path = _DEBIAN) -> Path:
    """Return the directory of PostgreSQL's programs: of the version of ``data``, else the newest.

    Raises:
        ClusterError: there is none, or none of the version that the data has.

    """
    versions = {
        int(found.parent.parent.name): found.parent
        for found in debian.glob("*/bin/initdb")
        if re.fullmatch(r"[0-9]+", found.parent.parent.name)
    }
    try:
        wanted = int((data / "PG_VERSION").read_text(encoding="ascii"))
    except FileNotFoundError:
        return versions[max(versions)] if versions else _in_path()
    if wanted in versions:
        return versions[wanted]
    directory = _in_path()
    shown = command.run([str(directory / "postgres"), "--version"]).stdout
    found_version = re.search(r"\b([0-9]+)\.", shown)
    if found_version is None or int(found_version[1]) != wanted:
        raise ClusterError(
            f"the data in {data} is PostgreSQL {wanted}'s, which is not installed; install it,"
            " or run 'destroy' and then 'up' for an empty database"
        )
    return directory


def _in_path() -> Path:
    """Return the directory of the initdb that PATH has, links resolved."""
    return Path(command.find("initdb")).resolve().parent


def connect_args(paths: Paths, record: Record) -> list[str]:
    """Return the options by which PostgreSQL's clients reach the cluster's own, as superuser."""
    where = [f"--host={paths.pg_sockets}", f"--port={record.ports.postgresql}"]
    return [*where, f"--username={DATABASE_ADMIN}"]


def part(paths: Paths, record: Record) -> Part:
    """Return the part; the service's user runs PostgreSQL, and its role is the deployed one."""
    account = accounts.find(SERVICE_USER)
    directory = programs(paths.pg_data)
    connect = connect_args(paths, record)

    def prepare() -> None:
        if paths.pg_data.exists():
            return
        # Made beside and renamed when whole: an initdb that was interrupted leaves nothing behind.
        new = paths.pg_data.with_name("pg.new")
        shutil.rmtree(new, ignore_errors=True)
        files.directory(new, 0o700, account.uid, account.gid)
        command.run(
            [
                str(directory / "initdb"),
                f"--pgdata={new}",
                f"--username={DATABASE_ADMIN}",
                "--auth=peer",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
                "--no-instructions",
            ],
            user=SERVICE_USER,
            timeout=120.0,
        )
        new.rename(paths.pg_data)

    def probe() -> str | None:
        argv = [str(directory / "pg_isready"), *connect, "--dbname=postgres", "--timeout=2"]
        done = command.run(argv, user=SERVICE_USER, check=False)
        return None if done.returncode == 0 else (done.stdout + done.stderr).strip()

    def complete() -> None:
        query = f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"
        psql = [str(directory / "psql"), *connect, "--no-psqlrc", "--quiet"]
        argv = [*psql, "--tuples-only", "--no-align", "--dbname=postgres", f"--command={query}"]
        if command.run(argv, user=SERVICE_USER).stdout.strip() != "1":
            create = [str(directory / "createdb"), *connect, "--maintenance-db=postgres", DATABASE]
            command.run(create, user=SERVICE_USER)
        roles = [*psql, "--set=ON_ERROR_STOP=1", "--single-transaction", f"--dbname={DATABASE}"]
        command.run(roles, user=SERVICE_USER, stdin=_ROLES.read_text(encoding="utf-8"))

    return Part(
        name="postgresql",
        argv=[
            str(directory / "postgres"),
            "-D",
            str(paths.pg_data),
            f"--config-file={paths.postgresql_conf}",
        ],
        env=clock.env(paths, record),
        log=paths.log_of("postgresql"),
        output=paths.log_of("postgresql"),
        account=account,
        inputs=[paths.postgresql_conf, paths.pg_hba_conf, paths.pg_ident_conf],
        prepare=prepare,
        probe=probe,
        complete=complete,
        # A fast shutdown: TERM would wait for every client to leave.
        stop=signal.SIGINT,
        stop_seconds=30.0,
    )

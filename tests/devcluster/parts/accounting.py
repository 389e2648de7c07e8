"""slurmdbd, Slurm's accounting daemon, and the database that it keeps its records in."""

from __future__ import annotations

import os
import shutil
import socket

from devcluster import accounts, command, files
from devcluster.parts.part import Part
from devcluster.parts.slurm import env
from devcluster.paths import Paths
from devcluster.record import Record
from devcluster.users import SLURM_USER

_GROUP = "accounting"
"""The group of deploy/install-deps that installs these programs."""


def parts(paths: Paths, record: Record) -> list[Part]:
    """Return the database and slurmdbd; SlurmUser runs both."""
    return [_database(paths), _daemon(paths, record)]


def _database(paths: Paths) -> Part:
    account = accounts.find(SLURM_USER)

    def prepare() -> None:
        if paths.mariadb_data.exists():
            return
        # As with PostgreSQL: made beside, and renamed when whole.
        new = paths.mariadb_data.with_name("mariadb.new")
        shutil.rmtree(new, ignore_errors=True)
        files.directory(new, 0o700, account.uid, account.gid)
        command.run(
            [
                command.find("mariadb-install-db", _GROUP),
                "--no-defaults",
                f"--datadir={new}",
                "--auth-root-authentication-method=socket",
                f"--auth-root-socket-user={SLURM_USER}",
                "--skip-test-db",
                "--skip-name-resolve",
            ],
            user=SLURM_USER,
            timeout=120.0,
        )
        new.rename(paths.mariadb_data)

    def probe() -> str | None:
        # A server that takes connections greets first (the protocol's handshake packet).
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(2.0)
                connection.connect(str(paths.mariadb_socket))
                return None if connection.recv(1) else "it greets nobody yet"
        except OSError as error:
            return f"{paths.mariadb_socket}: {error}"

    return Part(
        name="mariadb",
        argv=[command.find("mariadbd", _GROUP), f"--defaults-file={paths.mariadb_conf}"],
        env=command.base_env(),
        log=paths.log_of("mariadb"),
        output=paths.log_of("mariadb"),
        account=account,
        inputs=[paths.mariadb_conf, paths.mariadb_init],
        prepare=prepare,
        probe=probe,
        stop_seconds=30.0,
    )


def _daemon(paths: Paths, record: Record) -> Part:
    account = accounts.find(SLURM_USER)

    def prepare() -> None:
        log = paths.log_of("slurmdbd")
        log.touch()
        os.chown(log, account.uid, account.gid)

    def probe() -> str | None:
        argv = ["sacctmgr", "--noheader", "--parsable2", "list", "cluster", "format=cluster"]
        done = command.run(argv, env=env(paths), check=False)
        return None if done.returncode == 0 else (done.stdout + done.stderr).strip()

    def complete() -> None:
        argv = ["sacctmgr", "--noheader", "--parsable2", "list", "cluster", "format=cluster"]
        if record.name not in command.run(argv, env=env(paths)).stdout.split():
            add = ["sacctmgr", "--immediate", "add", "cluster", record.name]
            command.run(add, env=env(paths))

    return Part(
        name="slurmdbd",
        argv=[command.find("slurmdbd", _GROUP), "-D"],
        # MariaDB's client library takes the socket's path from MYSQL_UNIX_PORT.
        env={**env(paths), "MYSQL_UNIX_PORT": str(paths.mariadb_socket)},
        log=paths.log_of("slurmdbd"),
        output=paths.output_of("slurmdbd"),
        account=account,
        inputs=[paths.slurmdbd_conf],
        port=record.ports.slurmdbd,
        prepare=prepare,
        probe=probe,
        complete=complete,
        # What slurmctld has sent meanwhile is written to the database first.
        stop_seconds=30.0,
    )

"""Real PostgreSQL servers and PgBouncer, in a test's own directory.

They listen on the loopback address and on sockets there. All run as the account ``postgres``, and
are ended by whoever started them.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from command.place import SERVICE_USER
from devcluster import accounts, command, files, ports, process
from devcluster.parts import postgres
from harness import await_true, await_value

ADMIN = "postgres"
DATABASE = "io_autotune"
BEGIN_SECONDS = 60.0
END_SECONDS = 30.0
TRUST = "local all all trust"


class Server:
    """A PostgreSQL server."""

    def __init__(self, root: Path, name: str) -> None:
        """Have one of this name in a directory that its account can enter."""
        self.name = name
        self.sockets = root / name
        self.data = self.sockets / "data"
        self.log = self.sockets / "log"
        self.port = ports.ephemeral()
        self._account = accounts.find(SERVICE_USER)
        self._running: process.Identity | None = None
        files.directory(self.sockets, 0o755, self._account.uid, self._account.gid)

    def program(self, name: str) -> str:
        """Return the path of one of PostgreSQL's programs."""
        return str(postgres.programs(self.data) / name)

    def make(self) -> None:
        """Make its files."""
        options = [f"--username={ADMIN}", "--encoding=UTF8", "--locale=C", "--no-sync"]
        argv = [self.program("initdb"), f"--pgdata={self.data}", "--auth=trust", *options]
        command.run(argv, user=SERVICE_USER, timeout=BEGIN_SECONDS)
        self.admit(TRUST)

    def follow(self, primary: Server) -> None:
        """Make its files a copy of another server's, which it is a standby of."""
        where = [f"--host={primary.sockets}", f"--port={primary.port}", f"--username={ADMIN}"]
        to = [f"--pgdata={self.data}", "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        argv = [self.program("pg_basebackup"), *where, *to]
        command.run(argv, user=SERVICE_USER, timeout=BEGIN_SECONDS)

    def admit(self, *lines: str) -> None:
        """Write pg_hba.conf."""
        text = "".join(f"{line}\n" for line in lines)
        account = self._account
        path = self.data / "pg_hba.conf"
        files.write(path, text, mode=0o600, uid=account.uid, gid=account.gid)

    @contextmanager
    def running(self, **conf: str) -> Iterator[None]:
        """Run it with more in its configuration, until it is left or killed."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.sockets),
            "fsync": "off",
            **conf,
        }
        argv = [self.program("postgres"), "-D", str(self.data)]
        argv += [f"--{name}={value}" for name, value in settings.items()]
        env = command.base_env()
        self._running = process.spawn(argv, env=env, output=self.log, account=self._account)
        try:
            problem = process.wait_until(self._unready, BEGIN_SECONDS, self._running)
            assert problem is None, f"{self.name} {problem}: {self.log.read_text()[-2000:]}"
            yield
        finally:
            process.end(self._running, signal.SIGINT, END_SECONDS)

    def kill(self) -> None:
        """End it as a host's end does: nothing more is written or answered."""
        assert self._running is not None
        # Its children end by themselves when they find that it has.
        process.end(self._running, signal.SIGQUIT, END_SECONDS)

    def promote(self) -> None:
        """Let a standby take writes."""
        argv = [self.program("pg_ctl"), "promote", f"--pgdata={self.data}", "--wait"]
        command.run(argv, user=SERVICE_USER, timeout=BEGIN_SECONDS)

    def _unready(self) -> str | None:
        where = [f"--host={self.sockets}", f"--port={self.port}", "--timeout=2"]
        argv = [self.program("pg_isready"), *where]
        done = command.run(argv, user=SERVICE_USER, check=False)
        return None if done.returncode == 0 else (done.stdout + done.stderr).strip()

    def psql(self, database: str) -> list[str]:
        """Return the command line of a superuser's session."""
        where = [f"--host={self.sockets}", f"--port={self.port}", f"--username={ADMIN}"]
        shape = ["--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set=ON_ERROR_STOP=1"]
        return [self.program("psql"), *where, *shape, f"--dbname={database}"]

    def sql(self, *queries: str, database: str = DATABASE) -> list[str]:
        """Return the lines that a superuser is answered; each query is a transaction."""
        given = [f"--command={query}" for query in queries]
        return command.run([*self.psql(database), *given]).stdout.splitlines()

    def set(self, setting: str) -> None:
        """Change a setting while it runs, such as ``name = value``."""
        self.sql(f"alter system set {setting}", "select pg_reload_conf()", database="postgres")

    def create(self) -> None:
        """Make the service's database."""
        self.sql(f"create database {DATABASE}", database="postgres")

    def url(self, *others: Server, **parameters: str) -> str:
        """Return the URL of the database, on this server or one of the others, by their sockets."""
        servers = (self, *others)
        hosts = ",".join(str(server.sockets) for server in servers)
        ports = ",".join(str(server.port) for server in servers)
        given = {"user": ADMIN, "host": hosts, "port": ports, **parameters}
        return f"postgres:///{DATABASE}?{_query(given)}"

    def tcp_url(self, host: str, user: str = ADMIN, **parameters: str) -> str:
        """Return the URL of the database on the loopback address, by one of its names."""
        query = f"?{_query(parameters)}" if parameters else ""
        return f"postgres://{user}@{host}:{self.port}/{DATABASE}{query}"


def _query(parameters: Mapping[str, str]) -> str:
    return "&".join(f"{name}={value}" for name, value in parameters.items())


@contextmanager
def held(server: Server, statement: str) -> Iterator[None]:
    """Keep what a statement locks, for as long as this lasts."""
    argv = server.psql(DATABASE)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"begin; {statement}; select 'held';\n")
        child.stdin.flush()
        assert child.stdout.readline() == "held\n"
        try:
            yield
        finally:
            child.stdin.close()


class Pooler:
    """A PgBouncer in transaction mode, before a server."""

    def __init__(self, root: Path, server: Server, size: int) -> None:
        """Have one with so many sessions for all of its clients."""
        self._directory = root / "pgbouncer"
        self._log = self._directory / "log"
        self._server = server
        self._size = size
        self._port = ports.ephemeral()
        self._account = accounts.find(SERVICE_USER)
        files.directory(self._directory, 0o755, self._account.uid, self._account.gid)

    @property
    def url(self) -> str:
        """The URL of the database over it."""
        return f"postgres://{ADMIN}@127.0.0.1:{self._port}/{DATABASE}"

    @contextmanager
    def running(self, **more: str) -> Iterator[None]:
        """Run it, with more in its configuration."""
        users = self._directory / "users.txt"
        files.write(users, f'"{ADMIN}" ""\n', mode=0o644)
        server = self._server
        conf = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self._port),
            "unix_socket_dir": str(self._directory),
            "auth_type": "trust",
            "auth_file": str(users),
            "pool_mode": "transaction",
            "default_pool_size": str(self._size),
            "max_client_conn": "100",
            **more,
        }
        lines = [f"{name} = {value}" for name, value in conf.items()]
        where = f"{DATABASE} = host={server.sockets} port={server.port} user={ADMIN}"
        text = "\n".join(["[databases]", where, "[pgbouncer]", *lines, ""])
        ini = self._directory / "pgbouncer.ini"
        files.write(ini, text, mode=0o644)
        running = process.spawn(
            [command.find("pgbouncer", "test"), str(ini)],
            env=command.base_env(),
            output=self._log,
            account=self._account,
        )
        try:
            await_true("PgBouncer", self._answers)
            yield
        finally:
            assert process.end(running, signal.SIGTERM, END_SECONDS), "PgBouncer does not end"

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0


def await_in_log(path: Path, text: str, since: int = 0) -> str:
    """Wait until a log has a text behind so many bytes, and return the line."""

    def look() -> str | None:
        log = path.read_bytes()[since:].decode("utf-8", "replace") if path.exists() else ""
        return next((line for line in log.splitlines() if text in line), None)

    return await_value(f"{text!r} in {path}", look)


def keep_logs(root: Path, kept: Path) -> None:
    """Keep what servers have logged."""
    for log in root.glob("*/log"):
        shutil.copy(log, kept / f"{log.parent.name}.log")

"""PostgreSQL: a server of its own loads a table, changes rows and answers, by elapsed time."""

import atexit
import contextlib
import functools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from measure_local.programs.program import Chosen, Program, RunFailed

_ACCOUNT = "postgres"
"""Debian's, as PostgreSQL refuses to run as root."""
_IS_ROOT = os.geteuid() == 0
_CLEAR = "drop table if exists orders, customers; checkpoint;"
_UPDATES = 30
_WORK = "\n".join(
    [
        "begin;",
        "create table customers(id integer, name text);",
        "create table orders(id integer, customer integer, amount integer, note text);",
        "insert into customers select n, md5(n::text) from generate_series(1, 4000) as n;",
        (
            "insert into orders select n, n * 7919 % 4000, n * 31 % 1009, repeat(md5(n::text), 3)"
            " from generate_series(1, 20000) as n;"
        ),
        "commit;",
        "create index on orders(id);",
        "analyze customers, orders;",
        *(
            f"update orders set amount = amount + 1 where id = {number * 613 % 20000 + 1};"
            for number in range(_UPDATES)
        ),
        (
            "select count(*) from (select customer, note, sum(amount) from orders"
            " group by customer, note order by note) as grouped;"
        ),
        (
            "select name, sum(amount) as total, count(distinct note) from orders"
            " join customers on customers.id = customer group by name order by total desc limit 10;"
        ),
        *(
            f"select sum(amount) from orders where id between {low} and {low + 400};"
            for low in range(0, 20000, 500)
        ),
    ]
)


class _Server:
    """The files of a server that is started for each run, and its programs."""

    def __init__(self) -> None:
        """Makes an empty server on a disk, where its account can enter."""
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not found:
            raise RunFailed("there is no /usr/lib/postgresql: run deploy/install-deps cluster")
        self._programs = found[-1]
        self._root = Path(tempfile.mkdtemp(prefix="io-autotune-measure.", dir="/var/tmp"))
        atexit.register(shutil.rmtree, self._root, ignore_errors=True)
        if _IS_ROOT:
            shutil.chown(self._root, _ACCOUNT, _ACCOUNT)
        words = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        made = self._begin("initdb", [*words, "--no-sync", f"--pgdata={self._data}"])
        if made.wait() != 0:
            raise RunFailed(f"initdb: {self._said()}")

    @property
    def _data(self) -> Path:
        return self._root / "data"

    def _said(self) -> str:
        return (self._root / "log").read_text("utf-8", "replace")[-2000:]

    def _begin(self, program: str, words: Sequence[str]) -> subprocess.Popen[bytes]:
        with (self._root / "log").open("wb") as log:
            return subprocess.Popen(
                [self._programs / program, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._root,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                user=_ACCOUNT if _IS_ROOT else None,
                group=_ACCOUNT if _IS_ROOT else None,
                extra_groups=[] if _IS_ROOT else None,
            )

    @contextlib.contextmanager
    def running(self, settings: Sequence[str]) -> Iterator[None]:
        """The server with these settings, which is gone at the end."""
        fixed = ["listen_addresses=", f"unix_socket_directories={self._root}", "max_wal_senders=0"]
        words = [word for setting in [*fixed, *settings] for word in ("-c", setting)]
        server = self._begin("postgres", ["-D", str(self._data), *words])
        try:
            # The last line of this file says how far the server has come (pg_ctl reads it too).
            noted = self._data / "postmaster.pid"
            while not (noted.exists() and noted.read_text("utf-8").rstrip().endswith("ready")):
                if server.poll() is not None:
                    raise RunFailed(f"postgres {settings}: {self._said()}")
                time.sleep(0.005)
            yield
        finally:
            # A fast shutdown: sessions are ended, and all is written.
            server.send_signal(signal.SIGINT)
            server.wait()

    def ask(self, statements: str) -> None:
        command = [
            "psql",
            "--no-psqlrc",
            "--quiet",
            "--set=ON_ERROR_STOP=1",
            f"--host={self._root}",
        ]
        done = subprocess.run(
            [*command, "--username=postgres", "--output=/dev/null", "--file=-", "postgres"],
            input=statements.encode(),
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            raise RunFailed(done.stderr.decode("utf-8", "replace"))


_server = functools.cache(_Server)


def _postgresql(_folder: Path, chosen: Chosen) -> float:
    server = _server()
    units = {"shared_buffers_kib": "shared_buffers", "work_mem_kib": "work_mem"}
    settings = [
        f"{units[name]}={value}kB" if name in units else f"{name}={value}"
        for name, value in chosen.items()
    ]
    with server.running(settings):
        server.ask(_CLEAR)
        start = time.perf_counter()
        server.ask(_WORK)
        return time.perf_counter() - start


POSTGRESQL = Program(
    "postgresql",
    "PostgreSQL 15: 20000 rows are loaded and indexed, 30 changed one by one, and some grouped, "
    "joined and looked up; elapsed time",
    {
        "shared_buffers_kib": [128, 4096, 131072],
        "work_mem_kib": [64, 4096, 32768],
        "jit_above_cost": [0, 2000, 100000],
        "synchronous_commit": ["on", "off"],
        "wal_compression": ["off", "lz4"],
        "wal_level": ["minimal", "replica"],
    },
    frozenset({"synchronous_commit", "wal_compression", "wal_level"}),
    {
        "shared_buffers_kib": 131072,
        "work_mem_kib": 4096,
        "jit_above_cost": 100000,
        "synchronous_commit": "on",
        "wal_compression": "off",
        "wal_level": "replica",
    },
    _postgresql,
    needs=("psql",),
)

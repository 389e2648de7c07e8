"""Where it is measured: a private cluster, PostgreSQL as a site has it, and services of our own."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster import Cluster, accounts, command, files, ports, process, record
from devcluster.parts import munge, postgres
from devcluster.ports import HOST, NODES_HOST
from devcluster.render import database_url
from devcluster.supervisor import Supervisor
from devcluster.users import JOB_USERS, SERVICE_USER

DURABLE = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "max_connections": "200",
}
"""A private cluster's PostgreSQL does not flush; a site's does, and has this much memory."""
STUDIES_CLUSTER = "bench"
"""Slurm's name of the cluster that the made-up jobs are of."""
READY_SECONDS = 60.0


@dataclass(frozen=True)
class Service:
    """An io-autotuned with a database of its own."""

    identity: process.Identity
    client_toml: Path
    database: str


class Place:
    """A private cluster that is up, for measuring."""

    def __init__(self, cluster: Cluster, build: Path, *, durable: bool = True) -> None:
        """Measure on a cluster with what is in the build directory."""
        self.cluster = cluster
        self.build = build
        self.directory = cluster.root / "bench"
        self._account = accounts.find(SERVICE_USER)
        known = record.load(cluster.paths.record)
        assert known is not None, "the cluster has no record"
        self.record = known
        files.directory(self.directory, 0o755, self._account.uid, self._account.gid)
        if durable:
            self._make_durable()

    def _make_durable(self) -> None:
        for name, value in DURABLE.items():
            self.sql("postgres", f"alter system set {name} = '{value}'")
        self._supervisor().end("io-autotuned")
        self._supervisor().end("postgresql")
        self.cluster.up()
        # Two services and pgbench together have more connections than one service may have.
        self.sql("postgres", f'alter role "{SERVICE_USER}" connection limit -1')

    def _supervisor(self) -> Supervisor:
        return Supervisor(self.cluster.paths.processes, lambda _message: None)

    def pg(self, program: str, *arguments: str, timeout: float = 600.0) -> str:
        """Run a program of PostgreSQL's, and return its output."""
        paths = self.cluster.paths
        argv = [
            str(postgres.programs(paths.pg_data) / program),
            *postgres.connect_args(paths, self.record),
            *arguments,
        ]
        return command.run(argv, user=SERVICE_USER, timeout=timeout).stdout

    def sql(self, database: str, query: str) -> list[list[str]]:
        """Return what a database answers, as rows of text."""
        options = ["--no-psqlrc", "--tuples-only", "--no-align", "--field-separator=\t", "--quiet"]
        once = ["--set=ON_ERROR_STOP=1", f"--dbname={database}", f"--command={query}"]
        text = self.pg("psql", *options, *once)
        return [line.split("\t") for line in text.splitlines()]

    @contextmanager
    def database(self, name: str, template: str | None = None) -> Iterator[str]:
        """Make a database, empty or a copy, and drop it afterwards."""
        copied = f" template {template}" if template else ""
        self.sql("postgres", f"drop database if exists {name} with (force)")
        self.sql("postgres", f'create database {name} owner "{SERVICE_USER}"{copied}')
        try:
            yield name
        finally:
            self.sql("postgres", f"drop database {name} with (force)")

    @contextmanager
    def service(
        self, database: str, *, munge: bool = True, tcp: bool = False, study: str = ""
    ) -> Iterator[Service]:
        """Run an io-autotuned on a database; without munge its credentials cost nothing.

        With ``tcp`` its nodes ask by TCP, as compute nodes do.
        """
        paths = self.cluster.paths
        socket = self.directory / f"{database}.sock"
        nodes_socket = self.directory / f"{database}-nodes.sock"
        service_toml = self.directory / f"{database}.toml"
        client_toml = self.directory / f"{database}-client.toml"
        port = ports.ephemeral()
        of_nodes = f"tcp:{NODES_HOST}:{port}" if tcp else f"unix:{nodes_socket}"
        url = database_url(paths, self.record, SERVICE_USER, database)
        texts = {
            service_toml: f"""[listen]
unix = "{socket}"
tcp = "{HOST}:{port}"
nodes_unix = "{nodes_socket}"
nodes_tcp = "{NODES_HOST}:{port}"
# The nodes of one job are one host here, with fewer privileged ports than nodes.
nodes_any_port = true
{"host_connections = 20000" if tcp else ""}
[database]
url = "{url}"
[munge]
socket = "{paths.munge_socket}"
[access]
admins = [0]
[accelerators]
directory = "{paths.accelerators}"
default = "romio"
[slurm]
cluster = "{STUDIES_CLUSTER}"
sources = []
[users]
studies = 100000
[study]
{study}
""",
            client_toml: f"""endpoints = ["unix:{socket}", "tcp:{HOST}:{port}"]
node_endpoints = ["{of_nodes}"]
service_user = "{SERVICE_USER}"
munge_socket = "{paths.munge_socket}"
""",
        }
        for path, text in texts.items():
            files.write(path, text, mode=0o644)
        log = self.directory / f"{database}.log"
        with log.open("ab") as output:
            child = subprocess.Popen(
                [str(paths.bin / "io-autotuned"), "--config", str(service_toml)],
                env={**command.base_env(), **self._credentials(munge=munge)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=self._account.uid,
                group=self._account.gid,
                extra_groups=self._account.groups,
            )
        try:
            identity = process.identify(child.pid)
            assert identity is not None, f"io-autotuned ended at once; see {log}"
            problem = process.wait_until(
                lambda: None if socket.is_socket() else f"no socket; see {log}", READY_SECONDS
            )
            assert problem is None, problem
            yield Service(identity, client_toml, database)
        finally:
            child.terminate()
            child.wait(timeout=60)
            socket.unlink(missing_ok=True)
            nodes_socket.unlink(missing_ok=True)

    def client(
        self, program: str, service: Service, *arguments: str, munge: bool = True
    ) -> dict[str, Any]:
        """Run one of the clients in Rust against a service, as root, and return what it prints.

        It has no privileged ports: ten thousand nodes of one host would look for free ones at once.
        """
        argv = [
            *("setpriv", "--bounding-set=-net_bind_service"),
            str(self.cluster.paths.bin / program),
            f"--config={service.client_toml}",
            f"--cluster={STUDIES_CLUSTER}",
            *arguments,
        ]
        env = {**command.base_env(), **self._credentials(munge=munge)}
        before = _children_seconds()
        text = command.run(argv, env=env, timeout=600.0).stdout
        return {**json.loads(text), "processor_seconds": _children_seconds() - before}

    @contextmanager
    def flooded(self, service: Service, floods: Sequence[Sequence[str]]) -> Iterator[None]:
        """Let each user send all of these meanwhile.

        A site's users send from another host: here they have a munged and a processor of their own
        (:meth:`sharing_out_processors`).
        """
        paths = self.cluster.paths
        unix = paths.run / "elsewhere-munge.sock"
        munged = munge.argv(paths, "elsewhere-munged", unix)
        config = service.client_toml.with_name("elsewhere-client.toml")
        text = service.client_toml.read_text(encoding="utf-8")
        files.write(config, text.replace(str(paths.munge_socket), str(unix)), mode=0o644)
        with contextlib.ExitStack() as stack:
            stack.enter_context(_last(munged, None))
            ready = process.wait_until(
                lambda: None if unix.is_socket() else "another munged is not there", READY_SECONDS
            )
            assert ready is None, ready
            flood = [str(paths.bin / "flood"), f"--config={config}", "--seconds=3600"]
            sending = [
                stack.enter_context(_last([*flood, *arguments], account))
                for account in map(accounts.find, JOB_USERS)
                for arguments in floods
            ]
            yield
            ended = [child.args for child in sending if child.poll() is not None]
            assert not ended, f"floods ended early: {ended}"

    @contextmanager
    def sharing_out_processors(self) -> Iterator[None]:
        """Leave the last processor to who floods; this process and the cluster have the others."""
        everything = _processors()
        assert len(everything) > 1, "a processor for senders and one for the service are needed"

        def use(processors: Sequence[int]) -> None:
            os.sched_setaffinity(0, processors)
            for part in ("munged", "postgresql"):
                pid = self.pid_of(part)
                for one in [pid, *process.descendants([pid])]:
                    for task in Path(f"/proc/{one}/task").iterdir():
                        with contextlib.suppress(ProcessLookupError):
                            os.sched_setaffinity(int(task.name), processors)

        use(everything[:-1])
        try:
            yield
        finally:
            use(everything)

    def _credentials(self, *, munge: bool) -> dict[str, str]:
        return {} if munge else {"LD_LIBRARY_PATH": str(self.build / "free_munge")}

    def seconds_of(self, *roots: int) -> float:
        """Return the processor time that processes and what descends from them have used."""
        return sum(map(_processor_seconds, [*roots, *process.descendants(roots)]))

    @contextmanager
    def using(self, users: Mapping[str, int]) -> Iterator[dict[str, float]]:
        """Yield what has, in the end, the processor time that each of these processes has used."""
        before = {who: self.seconds_of(pid) for who, pid in users.items()}
        used: dict[str, float] = {}
        yield used
        used.update((who, self.seconds_of(pid) - before[who]) for who, pid in users.items())

    def pid_of(self, part: str) -> int:
        """Return the process id of a part of the cluster."""
        return self._supervisor().running()[part].identity.pid


def _processors() -> list[int]:
    """Return the processors that the first process may use."""
    return sorted(os.sched_getaffinity(1))


@contextmanager
def _last(
    argv: Sequence[str], account: accounts.Account | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program on the last processor, when nobody else wants it, and end it."""
    child = subprocess.Popen(
        ["taskset", "--cpu-list", str(_processors()[-1]), "chrt", "--idle", "0", *argv],
        env=command.base_env(),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=None if account is None else account.uid,
        group=None if account is None else account.gid,
        extra_groups=None if account is None else account.groups,
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def _children_seconds() -> float:
    """Return the processor time of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _processor_seconds(pid: int) -> float:
    """Return what a process has used, and its children that have ended (proc(5), stat 14 to 17)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    fields = text.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def in_turn(rounds: int, *sides: str) -> Sequence[str]:
    """Return sides in turn, so that what changes meanwhile meets all of them alike: A B B A ..."""
    return [side for n in range(rounds) for side in (sides if n % 2 == 0 else sides[::-1])]

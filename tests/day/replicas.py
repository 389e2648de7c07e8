"""Two replicas of the service on one database, of a version that can be another's successor."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.place import STUDIES_CLUSTER, Place
from devcluster import accounts, clock, command, files, process, render
from devcluster.parts import tuner
from devcluster.users import SERVICE_USER

from day.launches import LOST_AFTER_SECONDS

TREE = Path(__file__).resolve().parents[2]
BUILD = TREE / "build" / "day"
OLDER = ("e669504", "140de9a")
"""Release 0.2.0, whose tag a clone may lack, and a commit between it and this tree with a schema of
its own."""
DATABASE = "day"
REPLICAS = 2
USERS, NODES, EACH = 0, REPLICAS, 2 * REPLICAS
"""The configurations of the program that asks: both replicas, by who begins the list, at the
users' and at the nodes' address, and each replica alone."""
READY_SECONDS = 120.0
END_SECONDS = 60.0


@dataclass(frozen=True)
class Version:
    """A service that can run: of an older commit, or this tree's."""

    name: str
    program: Path
    accelerators: Path
    """Its own: an older service does not know what a newer catalogue says."""


def versions(place: Place, *, older: bool) -> list[Version]:
    """Return the versions in their order, each in a directory that the service's user can enter."""
    found = []
    for commit in OLDER if older else ():
        kept = built(commit)
        target = place.directory / commit
        (target / "accelerators.d").mkdir(parents=True, exist_ok=True)
        files.write(target / "io-autotuned", (kept / "io-autotuned").read_bytes(), mode=0o755)
        for item in (kept / "accelerators.d").iterdir():
            files.write(target / "accelerators.d" / item.name, item.read_bytes(), mode=0o644)
        found.append(Version(commit, target / "io-autotuned", target / "accelerators.d"))
    paths = place.cluster.paths
    return [*found, Version("this tree", paths.bin / "io-autotuned", paths.accelerators)]


def built(commit: str) -> Path:
    """Return the directory with an older commit's service and catalogue; build what is missing."""
    kept = BUILD / commit
    if (kept / "io-autotuned").is_file():
        return kept
    source = BUILD / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    git = ["git", "-C", str(TREE), "archive", commit]
    with subprocess.Popen(git, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "-x", "-C", str(source)], stdin=archive.stdout, check=True)
    assert archive.returncode == 0, f"commit {commit} is not in this clone: fetch its history"
    # One directory for all of them: what they depend on is mostly the same.
    target = BUILD / "target"
    cargo = ["cargo", "build", "--release", "--locked", "--workspace", "--bin", "io-autotuned"]
    env = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    subprocess.run(cargo, cwd=source, env=env, check=True)
    kept.mkdir(exist_ok=True)
    shutil.copytree(
        source / "deploy" / "accelerators.d", kept / "accelerators.d", dirs_exist_ok=True
    )
    # Last: it says that all is there.
    shutil.copy2(target / "release" / "io-autotuned", kept / "io-autotuned.new")
    (kept / "io-autotuned.new").rename(kept / "io-autotuned")
    shutil.rmtree(source)
    return kept


@dataclass
class Replicas:
    """Both of them."""

    place: Place
    version: Version
    """What new ones are of."""
    _running: dict[int, process.Identity] = field(default_factory=dict)

    @property
    def has_door(self) -> bool:
        """Whether this version has an address for nodes alone, and takes orders of admins."""
        return self.version.name != OLDER[0]

    def socket(self, replica: int, door: str = "users") -> Path:
        """Return where a replica listens."""
        return self.place.directory / f"day-{replica}-{door}.sock"

    def client(self, name: str, sockets: list[Path]) -> Path:
        """Write the client.toml that asks these in their order."""
        path = self.place.directory / f"{name}.toml"
        listed = ", ".join(f'"unix:{socket}"' for socket in sockets)
        munge = self.place.cluster.paths.munge_socket
        text = (
            f'endpoints = [{listed}]\nservice_user = "{SERVICE_USER}"\nmunge_socket = "{munge}"\n'
        )
        files.write(path, text, mode=0o644)
        return path

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run both, and end them. The first one makes the schema: one role owns and serves."""
        try:
            for replica in range(REPLICAS):
                self.start(replica)
            yield
        finally:
            for replica in list(self._running):
                self.end(replica)

    def migrate(self) -> None:
        """Have this version's program bring the schema up to date, as admins do first."""
        argv = [str(self.version.program), "--migrate", self._url()]
        command.run(argv, user=SERVICE_USER, timeout=600.0)

    def upgrade(self, version: Version) -> None:
        """Put another version in both replicas' place, one after the other."""
        self.version = version
        self.migrate()
        for replica in range(REPLICAS):
            self.end(replica)
            self.start(replica)

    def start(self, replica: int) -> None:
        """Start one, and wait until it says that it is ready."""
        config = self.place.directory / f"day-{replica}.toml"
        files.write(config, self._toml(replica), mode=0o644)
        paths = self.place.cluster.paths
        self._running[replica] = process.spawn(
            [str(self.version.program), "--config", str(config)],
            env=clock.env(paths, self.place.record),
            output=self.log(replica),
            account=accounts.find(SERVICE_USER),
        )
        problem = process.wait_until(lambda: self.unready(replica), READY_SECONDS)
        assert problem is None, f"replica {replica} of {self.version.name}: {problem}"

    def end(self, replica: int, number: int = signal.SIGTERM) -> None:
        """End one; what it has taken on it finishes, unless it is killed."""
        ended = process.end(self._running.pop(replica), number, END_SECONDS)
        assert ended, f"replica {replica} does not end; see {self.log(replica)}"

    def log(self, replica: int) -> Path:
        """Return where a replica writes."""
        return self.place.directory / f"day-{replica}.log"

    def unready(self, replica: int) -> str | None:
        """Return why one is not ready."""
        connection = http.client.HTTPConnection("io-autotuned", timeout=5.0)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(5.0)
        with contextlib.closing(connection):
            try:
                connection.sock.connect(str(self.socket(replica)))
            except OSError as error:
                return f"{error}; see {self.log(replica)}"
            problem = tuner.unready(connection)
        return f"{problem}; see {self.log(replica)}" if problem else None

    def _url(self) -> str:
        paths = self.place.cluster.paths
        return render.database_url(paths, self.place.record, SERVICE_USER, DATABASE)

    def _toml(self, replica: int) -> str:
        door = f'nodes_unix = "{self.socket(replica, "nodes")}"' if self.has_door else ""
        return f"""[listen]
unix = "{self.socket(replica)}"
{door}
[database]
url = "{self._url()}"
[munge]
socket = "{self.place.cluster.paths.munge_socket}"
[access]
# As older replicas call it; newer ones read it as well.
admin_uids = [0]
[accelerators]
directory = "{self.version.accelerators}"
default = "romio"
[slurm]
cluster = "{STUDIES_CLUSTER}"
sources = ["jobcomp"]
[reconcile]
# By the host's clock, of which a minute is hours of the day.
poll_seconds = 0.5
sweep_seconds = 1.0
lost_after_seconds = {LOST_AFTER_SECONDS}
"""

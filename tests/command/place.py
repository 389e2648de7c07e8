"""Where these tests' services run: programs, munged, databases and a Slurm that is played.

All of it is a temporary directory's own, and Unix sockets alone.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from clusters import KEPT_LOGS, WORKER, say
from devcluster import accounts, command, files, process
from devcluster.parts import munge, postgres
from devcluster.paths import Paths
from devcluster.settings import Setting, to_toml

TREE = Path(__file__).resolve().parents[2]
BUILD = TREE / "build"
PROGRAMS = (
    BUILD / "stage" / "bin" / "io-autotuned",
    BUILD / "stage" / "bin" / "io-autotune",
    BUILD / "workloads" / "calls",
)
CATALOGUE = BUILD / "stage" / "share" / "accelerators.d"
SAYS = TREE / "tuner-service" / "service" / "src" / "tests" / "says"
"""Plays one of Slurm's commands: prints what a test has written for it."""
SLURM = ("squeue", "sacct", "scontrol", "sacctmgr")
SERVICE_USER = "postgres"
"""Runs the services: besides root, ``tests/with-postgres`` lets it alone to PostgreSQL."""
READY_SECONDS = 60.0
END_SECONDS = 20.0


def toml_lines(keys: Mapping[str, Setting]) -> str:
    """Return keys as lines of TOML."""
    return "".join(f"{key} = {to_toml(value)}\n" for key, value in keys.items())


class Place:
    """A directory that users can enter, with munged."""

    def __init__(self, root: Path, database_url: str) -> None:
        """Use this directory, and the PostgreSQL of this database."""
        self.paths = Paths(root)
        self.service_account = accounts.find(SERVICE_USER)
        self._database_url = database_url

    @property
    def env(self) -> dict[str, str]:
        """The environment of users, with the programs."""
        base = command.base_env()
        return {**base, "PATH": f"{self.paths.bin}:{base['PATH']}", "TZ": "UTC"}

    def make(self) -> None:
        """Make its directories, and copy the programs."""
        paths = self.paths
        for path in (paths.root, paths.bin, paths.etc, paths.accelerators):
            files.directory(path, 0o755)
        files.directory(paths.log, 0o755)
        files.directory(paths.spool, 0o755)
        # Services make their sockets here; sticky, so that they cannot touch that of munged.
        files.directory(paths.run, 0o1775, 0, self.service_account.gid)
        files.directory(paths.munge_spool, 0o700)
        files.directory(paths.scratch, 0o1777)
        for program in PROGRAMS:
            # They are large.
            if not files.link(program, paths.bin / program.name, 0o755):
                files.write(paths.bin / program.name, program.read_bytes(), mode=0o755)
        for file in CATALOGUE.iterdir():
            files.write(paths.accelerators / file.name, file.read_bytes(), mode=0o644)

    def client_toml(self, endpoints: Sequence[str], **more: Setting) -> str:
        """Return a client.toml that asks at these endpoints; ``more``: other keys."""
        keys: dict[str, Setting] = {
            "auth": "munge",
            "munge_socket": str(self.paths.munge_socket),
            "service_user": SERVICE_USER,
            "endpoints": list(endpoints),
            **more,
        }
        return toml_lines(keys)

    @contextmanager
    def munged(self) -> Iterator[None]:
        """Run a munged with a key of its own."""
        part = munge.part(self.paths)
        part.prepare()
        running = process.spawn(part.argv, env=part.env, output=part.output)
        try:
            problem = process.wait_until(part.probe, READY_SECONDS, running)
            assert problem is None, f"munged {problem}; see {part.log}"
            yield
        finally:
            process.end(running, signal.SIGTERM, END_SECONDS)

    @contextmanager
    def database(self, name: str) -> Iterator[None]:
        """Make a database, and drop it."""
        own = _own(name)
        self.sql(f"create database {own}")
        try:
            yield
        finally:
            self.sql(f"drop database {own} with (force)")

    def sql(self, query: str, database: str | None = None) -> list[list[str]]:
        """Return what a database answers, as rows of text."""
        url = self._database_url if database is None else self.url(database)
        options = ["--no-psqlrc", "--tuples-only", "--no-align", "--field-separator=\t", "--quiet"]
        psql = str(postgres.programs(self.paths.pg_data) / "psql")
        argv = [psql, url, *options, "--set=ON_ERROR_STOP=1", f"--command={query}"]
        return [line.split("\t") for line in command.run(argv).stdout.splitlines()]

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        path = f"postgres:///{_own(database)}"
        url, count = re.subn(r"^postgres:///[^?]*", path, self._database_url)
        assert count == 1, f"DATABASE_URL is none of tests/with-postgres: {self._database_url}"
        return url


def _own(database: str) -> str:
    """Return the name of a database of this worker of pytest's: all workers have one PostgreSQL."""
    return f"{database}_{WORKER or 'alone'}"


class PlayedSlurm:
    """One cluster's Slurm: programs that print what a test has written."""

    def __init__(self, place: Place, directory: str, name: str) -> None:
        """Play the Slurm of a cluster of this name, with the texts in a directory of its own."""
        self.name = name
        self._directory = place.paths.etc / directory
        self._queue: dict[int, str] = {}
        files.directory(self._directory, 0o755)
        files.write(self._directory / "slurm.conf", "", mode=0o644)
        for program in SLURM:
            files.write(self._directory / program, SAYS.read_bytes(), mode=0o755)
        self.say("squeue", "")
        self.say("scontrol-config", "PrologFlags = Alloc,Contain\n")

    def configuration(self) -> dict[str, str]:
        """Return the keys of service.toml that name the cluster and its programs."""
        conf = str(self._directory / "slurm.conf")
        return {"cluster": self.name, "conf": conf, "programs": str(self._directory)}

    def say(self, what: str, text: str) -> None:
        """Let a program print this from now on; ``what`` is its name, or with its last argument."""
        files.write(self._directory / f"{what}.txt", text, mode=0o644)

    def queue(self, lines: Mapping[int, str]) -> None:
        """Let squeue list these jobs so, besides those that it lists."""
        self._queue.update(lines)
        self.say("squeue", "".join(self._queue.values()))


@contextmanager
def place() -> Iterator[Place]:
    """Make a place with a munged; when it is left, it is gone."""
    # Not pytest's own directories: users cannot enter them.
    root = Path(tempfile.mkdtemp(prefix="io-autotune-command-", dir="/tmp"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root)
        made = Place(root, os.environ["DATABASE_URL"])
        made.make()
        stack.enter_context(made.munged())
        yield made


@contextmanager
def place_of_session(request: pytest.FixtureRequest, name: str) -> Iterator[Place]:
    """Make the place of a session's services; where a test has failed, their logs are kept."""
    with place() as made:
        yield made
        kept = KEPT_LOGS / f"{name}{WORKER}"
        shutil.rmtree(kept, ignore_errors=True)
        if request.session.testsfailed:
            shutil.copytree(made.paths.log, kept)
            say(request.config, f"the services' logs are in {kept}")

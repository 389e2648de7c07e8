"""A real io-autotuned whose nodes and Slurm are played, and the command as users run it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from pwd import getpwnam

from clusters import STUDY_SETTINGS
from day.asker import Answer, Asked, Asker
from devcluster import accounts, command, files, process, settings
from devcluster.parts import tuner
from devcluster.settings import Setting
from harness import await_value

from command.jobs import End, Json, Made
from command.place import END_SECONDS, READY_SECONDS, Place, PlayedSlurm, toml_lines

ALICE, BOB, CAROL = "games", "mail", "news"
"""Users that every Debian has; nobody logs in as them, and nothing of theirs is written."""
ROOT = "root"
"""An admin of the service, and root of every node."""
NODES, USERS = 0, 1
"""The doors, by their places in the list of what the asker asks by."""

More = Mapping[str, Mapping[str, Setting]]
"""Sections of service.toml, with the keys in which it differs."""


class Service:
    """A service that runs, with all that a test does to it."""

    def __init__(
        self, place: Place, name: str, database: str, slurms: Sequence[PlayedSlurm]
    ) -> None:
        """Work with the service of this name and database, whose clusters these are."""
        self.place = place
        self.name = name
        self._database = database
        self.slurms = {slurm.name: slurm for slurm in slurms}
        self.cluster = slurms[0].name
        """The cluster of which jobs are that do not say."""
        self.client_toml = place.paths.etc / f"{name}-client.toml"
        self._next_job = 1000
        self._asker: Asker
        self._pid: int

    # Its life

    @contextmanager
    def running(self, more: More) -> Iterator[None]:
        """Run it, configured so."""
        paths = self.place.paths
        service_toml = paths.etc / f"{self.name}.toml"
        account = self.place.service_account
        text = self._service_toml(more)
        files.write(service_toml, text, mode=0o640, gid=account.gid)
        files.write(self.client_toml, self.asking(self._socket()), mode=0o644)
        at_nodes_door = paths.etc / f"{self.name}-nodes.toml"
        files.write(at_nodes_door, self.asking(self._socket("-nodes")), mode=0o644)
        log = paths.log_of(self.name)
        running = process.spawn(
            [str(paths.bin / "io-autotuned"), "--config", str(service_toml)],
            env=command.base_env(),
            output=log,
            account=account,
        )
        self._pid = running.pid
        try:
            problem = process.wait_until(self._unready, READY_SECONDS, running)
            assert problem is None, f"the service {self.name} {problem}; see {log}"
            with Asker(paths.bin / "calls", [at_nodes_door, self.client_toml]) as self._asker:
                yield
        finally:
            assert process.end(running, signal.SIGTERM, END_SECONDS), f"{self.name} does not end"

    def reload(self) -> None:
        """Let it read its configuration again, when it comes to it."""
        os.kill(self._pid, signal.SIGHUP)

    def asking(self, *sockets: Path) -> str:
        """Return a client.toml that asks at these sockets, in their order."""
        return self.place.client_toml([f"unix:{one}" for one in sockets])

    def _socket(self, door: str = "") -> Path:
        return self.place.paths.run / f"{self.name}{door}.sock"

    def readiness(self) -> Json:
        """Return what it says of whether it can serve."""
        connection = http.client.HTTPConnection("io-autotuned", timeout=5.0)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(5.0)
        with contextlib.closing(connection):
            connection.sock.connect(str(self._socket()))
            connection.request("GET", tuner.READY)
            return json.loads(connection.getresponse().read())

    def _unready(self) -> str | None:
        connection = http.client.HTTPConnection("io-autotuned", timeout=5.0)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(5.0)
        with contextlib.closing(connection):
            try:
                connection.sock.connect(str(self._socket()))
            except OSError as error:
                return str(error)
            return tuner.unready(connection)

    def _service_toml(self, more: More) -> str:
        paths = self.place.paths
        study: dict[str, dict[str, Setting]] = {}
        for key, value in settings.merge({}, STUDY_SETTINGS).items():
            section, _, last = f"study.{key}".rpartition(".")
            study.setdefault(section, {})[last] = value
        sections: dict[str, dict[str, Setting]] = {
            "listen": {"unix": str(self._socket()), "nodes_unix": str(self._socket("-nodes"))},
            "database": {
                "url": self.place.url(self._database),
                "connections": 8,
                "user_connections": 4,
            },
            "munge": {"socket": str(paths.munge_socket)},
            # Quotas are tried where they are meant.
            "users": {"requests_per_second": 1e6},
            "access": {"admins": [0]},
            "accelerators": {"directory": str(paths.accelerators), "default": "romio"},
            "report": {"directory": str(self.nights)},
            # Nobody's patience ends while tests run: made-up jobs are in flight for long.
            "reconcile": {
                "poll_seconds": 0.1,
                "sweep_seconds": 1.0,
                "patience_seconds": 36000,
            },
            **study,
        }
        for section, keys in more.items():
            sections.setdefault(section, {}).update(keys)
        parts = [f"[{section}]\n{toml_lines(keys)}" for section, keys in sections.items()]
        header = "[[slurm]]" if len(self.slurms) > 1 else "[slurm]"
        parts += [f"{header}\n{toml_lines(one.configuration())}" for one in self.slurms.values()]
        return 'auth = "munge"\n' + "\n".join(parts)

    # The command

    def tuner(
        self, user: str, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run ``io-autotune`` as a user, whatever comes of it."""
        argv = ["io-autotune", *arguments]
        return self.run_as(user, argv, stdin=stdin, env=env)

    def ask(self, user: str, *arguments: str) -> Json:
        """Run ``io-autotune`` as a user, and return what it prints with ``--json``."""
        done = self.tuner(user, *arguments, "--json")
        assert done.returncode == 0, f"io-autotune {' '.join(arguments)}: {done.stderr}"
        return json.loads(done.stdout)

    def told(self, user: str, *arguments: str) -> Json:
        """The same, whatever its exit status is."""
        return json.loads(self.tuner(user, *arguments, "--json").stdout)

    def paste(self, user: str, line: str) -> subprocess.CompletedProcess[str]:
        """Let a user's shell do what it finds in a line, as it stands there."""
        return self.run_as(user, ["bash", "-c", line])

    def run_as(
        self,
        user: str,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run any program as a user who has the command."""
        return command.run(
            argv, env={**self.env, **(env or {})}, user=user, stdin=stdin, check=False
        )

    @property
    def env(self) -> dict[str, str]:
        """The environment of its users."""
        return {**self.place.env, "IO_AUTOTUNE_CONFIG": str(self.client_toml)}

    @property
    def nights(self) -> Path:
        """The directory whose reports it serves."""
        return self.place.paths.root / f"{self.name}-nights"

    def publish(self, night: str, pages: Mapping[str, str]) -> None:
        """Serve a night as the latest, with these pages of users' own."""
        own = self.nights / night / "users"
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        for user, text in pages.items():
            (own / f"{getpwnam(user).pw_uid}.html").write_text(text, encoding="utf-8")
        (self.nights / "latest").unlink(missing_ok=True)
        (self.nights / "latest").symlink_to(night)

    @property
    def database_url(self) -> str:
        """The URL of its database."""
        return self.place.url(self._database)

    def sql(self, query: str) -> list[list[str]]:
        """Return what its database answers, as rows of text."""
        return self.place.sql(query, self._database)

    # What nodes and Slurm tell it

    def job(
        self,
        user: str,
        app: str | None = None,
        *,
        cluster: str | None = None,
        job_id: int | None = None,
        account: str = "physics",
        **request: str,
    ) -> Made:
        """Make up a job of an application, with more in its request."""
        if job_id is None:
            self._next_job += 1
            job_id = self._next_job
        owner = accounts.find(user)
        return Made(
            cluster=cluster or self.cluster,
            job_id=job_id,
            uid=owner.uid,
            request=request if app is None else {"app": app, **request},
            user=owner.name,
            account=account,
            began=float(int(time.time())),
        )

    def start(self, *jobs: Made) -> list[Json]:
        """Let the nodes of jobs ask for their starts, and return the answers."""
        return self._sent((job, "/v1/runs/start", job.start()) for job in jobs)

    def end(self, jobs: Sequence[tuple[Made, Json, End]]) -> list[Json]:
        """Let jobs end, started with these answers; return their runs once they have verdicts."""
        self._sent((job, "/v1/runs/finish", job.finish(given, end)) for job, given, end in jobs)
        for name, slurm in self.slurms.items():
            slurm.queue({job.job_id: job.queued(e) for job, _, e in jobs if job.cluster == name})
        return [self.judged(job) for job, _, _ in jobs]

    def live(self, job: Made, end: End | None = None) -> Json:
        """Let a job run, and return its run once that has its verdict."""
        (given,) = self.start(job)
        (run,) = self.end([(job, given, end or End())])
        return run

    def run(self, user: str, app: str, end: End | None = None) -> Json:
        """Let a job of an application run, and return its run, which counts."""
        run = self.live(self.job(user, app), end)
        assert run["state"] == "counted", run["verdict"]
        return run

    def tune(self, user: str, app: str, end: Callable[[Json], End]) -> Iterator[Json]:
        """Let jobs run, each ended as its answer says, for as long as their runs are wanted."""
        for _ in range(MOST_RUNS):
            job = self.job(user, app)
            (given,) = self.start(job)
            yield from self.end([(job, given, end(given))])
        raise AssertionError(f"{app}: what was awaited does not come in {MOST_RUNS} runs")

    def judged(self, job: Made) -> Json:
        """Wait until a job's run has its verdict, and return the run."""
        path = f"/v1/runs/{job.job_id}?cluster={job.cluster}"

        def look() -> Json | None:
            (answer,) = self._asker.all([Asked(path, by=USERS)])
            assert answer.problem is None, answer.problem
            (detail,) = answer.json
            return None if detail["run"]["state"] == "in_flight" else detail["run"]

        return await_value(f"the verdict on job {job.job_id}", look)

    def study(self, app: str, user: str = ROOT) -> Json:
        """Return the one study of an application, as a user is told of it."""
        (study,) = self.ask(user, "status", app)
        return study

    def try_start(self, *jobs: Made) -> list[Answer]:
        """Let the nodes of jobs ask for their starts, whatever comes of it."""
        return self._asker.all(Asked("/v1/runs/start", job.start(), by=NODES) for job in jobs)

    def try_finish(self, *ended: tuple[Made, Json, End]) -> list[Answer]:
        """Let the nodes of jobs with these answers report, whatever comes of it."""
        return self._asker.all(
            Asked("/v1/runs/finish", job.finish(given, end), by=NODES) for job, given, end in ended
        )

    def _sent(self, requests: Iterable[tuple[Made, str, Json]]) -> list[Json]:
        asked = [Asked(path, body, by=NODES) for _, path, body in requests]
        answers = self._asker.all(asked)
        problems = [answer.problem for answer in answers if answer.problem]
        assert not problems, problems[:3]
        return [answer.json for answer in answers]


MOST_RUNS = 100
"""A study that has not settled by then never will."""


@contextmanager
def service(
    place: Place,
    name: str,
    *,
    clusters: Sequence[str] = ("alpha",),
    more: More | None = None,
    database: str | None = None,
) -> Iterator[Service]:
    """Run a service of these clusters; on a database of its own, or on that of another's name."""
    slurms = [PlayedSlurm(place, f"{name}-{one}", one) for one in clusters]
    made = Service(place, name, database or name, slurms)
    with ExitStack() as stack:
        if database is None:
            stack.enter_context(place.database(name))
        stack.enter_context(made.running(more or {}))
        yield made

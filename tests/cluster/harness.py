"""The cluster as the tests use it: submit as a user, await what Slurm and the service say.

Nothing here sleeps for a fixed time: every wait asks until the answer is there, with a deadline.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
from devcluster import Cluster, accounts, files, process, record
from devcluster.render import DATABASE
from devcluster.supervisor import Supervisor
from devcluster.users import SERVICE_USER

ALICE, BOB = "io-alice", "io-bob"
"""The unprivileged users of the cluster."""
ROOT = "root"
"""An admin of the service, and root of every node."""

SECONDS = 60.0
"""How long any single wait may take. Jobs of these tests run for seconds."""

BATCH_START_SECONDS = 21.0
"""slurmctld misses a batch step that has begun, or that it has recovered, before BatchStartTimeout,
of 10 s, and at most 10 s of MessageTimeout (job_mgr.c, _purge_missing_jobs)."""

MOST_RUNS = 200
"""A study that has not settled by then never will. On a loaded machine elapsed is noisy, and the
guards let fewer of its runs explore."""

MPIEXEC_OPENMPI = (
    "env -u SLURM_JOBID -u SLURM_JOB_ID -u SLURM_NTASKS OMPI_MCA_oob_tcp_if_include=lo"
    " mpiexec.openmpi --oversubscribe -n 4"
)
"""Open MPI's ranks on the job's node. Told of Slurm, it would look for a host n1, and from 5.0 on
end by a signal then. Up to 4 it does not take the loopback by itself, the only network here."""

ENDED = frozenset(
    {"CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"}
)
"""Slurm's words for a job that has ended, its epilog included."""

FRESH_SECONDS = 0.4
"""How old what many wait for together may be when one of them asks."""

OVERDUE_SECONDS = 200.0
"""More than the timer gives an epilog that is late, and the service Slurm's word."""

COMPLETE = os.environ.get("IO_AUTOTUNE_CALIBRATION") == "complete"
"""Whether floods and the like are as long as `make test-nightly` has them."""


def writes(most: int, offset: int = 0) -> range:
    """Return in which of its writes a helper is to be killed.

    At night each of the first so many is tried, here every third.
    """
    return range(1, most) if COMPLETE else range(1 + offset, most, 3)


NEEDS_STRACE = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
"""For tests that have the helper killed."""

Json = Any
"""What ``--json`` prints."""
Found = TypeVar("Found")


class Shared(Generic[Found]):
    """What many threads look at again and again, asked for once for all of them."""

    def __init__(self, ask: Callable[[], Found]) -> None:
        """Ask by ``ask``, which may take its time."""
        self._ask = ask
        self._lock = threading.Lock()
        self._known: tuple[float, Found] | None = None

    def look(self, seconds: float = FRESH_SECONDS) -> Found:
        """Return what was asked for at most so many seconds before this call."""
        called = time.monotonic()
        with self._lock:
            if self._known is None or self._known[0] < called - seconds:
                # As of before the question: the answer may be as old as that.
                asked = time.monotonic()
                self._known = (asked, self._ask())
            return self._known[1]


@dataclass(frozen=True)
class Job:
    """A job that was submitted, and what its submission printed on standard error."""

    job_id: int
    stderr: str

    def said(self) -> list[str]:
        """Return the lines on standard error that io-autotune printed."""
        return [line for line in self.stderr.splitlines() if "io-autotune" in line]


def await_value(what: str, look: Callable[[], Found | None], seconds: float = SECONDS) -> Found:
    """Ask ``look`` until it returns something, and return that; fail the test after ``seconds``."""
    found: list[Found] = []

    def probe() -> str | None:
        value = look()
        if value is None:
            return "it is not there"
        found.append(value)
        return None

    problem = process.wait_until(probe, seconds)
    assert problem is None, f"waited for {what}: {problem}"
    return found[0]


def await_true(what: str, holds: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Ask ``holds`` until it does; fail the test after ``seconds``."""
    await_value(what, lambda: True if holds() else None, seconds)


def grown_old(path: Path) -> None:
    """Let what waits for the flusher be as old as it would be in a while."""
    then = time.time() - OVERDUE_SECONDS
    # The flusher may have just had it.
    with suppress(FileNotFoundError):
        os.utime(path, (then, then))


def await_seconds(seconds: float) -> None:
    """Let time pass, where that itself is what a job is to go through."""
    until = time.monotonic() + seconds
    await_true("time to pass", lambda: time.monotonic() >= until, seconds + SECONDS)


def command_lines() -> Iterator[tuple[int, str]]:
    """Yield each process's id and its command line, blanks between the arguments."""
    for pid in process.all_pids():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield pid, line.replace(b"\0", b" ").decode("utf-8", "replace")


def hook_environment(
    cluster: str, job_id: int, request: str, node: str, uid: int
) -> dict[str, str]:
    """Return what slurmd tells the hooks of a job of one node and one CPU that ends well."""
    return {
        "SPANK_IO_AUTOTUNE": request,
        "SLURM_CLUSTER_NAME": cluster,
        "SLURMD_NODENAME": node,
        "SLURM_JOB_ID": str(job_id),
        "SLURM_JOB_UID": str(uid),
        "SLURM_JOB_GID": str(uid),
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_JOB_PARTITION": "main",
        "SLURM_JOB_CPUS_PER_NODE": "1",
        "SLURM_JOB_NODELIST": node,
        "SLURM_JOB_EXIT_CODE2": "0:0",
        "SLURM_JOB_DERIVED_EC": "0",
    }


class Site:
    """A cluster with the service, its users and its admin."""

    def __init__(self, cluster: Cluster, make_up: str) -> None:
        """Work with a cluster that is up; ``make_up`` is what lives.md calls its like."""
        self.cluster = cluster
        self.make_up = make_up
        self.paths = cluster.paths
        self._supervisor = Supervisor(self.paths.processes, lambda _message: None)
        self.all_runs: Shared[list[Json]] = Shared(
            lambda: self.ask(ROOT, "history", "--limit", "10000")
        )
        """Every run, oldest first, for many that wait."""
        self.all_jobs: Shared[dict[int, tuple[str, str]]] = Shared(self._all_jobs)
        """Every job that slurmctld knows: its name and state by its id, for many that wait."""

    # Submitting

    def sbatch(
        self,
        body: str,
        *options: str,
        user: str = ALICE,
        env: Mapping[str, str] | None = None,
    ) -> Job:
        """Submit a bash script of these lines; its output goes to the user's home directory."""
        done = self.try_sbatch(body, *options, user=user, env=env)
        assert done.returncode == 0, f"sbatch {' '.join(options)} failed: {done.stderr}"
        return Job(int(done.stdout.split(";")[0]), done.stderr)

    def try_sbatch(
        self,
        body: str,
        *options: str,
        user: str = ALICE,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Submit likewise, but leave it to the caller whether that should succeed.

        What io-autotune knows of the job is printed, though nobody is at a terminal.
        """
        env = {"IO_AUTOTUNE_VERBOSE": "1", **(env or {})}
        argv = ["sbatch", "--parsable", "--output=%j.out", *options]
        script = f"#!/bin/bash\n{body}\n"
        return self.cluster.run_as(user, argv, env=env, stdin=script, check=False)

    def run(
        self, body: str, *options: str, user: str = ALICE, env: Mapping[str, str] | None = None
    ) -> Json:
        """Submit a job, and return its run once that has its verdict."""
        return self.judged(self.sbatch(body, *options, user=user, env=env))

    def counted_run(
        self, body: str, *options: str, user: str = ALICE, env: Mapping[str, str] | None = None
    ) -> Json:
        """Submit a job, and return its run once that counts."""
        return self.counted(self.sbatch(body, *options, user=user, env=env))

    def output(self, job: Job, user: str = ALICE) -> str:
        """Return what a batch job has printed."""
        return (self.paths.home(user) / f"{job.job_id}.out").read_text(encoding="utf-8")

    @contextmanager
    def helper_killed(self, command: str, call: int, *, follow: bool = True) -> Iterator[None]:
        """Have the helper killed (SIGKILL) in its so-many-eth write, whenever it runs a command.

        With ``follow`` its threads' and children's writes count, and those are awaited.
        """
        more = "-f" if follow else "-q"
        helper = self.paths.bin / "io-autotune-node"
        real = self.paths.bin / "io-autotune-node.real"
        helper.rename(real)
        # For its other commands it is itself, and runs itself by the wrapper's name.
        wrapper = (
            f'#!/bin/bash\n[ "$1" = {command} ] || exec -a {helper} {real} "$@"\n'
            f"exec strace {more} -qq -o /dev/null -e trace=write,rename,unlink"
            f' -e inject=write,rename,unlink:signal=KILL:when={call} {real} "$@"\n'
        )
        files.write(helper, wrapper.encode(), mode=0o755)
        try:
            yield
        finally:
            real.rename(helper)

    # What Slurm says

    def shown(self, job: Job) -> dict[str, str]:
        """Return the fields of ``scontrol show job`` that hold no blanks."""
        argv = ["scontrol", "--oneliner", "show", "job", str(job.job_id)]
        text = self.cluster.run_as(ROOT, argv).stdout
        return dict(re.findall(r"(\S+?)=(\S*)", text))

    def await_state(self, job: Job, *states: str) -> dict[str, str]:
        """Wait until a job is in one of these states, and return its fields."""

        def look() -> dict[str, str] | None:
            fields = self.shown(job)
            return fields if fields["JobState"] in states else None

        return await_value(f"job {job.job_id} to be {' or '.join(states)}", look)

    def ended(self, job: Job) -> dict[str, str]:
        """Wait until a job has ended, its epilog included, and return its fields."""
        return self.await_state(job, *ENDED)

    def started(self, job: Job) -> None:
        """Wait until it is decided what a job is given: Slurm calls it RUNNING before that."""
        await_true(f"the run of job {job.job_id} to be started", lambda: bool(self.runs(job)))

    def requeue(self, job: Job) -> None:
        """Put a running job back into the queue; it begins anew once no node remembers it."""
        self.cluster.run_as(ROOT, ["scontrol", "requeue", str(job.job_id)])
        self.let_slurmd_forget(job)

    def let_slurmd_forget(self, job: Job) -> None:
        """Put the next launch of a job off until no node remembers the last one.

        The credential expires after 5 s here, but slurmd 22.05 looks for expired ones once in two
        seconds (slurm_cred.c, _clear_expired_job_states): a launch that comes at once to a busy
        node is taken for a part of the last one, and gets no prolog.
        """
        self.await_state(job, "PENDING")
        later = ["scontrol", "update", f"JobId={job.job_id}", "StartTime=now+9"]
        self.cluster.run_as(ROOT, later)

    def jobs_named(self, name: str) -> list[str]:
        """Return the ids of all jobs of this name, ended or not."""
        argv = ["squeue", "--noheader", "--states=all", f"--name={name}", "--format=%A"]
        return self.cluster.run_as(ROOT, argv).stdout.split()

    def _all_jobs(self) -> dict[int, tuple[str, str]]:
        argv = ["squeue", "--noheader", "--array", "--states=all", "--format=%A|%T|%j"]
        # A name that a test gave may hold a line end: what follows it is no row.
        rows = re.findall(r"^(\d+)\|([A-Z_]+)\|(.*)$", self.cluster.run_as(ROOT, argv).stdout, re.M)
        return {int(job_id): (name, state) for job_id, state, name in rows}

    # What the service says

    def tuner(self, user: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the ``io-autotune`` command as a user, whatever comes of it."""
        return self.cluster.run_as(user, ["io-autotune", *arguments], check=False)

    def ask(self, user: str, *arguments: str) -> Json:
        """Run the ``io-autotune`` command as a user, and return what it prints with ``--json``."""
        done = self.tuner(user, *arguments, "--json")
        assert done.returncode == 0, (
            f"io-autotune {' '.join(arguments)}: {done.stderr}{done.stdout[:4000]}"
        )
        return json.loads(done.stdout)

    def study(self, application: str, user: str = ROOT) -> Json:
        """Return the one study of an application."""
        studies = self.ask(user, "status", application)
        assert len(studies) == 1, f"{application} was to have one study and has {len(studies)}"
        return studies[0]

    def history(self, application: str, user: str = ROOT) -> list[Json]:
        """Return the runs of an application, oldest first."""
        return self.ask(user, "history", application, "--limit", "10000")

    def runs(self, job: Job) -> list[Json]:
        """Return the runs of a job, one for each launch; none if the service knows of none."""
        done = self.tuner(ROOT, "explain", str(job.job_id), "--json")
        if "there is no run of a job" in done.stderr:
            return []
        assert done.returncode == 0, f"io-autotune explain {job.job_id}: {done.stderr}"
        return [detail["run"] for detail in json.loads(done.stdout)]

    def judged(self, job: Job, restart_count: int = 0) -> Json:
        """Wait until the run of one launch of a job has its verdict, and return the run."""

        def look() -> Json | None:
            for run in self.runs(job):
                if run["restart_count"] == restart_count and run["state"] != "in_flight":
                    return run
            return None

        return await_value(f"the verdict on the run of job {job.job_id}", look)

    def counted(self, job: Job, restart_count: int = 0) -> Json:
        """Wait until the run of one launch of a job counts, and return the run."""
        run = self.judged(job, restart_count)
        assert run["state"] == "counted", f"job {job.job_id}: {run['verdict']}"
        return run

    def explain(self, job: Job, user: str = ROOT) -> Json:
        """Return the one run of a job with what it was made from."""
        details = self.ask(user, "explain", str(job.job_id))
        assert len(details) == 1, f"job {job.job_id} was to have one run and has {len(details)}"
        return details[0]

    def pinned(
        self, application: str, values: Mapping[str, str], *options: str, user: str = ALICE
    ) -> Json:
        """Make a study by a first run, pin it, and return it: what its next run gets is known."""
        run = self.run("true", f"--io-autotune=app={application}", *options, user=user)
        assert run["state"] == "counted", f"the first run of {application}: {run['verdict']}"
        return self.pin(application, values, user=user)

    def pin(self, application: str, values: Mapping[str, str], user: str = ALICE) -> Json:
        """Pin the one study of an application, and return it."""
        assignments = [f"{name}={value}" for name, value in values.items()]
        return self.ask(user, "pin", application, *assignments, "--why", "a test asks for it")

    def flush(self) -> None:
        """Have a pass of the nodes' timer now."""
        self._helper("flush")

    def sweep_as_at_boot(self) -> None:
        """Have done what a node does at its boot; all nodes are on this host."""
        self._helper("restore", "--all")

    def _helper(self, *command: str) -> None:
        places = [f"--spool-dir={self.paths.plugin_spool}", f"--run-dir={self.paths.plugin_run}"]
        argv = ["io-autotune-node", *command, f"--config={self.paths.client_toml}", *places]
        self.cluster.run_as(ROOT, argv)

    @contextmanager
    def nodes_configured(self, node_toml: str) -> Iterator[Path]:
        """Let the nodes change what this allows; in the end nothing is saved any more."""
        path = self.paths.etc / "node.toml"
        files.write(path, node_toml, mode=0o644)
        try:
            yield path
            saved = self.paths.plugin_spool / "saved"
            await_true("no values to be saved", lambda: not saved.exists())
        finally:
            path.unlink()

    def sql(self, query: str, database: str = DATABASE) -> list[list[str]]:
        """Return what a database answers, as rows of text."""
        options = ["--no-psqlrc", "--tuples-only", "--no-align", "--field-separator=\t"]
        where = f"--dbname={database}"
        argv = [*self.cluster.psql_argv(), where, *options, f"--command={query}"]
        text = self.cluster.run_as(SERVICE_USER, argv).stdout
        return [line.split("\t") for line in text.splitlines()]

    # Taking parts away

    @contextmanager
    def parts_stopped(self, *names: str) -> Iterator[None]:
        """Stop parts of the cluster in good order (SIGTERM), and bring all that is stopped back."""
        for name in names:
            self._supervisor.end(name)
        try:
            yield
        finally:
            self.cluster.up()

    def restart(self, name: str) -> None:
        """Restart a part with what is there: nothing is installed or configured anew."""
        self._supervisor.end(name)
        self.cluster.revive()

    @contextmanager
    def part_frozen(self, name: str) -> Iterator[None]:
        """Stop the processor of one part (SIGSTOP), so that it answers later and loses nothing."""
        process.send(self._supervisor.running()[name].identity, signal.SIGSTOP)
        try:
            yield
        finally:
            process.send(self._supervisor.running()[name].identity, signal.SIGCONT)

    def kill_part(self, name: str) -> None:
        """Kill one part (SIGKILL), and wait for what is below it; ``cluster.up`` brings it back.

        PostgreSQL does not start while a process of a killed one still holds the shared memory.
        """
        identity = self._supervisor.running()[name].identity
        below = [process.identify(pid) for pid in process.descendants([identity.pid])]
        process.kill(identity)
        for child in below:
            # They notice by themselves, but not in the middle of something.
            if child is not None and not process.wait_end(child, SECONDS):
                process.kill(child)

    def kill_alone(self, name: str) -> None:
        """Kill one part (SIGKILL), and leave what it has started running."""
        process.kill(self._supervisor.running()[name].identity)

    @contextmanager
    def slurm_conf_changed(self, **changes: str) -> Iterator[None]:
        """Change lines of slurm.conf, as ``scontrol reconfigure`` can, and change them back."""
        before = self.paths.slurm_conf.read_text(encoding="utf-8")
        text = before
        for key, value in changes.items():
            text, count = re.subn(rf"(?m)^{key}=.*$", f"{key}={value}", text)
            assert count == 1, f"slurm.conf does not set {key}"
        self._configure_slurm(text)
        try:
            yield
        finally:
            self._configure_slurm(before)

    def _configure_slurm(self, slurm_conf: str) -> None:
        files.write(self.paths.slurm_conf, slurm_conf, mode=0o644)
        self.reconfigure_slurm()

    def register_nodes(self) -> None:
        """Have the nodes register anew, and tell what runs on them.

        slurmctld requeues or fails the batch jobs that they do not know of.
        """
        for name, item in self._supervisor.running().items():
            if name.startswith("slurmd-"):
                process.send(item.identity, signal.SIGHUP)

    def reconfigure_slurm(self) -> None:
        """Have Slurm read its configuration.

        Only while no job begins or ends: meanwhile Slurm has no AuthInfo and no MessageTimeout, and
        loses what it is sent (read_config.c, slurm_conf_reinit). srun tells slurmctld once that its
        job has ended.
        """
        self.cluster.run_as(ROOT, ["scontrol", "reconfigure"])

    def service_port(self) -> int:
        """Return the TCP port of the service."""
        return self.record().ports.service

    @property
    def cluster_name(self) -> str:
        """Slurm's name of the cluster."""
        return self.record().name

    def record(self) -> record.Record:
        """Return what the cluster remembers of its creation."""
        known = record.load(self.paths.record)
        assert known is not None, "the cluster has no record"
        return known

    def slurm_series(self) -> tuple[int, int]:
        """Return the series of the cluster's Slurm, such as (22, 5)."""
        shown = self.cluster.run_as(ROOT, ["sinfo", "--version"]).stdout
        year, month = shown.split()[1].split(".")[:2]
        return int(year), int(month)

    def hook_environment(
        self, job_id: int, request: str, node: str = "n1", user: str = ALICE
    ) -> dict[str, str]:
        """Return what slurmd would tell the hooks of a job of one node."""
        uid = accounts.find(user).uid
        return hook_environment(self.cluster_name, job_id, request, node, uid)

    # What is left behind

    def spooled(self) -> list[Path]:
        """Return what is in the spool, and what has no room there and waits in memory.

        These are reports that wait, and those that the service refused. The draft of a helper that
        was killed is not among them; the flusher removes it when it is old. Of what jobs write
        there are the places of jobs, not the directory that stays; nor is what helpers lock.
        """
        spool = self.paths.plugin_spool
        in_force = spool / "in-force"
        stays = {in_force, spool / ".lock"}
        there = (path for path in spool.iterdir() if path.suffix != ".new" and path not in stays)
        return sorted([*there, *in_force.glob("*"), *self.in_memory()])

    def in_memory(self) -> list[Path]:
        """Return the reports that the spool did not take."""
        return sorted((self.paths.plugin_run / ".reports").glob("*.json"))

    def helpers(self, command: str) -> list[int]:
        """Return the processes of this cluster's helper that were told to do one thing.

        Those that it starts of itself are of the same program, and another cluster's are not.
        """
        program = self.paths.bin / "io-autotune-node"
        found = []
        for pid, line in command_lines():
            if line.split()[1:2] == [command]:
                with suppress(FileNotFoundError, ProcessLookupError):
                    if Path(f"/proc/{pid}/exe").readlink() == program:
                        found.append(pid)
        return found

    @property
    def endpoint(self) -> Path:
        """What the nodes remember of who answered last."""
        return self.paths.plugin_run / ".endpoint"

    @property
    def outage(self) -> Path:
        """What the nodes remember of a service that did not answer."""
        return self.paths.plugin_run / ".outage"

    def await_asked_again(self) -> None:
        """Wait until the nodes' helpers have noticed that the service answers."""
        await_true("the outage to be over for the nodes", lambda: not self.outage.exists())

    def undelivered(self) -> list[Path]:
        """Return the reports that wait for delivery."""
        return [path for path in self.spooled() if path.suffix == ".json"]

    def job_directories(self) -> list[Path]:
        """Return the directories that jobs have in the run directory."""
        return sorted(path for path in self.paths.plugin_run.glob("*/*/*") if path.is_dir())

    def remove_job_directories(self) -> None:
        """Remove what jobs left in the run directory, and the flusher does not meanwhile."""

        def failed(_function: object, _path: str, error: tuple[Any, BaseException, Any]) -> None:
            if not isinstance(error[1], FileNotFoundError):
                raise error[1]

        for directory in self.job_directories():
            shutil.rmtree(directory, onerror=failed)
        for place in (self.paths.plugin_spool / "in-force").glob("*"):
            grown_old(place)

    def introduce_nodes(self) -> None:
        """Have each node answered once.

        Until then it knows of no variable that may be the user's, and what it runs without an
        answer does not count.
        """
        jobs = [
            self.sbatch("true", asked("introduced"), f"--nodelist={node}", "--output=/dev/null")
            for node in self.cluster.node_states()
        ]
        for job in jobs:
            self.judged(job)

    def check_nodes(self) -> None:
        """Check that every node can run jobs: none is drained, down or failing."""
        working = {"idle", "mixed", "allocated", "completing", "planned"}
        states = self.cluster.node_states()
        # One that is planned for a job says so by the "-" (sinfo(1)).
        bad = {node: state for node, state in states.items() if state.rstrip("-") not in working}
        if bad:
            reasons = self.cluster.run_as(ROOT, ["sinfo", "--list-reasons"]).stdout
            pytest.fail(f"nodes cannot be used: {bad}\n{reasons}")

    def check_nothing_left(self) -> None:
        """Wait for all jobs to end, and check that no node, directory or report stayed behind."""
        argv = ["squeue", "--noheader", "--format=%A %j %T"]

        await_true("the queue to be empty", lambda: not self.cluster.run_as(ROOT, argv).stdout)
        self.check_nodes()
        states = self.cluster.node_states()
        assert set(states.values()) == {"idle"}, f"the nodes are {states}"
        left = self.job_directories()
        assert not left, f"jobs have left directories behind: {left}"
        await_true(
            "reports to be delivered, and what jobs wrote to go",
            lambda: all(path.suffix == ".refused" for path in self.spooled()),
        )
        left = self.spooled()
        assert not left, f"the service has refused reports: {left}"


def lines(text: str) -> list[str]:
    """Return the lines that are not empty."""
    return [line for line in text.splitlines() if line.strip()]


def hints(text: str) -> dict[str, str]:
    """Return the hints of a file as ROMIO reads them: two tokens a line."""
    return dict(line.split() for line in lines(text))


def asked(application: str, *more: str) -> str:
    """Return the option that tunes a job under a name."""
    return f"--io-autotune={','.join([f'app={application}', *more])}"


def roles(runs: Sequence[Json]) -> list[str]:
    """Return the runs' roles, in order."""
    return [run["role"] for run in runs]

"""Performs an operation on the cluster and undoes it."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from devcluster import accounts, files, process, render
from devcluster.clock import clock_file
from devcluster.errors import CommandFailed
from devcluster.supervisor import Supervisor
from harness import ALICE, ROOT, Site, await_seconds, await_true, await_value
from outages import spool_full

from soak import helpers
from soak.operations import KILLS, Operation
from soak.proxy import MODES, Proxy

RECOVERY_SECONDS = 90.0
"""How long everything may take to run again."""
HUNT_SECONDS = 10.0
"""How long to wait for a helper to act on."""
HIT_SECONDS = 0.04
"""At most so long after it was first seen; it lives for about as long."""
_PARTS = {
    "kill io-autotuned": "io-autotuned",
    "kill postmaster": "postgresql",
    "kill slurmctld": "slurmctld",
    "kill munged": "munged",
}


@dataclass
class Done:
    """An operation that was performed; times in seconds since 1970 and since boot."""

    operation: Operation
    began: float
    began_boot: float
    ended: float = 0.0
    ended_boot: float = 0.0
    held_boot: float = 0.0
    """When it was begun to be undone: what is slow afterwards comes back to life."""
    hits: set[tuple[int, str]] = field(default_factory=set)
    """The helpers that were killed or stopped: the job, and the helper's command."""
    parts: set[str] = field(default_factory=set)
    """What was killed, by the operation's name."""

    @property
    def kinds(self) -> AbstractSet[str]:
        """What was done, the kill during it included."""
        return {self.operation.kind} | self.parts


class Actor:
    """Does to one cluster what an operation says."""

    def __init__(self, site: Site, seed: int) -> None:
        """Act on ``site``; the seed is for when exactly helpers are hit."""
        self._site = site
        self._paths = site.paths
        self._supervisor = Supervisor(self._paths.processes, lambda _message: None)
        self._chance = random.Random(f"actor {seed}")
        self._helper = self._paths.bin / "io-autotune-node"
        self.done: list[Done] = []
        uid = str(accounts.find(ALICE).uid)
        argv = ["munge", f"--socket={self._paths.munge_socket}", "--string=forged"]
        credential = site.cluster.run_as(ALICE, argv).stdout.strip()
        assert uid != "0"
        self._proxy = Proxy(
            self._paths.run / "soak-proxy.sock", self._paths.service_socket, credential
        )

    @property
    def proxied(self) -> int:
        """How many connections the proxy had."""
        return self._proxy.served

    def perform(self, operation: Operation) -> Done:
        """Do it, undo it, and wait until all runs again."""
        done = Done(operation, time.time(), helpers.now())
        self.done.append(done)
        if operation.kind in KILLS:
            done.parts.add(operation.kind)
            self._kill(operation.kind, operation.amount, done)
            await_seconds(operation.hold)
        else:
            with self._lasting(operation, done):
                await_seconds(operation.hold / 2)
                if operation.during is not None:
                    done.parts.add(operation.during)
                    self._kill(operation.during, 1, done)
                    # The flusher is the helper's program, and would be started anew without it.
                    if operation.kind != "helper missing":
                        self._revive()
                await_seconds(operation.hold / 2)
                done.held_boot = helpers.now()
        self._revive()
        self._await_slurm()
        done.ended, done.ended_boot = time.time(), helpers.now()
        return done

    def _revive(self) -> None:
        self._site.cluster.revive()

    def _await_slurm(self) -> None:
        """Wait until slurmctld answers and hears every node again."""

        def hears_all() -> bool:
            argv = ["sinfo", "--noheader", "--Node", "--format=%T"]
            done = self._site.cluster.run_as(ROOT, argv, check=False)
            states = done.stdout.split()
            return (
                done.returncode == 0
                and bool(states)
                and not any("down" in state or state.endswith("*") for state in states)
            )

        await_true("slurmctld to hear every node", hears_all, RECOVERY_SECONDS)

    # Kills

    def _kill(self, kind: str, amount: int, done: Done) -> None:
        if kind == "kill helper":
            self._hit(signal.SIGKILL, amount, done)
        elif kind == "kill backend":
            self._kill_backend()
        elif kind == "kill slurmd":
            process.kill(self._supervisor.running()[f"slurmd-n{amount}"].identity)
        else:
            identity = self._supervisor.running()[_PARTS[kind]].identity
            below = [process.identify(pid) for pid in process.descendants([identity.pid])]
            process.kill(identity)
            if kind == "kill postmaster":
                # They notice, and a new postmaster waits for none of them.
                for child in below:
                    if child is not None and not process.wait_end(child, 10.0):
                        process.kill(child)

    def _kill_backend(self) -> None:
        postmaster = self._supervisor.running()["postgresql"].identity

        def backend() -> process.Identity | None:
            pids = process.descendants([postmaster.pid])
            self._chance.shuffle(pids)
            for pid in pids:
                identity = process.identify(pid)
                if identity is not None and " io_autotune " in _command_line(pid):
                    return identity
            return None

        process.kill(await_value("a backend of io-autotuned", backend))

    def _hit(self, number: int, amount: int, done: Done) -> None:
        """Send a signal to some helpers, each somewhere in its life."""
        for helper in helpers.hunt(self._helper, HUNT_SECONDS):
            time.sleep(self._chance.uniform(0, HIT_SECONDS))
            if process.is_alive(helper.identity):
                process.send(helper.identity, number)
                done.hits.add((helper.job_id, helper.command))
            if len(done.hits) >= amount:
                return

    # What lasts

    @contextmanager
    def _lasting(self, operation: Operation, done: Done) -> Iterator[None]:
        with ExitStack() as stack:
            if operation.kind in MODES:
                stack.enter_context(self._proxy.standing(operation.kind))
                stack.enter_context(self._clients_sent_to_proxy(operation.amount))
            elif operation.kind == "helper stopped":
                self._hit(signal.SIGSTOP, operation.amount, done)
            elif operation.kind == "helper missing":
                stack.enter_context(self._helper_missing())
            elif operation.kind == "spool full":
                stack.enter_context(spool_full(self._site))
            elif operation.kind == "spool unusable":
                stack.enter_context(self._spool_for_everybody())
            elif operation.kind == "database read-only":
                stack.enter_context(self._database_read_only())
            else:
                sign = "+" if operation.kind == "clock ahead" else "-"
                stack.enter_context(self._clock(f"{sign}{operation.amount}"))
            yield

    @contextmanager
    def _clients_sent_to_proxy(self, endpoints: int) -> Iterator[None]:
        path = self._paths.client_toml
        before = path.read_text(encoding="utf-8")
        proxy = f"unix:{self._paths.run / 'soak-proxy.sock'}"
        text = render.asking(before, [proxy] * endpoints)
        # The flusher reads it at each pass: until then it would tell the node that all is well.
        self._supervisor.end("flusher")
        files.write(path, text, mode=0o644)
        self._revive()
        try:
            yield
        finally:
            files.write(path, before, mode=0o644)
            self._revive()

    @contextmanager
    def _helper_missing(self) -> Iterator[None]:
        away = self._helper.with_suffix(".away")
        self._helper.rename(away)
        try:
            yield
        finally:
            away.rename(self._helper)

    @contextmanager
    def _spool_for_everybody(self) -> Iterator[None]:
        spool = self._paths.plugin_spool
        before = spool.stat().st_mode & 0o7777
        spool.chmod(0o777)
        try:
            yield
        finally:
            spool.chmod(before)

    @contextmanager
    def _database_read_only(self) -> Iterator[None]:
        setting = "default_transaction_read_only"
        self._setting(f"alter system set {setting} = on")
        try:
            yield
        finally:
            # What was killed meanwhile runs again, and may still be recovering.
            self._setting(f"alter system reset {setting}")

    def _setting(self, change: str) -> None:
        def is_made() -> bool:
            try:
                self._site.sql(change, "postgres")
                self._site.sql("select pg_reload_conf()", "postgres")
            except CommandFailed:
                return False
            return True

        await_true(f"PostgreSQL to {change}", is_made, RECOVERY_SECONDS)

    @contextmanager
    def _clock(self, offset: str) -> Iterator[None]:
        files.write(clock_file(self._paths), f"{offset}\n", mode=0o644)
        try:
            yield
        finally:
            files.write(clock_file(self._paths), "+0\n", mode=0o644)


def _command_line(pid: int) -> str:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return line.replace(b"\0", b" ").decode("utf-8", "replace")

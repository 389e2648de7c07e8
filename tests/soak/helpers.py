"""The node helpers of prolog and epilog, looked at from outside: who runs, and for how long."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from devcluster import process
from devcluster.process import Identity

from soak.background import running

HOOKS = frozenset({"start", "finish", "restore"})
"""The helper's commands in prolog and epilog."""
LOOK_SECONDS = 0.1
"""How often to look: whoever lives shorter has kept every deadline."""
YOUNG_SECONDS = 1.0
"""For how long a process may still become a helper (execve)."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Helper:
    """A node helper that runs in a hook."""

    identity: Identity
    command: str
    job_id: int

    @property
    def began(self) -> float:
        """Seconds from the boot to its start."""
        return self.identity.start_ticks / TICKS


@dataclass(frozen=True)
class Life:
    """How long a node helper lived; times in seconds since boot."""

    command: str
    job_id: int
    began: float
    seen: float
    """When it was last seen alive."""
    ended: float
    """When its end was noticed."""
    queued: float
    """How long the machine had no processor for it."""

    @property
    def took(self) -> float:
        """How long the hook waited for it, the machine's own lateness left out."""
        return self.ended - self.began - self.queued

    @property
    def at_least(self) -> float:
        """How long it surely waited, however late the watch was to notice the end."""
        return self.seen - self.began - self.queued


@dataclass
class Watched:
    """A helper that is watched."""

    helper: Helper
    seen: float
    """When it was last seen alive."""
    queued: float = 0.0
    """How long the machine had no processor for it so far."""


def now() -> float:
    """Return the seconds since boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def helper_of(pid: int, program: Path) -> Helper | None:
    """Return the helper that a process is, if it is one of this cluster in a hook."""
    entry = Path("/proc") / str(pid)
    try:
        if (entry / "exe").readlink() != program:
            return None
        command = (entry / "cmdline").read_bytes().split(b"\0")[1].decode()
        environ = (entry / "environ").read_bytes().split(b"\0")
    except (OSError, IndexError):
        return None
    identity = process.identify(pid)
    job_id = [item for item in environ if item.startswith(b"SLURM_JOB_ID=")]
    if command not in HOOKS or not job_id or identity is None:
        return None
    return Helper(identity, command, int(job_id[0].split(b"=")[1]))


def hunt(program: Path, seconds: float) -> Iterator[Helper]:
    """Yield each helper once, as soon as it is seen, for so long."""
    until = time.monotonic() + seconds
    known: set[Identity] = set()
    while time.monotonic() < until:
        for pid in process.all_pids():
            helper = helper_of(pid, program)
            if helper is not None and helper.identity not in known:
                known.add(helper.identity)
                yield helper
        time.sleep(0.002)


class Watch:
    """Keeps the lives of all helpers that lived long enough to be seen."""

    def __init__(self, program: Path) -> None:
        """Watch those that run ``program``."""
        self._program = program
        self._lives: list[Life] = []
        self._lock = threading.Lock()
        self._over = threading.Event()

    def lives(self) -> list[Life]:
        """Return the lives that have ended."""
        with self._lock:
            return list(self._lives)

    def watching(self) -> AbstractContextManager[None]:
        """Watch for a while."""
        return running(self._over, self._watch)

    def _watch(self) -> None:
        first_seen: dict[int, float] = {}
        present: dict[int, Watched] = {}
        poller = select.poll()
        while not self._over.is_set():
            pids = process.all_pids()
            at = now()
            first_seen = {pid: first_seen.get(pid, at) for pid in pids}
            for pid, seen in first_seen.items():
                if at - seen > YOUNG_SECONDS:
                    continue
                helper = helper_of(pid, self._program)
                if helper is None or helper in [one.helper for one in present.values()]:
                    continue
                try:
                    pidfd = os.pidfd_open(pid)
                except ProcessLookupError:
                    continue
                present[pidfd] = Watched(helper, seen=at)
                poller.register(pidfd, select.POLLIN)
            self._take_turns(poller, present)
        for pidfd in present:
            os.close(pidfd)

    def _take_turns(self, poller: select.poll, present: dict[int, Watched]) -> None:
        """Wait for ends until it is time to look for new ones."""
        until = time.monotonic() + LOOK_SECONDS
        while (left := until - time.monotonic()) > 0 and not self._over.is_set():
            if not present:
                self._over.wait(left)
                return
            for one in present.values():
                one.queued = _queued(one.helper.identity.pid, one.queued)
            at = now()
            for pidfd, _ in poller.poll(min(left, 0.05) * 1000):
                one = present.pop(pidfd)
                poller.unregister(pidfd)
                os.close(pidfd)
                helper = one.helper
                life = Life(
                    helper.command, helper.job_id, helper.began, one.seen, now(), one.queued
                )
                with self._lock:
                    self._lives.append(life)
            for one in present.values():
                # The poll came after.
                one.seen = at


def _queued(pid: int, known: float) -> float:
    """Return the seconds for which a process was ready to run and did not (proc(5), schedstat)."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError):
        return known

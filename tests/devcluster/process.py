"""Processes of the cluster: started in the background, recognised later, ended by identity.

A process id alone may by then be somebody else's, so a process is known by its id, its start time
and the boot it belongs to; signals go through a pidfd, which cannot be reused.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devcluster.accounts import Account
from devcluster.errors import ClusterError

_PROC = Path("/proc")
_children: dict[int, subprocess.Popen[bytes]] = {}
"""Processes that this interpreter started, kept so that they are reaped when they end."""


@dataclass(frozen=True)
class Identity:
    """A process, beyond doubt."""

    pid: int
    start_ticks: int
    """Start time in clock ticks since boot: field 22 of /proc/PID/stat (proc(5))."""
    boot: str
    """The kernel's boot id."""


def identify(pid: int) -> Identity | None:
    """Return the identity of a process, or None if there is none or it has ended (zombie)."""
    if pid in _children:
        _children[pid].poll()
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, start = parse_stat(text)
    return None if state in "ZX" else Identity(pid, start, boot_id())


def parse_stat(text: str) -> tuple[str, int]:
    """Return state and start time of /proc/PID/stat; the command in it may hold any character."""
    fields = text[text.rindex(")") + 1 :].split()
    return fields[0], int(fields[19])


def boot_id() -> str:
    """Return the kernel's id of the present boot."""
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def is_alive(identity: Identity) -> bool:
    """Return whether this very process still runs."""
    return identify(identity.pid) == identity


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    output: Path,
    account: Account | None = None,
) -> Identity:
    """Start a process in a session of its own, its output appended to ``output``.

    Raises:
        ClusterError: it cannot be executed, or ended at once.

    """
    with output.open("ab") as file:
        try:
            child = subprocess.Popen(
                argv,
                env=env,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o022,
                user=None if account is None else account.uid,
                group=None if account is None else account.gid,
                extra_groups=None if account is None else account.groups,
            )
        except OSError as error:
            raise ClusterError(f"'{argv[0]}' cannot be started: {error}") from error
    _children[child.pid] = child
    identity = identify(child.pid)
    if identity is None:
        raise ClusterError(f"'{argv[0]}' ended at once with exit status {child.returncode}")
    return identity


def wait_end(identity: Identity, seconds: float) -> bool:
    """Wait until a process ends; return whether it did within ``seconds``."""
    pidfd = _open(identity)
    if pidfd is None:
        return True
    try:
        return _wait(pidfd, seconds)
    finally:
        os.close(pidfd)
        identify(identity.pid)


def end(identity: Identity, stop: int, seconds: float) -> bool:
    """End a process: the ``stop`` signal, ``seconds`` of patience, then KILL.

    Returns False if it had to be killed.
    """
    pidfd = _open(identity)
    if pidfd is None:
        return True
    try:
        _signal(pidfd, stop)
        if _wait(pidfd, seconds):
            return True
        _signal(pidfd, signal.SIGKILL)
        _wait(pidfd, 10.0)
        return False
    finally:
        os.close(pidfd)
        identify(identity.pid)


def kill(identity: Identity) -> None:
    """Kill a process at once and wait for its end."""
    end(identity, signal.SIGKILL, 5.0)


def send(identity: Identity, number: int) -> None:
    """Send a signal to a process; one that has ended gets none."""
    pidfd = _open(identity)
    if pidfd is None:
        return
    try:
        _signal(pidfd, number)
    finally:
        os.close(pidfd)


def wait_until(
    probe: Callable[[], str | None], seconds: float, identity: Identity | None = None
) -> str | None:
    """Ask ``probe`` again and again until it returns None, and return None.

    Gives up after ``seconds``, or at once when the process ``identity`` ends, and returns what was
    still wrong.
    """
    deadline = time.monotonic() + seconds
    pause = 0.02
    while True:
        problem = probe()
        if problem is None:
            return None
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return f"is not ready after {seconds:g} s: {problem}"
        interval = min(pause, remaining)
        if identity is None:
            time.sleep(interval)
        elif wait_end(identity, interval):
            return "ended before it was ready"
        pause = min(pause * 1.5, 0.25)


def all_pids() -> list[int]:
    """Return the ids of all processes."""
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]


def descendants(roots: Sequence[int]) -> list[int]:
    """Return the ids of the processes below ``roots``, parents before children."""
    children: dict[int, list[int]] = {}
    for pid in all_pids():
        try:
            text = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        parent = int(text[text.rindex(")") + 1 :].split()[1])
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    front = list(roots)
    while front:
        front = [child for pid in front for child in children.get(pid, [])]
        found.extend(front)
    return found


def _open(identity: Identity) -> int | None:
    """Return a pidfd of this very process, or None if it has ended."""
    try:
        pidfd = os.pidfd_open(identity.pid)
    except OSError as error:
        if error.errno in (errno.ESRCH, errno.EINVAL):
            return None
        raise
    # Only now does the id stay ours: ask who it is after the pidfd is open.
    if is_alive(identity):
        return pidfd
    os.close(pidfd)
    return None


def _signal(pidfd: int, number: int) -> None:
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return


def _wait(pidfd: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(max(0, round(seconds * 1000))))

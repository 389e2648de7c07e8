"""A network namespace of the cluster's own, with nothing in it but loopback.

Slurm's daemons bind their ports on every address. In here there is only 127.0.0.1, so nobody
outside reaches them, and no port is the system's.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster import command
from devcluster.errors import ClusterError

_DIRECTORY = Path("/run/netns")
"""Where ip-netns(8) keeps named namespaces."""
_OWN = Path("/proc/thread-self/ns/net")
_CLONE_NEWNET = 0x40000000
"""From linux/sched.h."""

_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """The network namespace of the cluster in one root directory."""

    def __init__(self, root: Path) -> None:
        """Describe it without touching anything; its name follows from ``root``."""
        digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
        self.name = f"io-autotune-{digest}"
        self._path = _DIRECTORY / self.name

    def exists(self) -> bool:
        """Return whether it has been made since the machine's start."""
        return self._path.exists()

    def ensure(self) -> None:
        """Make it where there is none, and bring its loopback up.

        Raises:
            ClusterError: the kernel or a missing privilege forbids it.

        """
        if not self.exists():
            command.run(["ip", "netns", "add", self.name])
        with self.inside():
            command.run(["ip", "link", "set", "lo", "up"])
            # With 127.0.0.1 alone getaddrinfo(3) finds no IPv4 (AI_ADDRCONFIG), and Slurm asks it.
            command.run(["ip", "address", "replace", "127.0.0.2/8", "dev", "lo"])

    def delete(self) -> None:
        """Remove it; processes that still are in it keep theirs until they end."""
        if self.exists():
            command.run(["ip", "netns", "delete", self.name])

    def enter(self) -> None:
        """Put the calling thread, and all that it starts from now on, into it for good."""
        with self._path.open("rb") as target:
            _set(target.fileno())

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Put the calling thread, and all that it starts, into it for a while.

        Does nothing where it does not exist: then nothing of the cluster runs either.
        """
        if not self.exists():
            yield
            return
        with _OWN.open("rb") as own:
            self.enter()
            try:
                yield
            finally:
                _set(own.fileno())


def _set(descriptor: int) -> None:
    """setns(2), which Python has from 3.12 on."""
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise ClusterError(f"the network namespace cannot be entered: {os.strerror(number)}")

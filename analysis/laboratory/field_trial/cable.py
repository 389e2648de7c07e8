"""A server at a distance: a network namespace behind a cable with a delay and a rate."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from field_trial.listing import Cable

NAMESPACE = "io-autotune-field"
"""Of the server."""
DEVICE = "cable"
SERVER, CLIENT = "10.77.0.2", "10.77.0.1"
MTU = 9000
"""Jumbo frames: with 1,500 bytes the relay would take a whole core at a gigabit."""
QUEUE = 10000
"""Packets that wait in a device before any is dropped."""


@dataclass(frozen=True)
class Server:
    """Where servers run; clients reach them by ``address``."""

    address: str
    namespace: str

    def argv(self, *argv: str) -> list[str]:
        """Return a command that runs another there, in the same mount namespace as here.

        ip-netns(8) would hide FUSE's mounts in one of its own.
        """
        return inside(self.namespace, argv)


def inside(namespace: str, argv: Sequence[str]) -> list[str]:
    """Return a command that runs another in a network namespace."""
    return ["nsenter", f"--net=/run/netns/{namespace}", *argv]


def command(*argv: str) -> str:
    """Run a command to its end, and return what it printed.

    Raises:
        RuntimeError: it failed; with its words.

    """
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@contextmanager
def laid(wire: Path, client: str, cable: Cable) -> Iterator[Server]:
    """Lay a cable from a client's network namespace to a server's, which is made for it."""
    if Path("/run/netns", NAMESPACE).exists():
        # Of a trial that was killed: its relay has ended with it.
        command("ip", "netns", "delete", NAMESPACE)
    command("ip", "netns", "add", NAMESPACE)
    try:
        command("ip", "-n", NAMESPACE, "link", "set", "lo", "up")
        numbers = [str(cable.delay_us), str(cable.rate_mbit)]
        argv = [str(wire), DEVICE, client, NAMESPACE, *numbers]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
            assert relay.stdin is not None
            assert relay.stdout is not None
            if relay.stdout.readline() != b"up\n":
                raise RuntimeError(f"{' '.join(argv)} did not come up; see above")
            for namespace, address in ((client, CLIENT), (NAMESPACE, SERVER)):
                command("ip", "-n", namespace, "address", "add", f"{address}/30", "dev", DEVICE)
                command(
                    *("ip", "-n", namespace, "link", "set", DEVICE, "up"),
                    *("mtu", str(MTU), "txqueuelen", str(QUEUE)),
                )
            yield Server(SERVER, NAMESPACE)
            # It ends with its standard input, and its devices with it.
            relay.stdin.close()
    finally:
        command("ip", "netns", "delete", NAMESPACE)

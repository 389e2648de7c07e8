"""Free TCP ports on 127.0.0.1, picked once and then remembered."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Iterable
from pathlib import Path

from devcluster.errors import ClusterError
from devcluster.record import Ports

HOST = "127.0.0.1"
"""Where everything listens."""

NODES_HOST = "127.0.0.2"
"""Where io-autotuned listens for root of the nodes, on the same port."""

LOWEST = 10240
"""Ports below are left to the system's services."""

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def is_free(port: int) -> bool:
    """Return whether a TCP port can be bound on every address (Slurm's daemons bind them all)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            probe.listen()
        except OSError:
            return False
        return True


def ephemeral() -> int:
    """Return a port of the loopback address that nobody has at present."""
    with socket.create_server((HOST, 0)) as server:
        return int(server.getsockname()[1])


def candidates(ephemeral_low: int, taken: Collection[int], rng: random.Random) -> list[int]:
    """Return ports to try, in random order: below the ephemeral range, and not ``taken``.

    A remembered port inside the ephemeral range would sooner or later be some connection's local
    port at the moment the cluster starts.
    """
    high = ephemeral_low if ephemeral_low > LOWEST + 1000 else 65536
    return rng.sample([port for port in range(LOWEST, high) if port not in taken], k=500)


def allocate(nodes: int, taken: Collection[int]) -> Ports:
    """Pick free ports for a cluster of ``nodes`` nodes; those ``taken`` are somebody else's."""
    service, slurmctld, postgresql, slurmdbd, *slurmd = _free(4 + nodes, taken)
    return Ports(service, slurmctld, postgresql, tuple(slurmd), slurmdbd)


def resize(ports: Ports, nodes: int, taken: Collection[int]) -> Ports:
    """Return the same ports for another number of nodes, with new ones where some are missing."""
    kept = ports.slurmd[:nodes]
    lacks_slurmdbd = ports.slurmdbd is None
    new = _free(nodes - len(kept) + lacks_slurmdbd, {*taken, *ports.all()})
    slurmdbd = new.pop() if lacks_slurmdbd else ports.slurmdbd
    return Ports(ports.service, ports.slurmctld, ports.postgresql, (*kept, *new), slurmdbd)


def _free(count: int, taken: Collection[int]) -> list[int]:
    low = int(_EPHEMERAL.read_text(encoding="ascii").split()[0])
    found = list(_take(count, filter(is_free, candidates(low, taken, random.SystemRandom()))))
    if len(found) < count:
        raise ClusterError(f"{count} free TCP ports are needed on {HOST}, {len(found)} were found")
    return found


def _take(count: int, items: Iterable[int]) -> Iterable[int]:
    if count <= 0:
        return
    for taken, item in enumerate(items, start=1):
        yield item
        if taken == count:
            return

"""Ports: free, apart from each other, and kept."""

from __future__ import annotations

import random
import socket

from devcluster import ports


def test_allocated_ports_are_free_and_different() -> None:
    made = ports.allocate(4, taken=set())
    assert len(made.slurmd) == 4
    assert len(set(made.all())) == 8
    assert all(ports.is_free(port) for port in made.all())


def test_a_listening_port_is_not_free() -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        port = server.getsockname()[1]
        assert not ports.is_free(port)
    assert ports.is_free(port)


def test_candidates_lie_below_the_ephemeral_range_and_are_nobody_elses() -> None:
    taken = set(range(11000, 30000))
    found = ports.candidates(32768, taken, random.Random(1))
    assert len(set(found)) == len(found) > 0
    assert all(ports.LOWEST <= port < 32768 and port not in taken for port in found)


def test_candidates_where_the_ephemeral_range_begins_low() -> None:
    found = ports.candidates(1024, set(), random.Random(1))
    assert all(ports.LOWEST <= port < 65536 for port in found)


def test_resize_keeps_what_it_can() -> None:
    made = ports.allocate(2, taken=set())
    larger = ports.resize(made, 3, taken=set())
    assert larger.slurmd[:2] == made.slurmd
    assert larger.slurmd[2] not in made.all()
    assert ports.resize(larger, 1, taken=set()) == ports.resize(made, 1, taken=set())

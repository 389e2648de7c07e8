"""Ten thousand nodes that ask for one job's settings, and as many tasks of an array."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from devcluster import command

from bench.figures import Aim, Figure, mean_of_rounds
from bench.place import STUDIES_CLUSTER, Place, Service

NODES = 10_000
DEADLINE_MS = 2000
"""The prolog's."""
AIM = Aim(1.0)


def figures(place: Place, rounds: int) -> list[Figure]:
    """Measure, and return the figures."""
    return [_nodes(place, rounds), _tasks(place, rounds)]


def _nodes(place: Place, rounds: int) -> Figure:
    """Return what a job's nodes take of the service's host: its processors until the deadline."""
    shares, last = [], []
    costs: dict[str, list[float]] = {}
    processors = len(os.sched_getaffinity(0))
    with place.database("bench_nodes") as database, place.service(database, tcp=True) as service:
        for number in range(rounds):
            summary, used = _asked(place, service, number + 1)
            assert summary["answered"] == NODES, f"some nodes failed: {summary['failures']}"
            _add(costs, used)
            last.append(summary["last"])
            service_seconds = used["io-autotuned"] + used["munged"]
            shares.append(service_seconds / processors / (DEADLINE_MS / 1e3))
    return Figure(
        f"{NODES} nodes ask for one job's settings: the service's processor time, of what its"
        " processors have until the deadline",
        "ratio",
        mean_of_rounds(shares),
        AIM,
        f"{rounds} rounds, signed beforehand; ms of processor a node: {_parts(costs)}; with the"
        f" nodes' sockets on the same {processors} processors the last answer comes after"
        f" {mean_of_rounds(last).value:.0f} ms of {DEADLINE_MS}",
    )


def _tasks(place: Place, rounds: int) -> Figure:
    """Return how many of an array's tasks are answered in time; each is a run of its own."""
    shares = []
    costs: dict[str, list[float]] = {}
    with place.database("bench_tasks") as database, place.service(database, tcp=True) as service:
        for number in range(rounds):
            summary, used = _asked(place, service, number * NODES + 1, "--array")
            _add(costs, used)
            shares.append(summary["answered_in_time"] / NODES)
    return Figure(
        f"{NODES} tasks of an array start at once: the share that is answered within the deadline",
        "ratio",
        mean_of_rounds(shares),
        Aim(1.0, at_least=True),
        f"{rounds} rounds, signed beforehand; the others run with the default; ms of processor a"
        f" task: {_parts(costs)}",
    )


def _add(costs: dict[str, list[float]], used: dict[str, float]) -> None:
    for who, seconds in used.items():
        costs.setdefault(who, []).append(seconds / NODES * 1e3)


def _parts(costs: dict[str, list[float]]) -> str:
    return ", ".join(f"{who} {mean_of_rounds(ms).value:.2f}" for who, ms in costs.items())


def _asked(
    place: Place, service: Service, job_id: int, *arguments: str
) -> tuple[dict[str, Any], dict[str, float]]:
    """Have all nodes of a job ask; return what they tell, and the processor time of each part."""
    argv = [
        *("setpriv", "--bounding-set=-net_bind_service"),
        str(place.cluster.paths.bin / "nodes"),
        f"--config={service.client_toml}",
        f"--cluster={STUDIES_CLUSTER}",
        f"--app=nodes-{job_id}",
        f"--job-id={job_id}",
        f"--nodes={NODES}",
        f"--deadline-ms={DEADLINE_MS}",
        *arguments,
    ]
    with subprocess.Popen(
        argv,
        env=command.base_env(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as asking:
        assert asking.stdin is not None
        assert asking.stdout is not None
        signed = asking.stdout.readline()
        assert signed == "signed\n", f"the nodes say {signed!r}"
        users = {
            "io-autotuned": service.identity.pid,
            "munged": place.pid_of("munged"),
            "postgresql": place.pid_of("postgresql"),
            "the nodes' sockets": asking.pid,
        }
        with place.using(users) as used:
            asking.stdin.write("\n")
            asking.stdin.flush()
            summary: dict[str, Any] = json.loads(asking.stdout.readline())
    return summary, used

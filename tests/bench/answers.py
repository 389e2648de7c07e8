"""Ten thousand nodes that ask for one job's settings."""

from __future__ import annotations

from bench.figures import Aim, Figure, mean_of_rounds
from bench.place import Place

NODES = 10_000
DEADLINE_MS = 2000
"""The prolog's."""
PATIENT_MS = 60_000


def figures(place: Place, rounds: int) -> list[Figure]:
    """Measure, and return the figures."""
    shares, slowest, answered_within = [], [], []
    costs: dict[str, list[float]] = {}
    with place.database("bench_nodes") as database, place.service(database, tcp=True) as service:
        users = {"io-autotuned": service.identity.pid, "munged": place.pid_of("munged")}
        for number in range(rounds):
            with place.using(users) as used:
                summary = place.client(
                    "lives",
                    service,
                    "--starts-only",
                    "--one-job",
                    "--studies=1",
                    f"--app=nodes-{number}",
                    f"--lives={NODES}",
                    f"--clients={NODES}",
                    f"--first-job-id={number + 1}",
                    f"--deadline-ms={PATIENT_MS}",
                )
            assert summary["lives"] == NODES, f"some nodes failed: {summary['failures']}"
            assert summary["explored"] <= 1, "nodes of one job have different answers"
            used["the nodes"] = summary["processor_seconds"]
            for who, seconds in used.items():
                costs.setdefault(who, []).append(seconds / NODES * 1e3)
            last = summary["starts"]["slowest"]
            slowest.append(last)
            shares.append(last / DEADLINE_MS)
            answered_within.append(NODES / last * DEADLINE_MS)
    parts = (f"{who} {mean_of_rounds(ms).value:.2f}" for who, ms in costs.items())
    return [
        Figure(
            f"{NODES} nodes ask for one job's settings: the last answer against the deadline",
            "ratio",
            mean_of_rounds(shares),
            Aim(1.0),
            f"{rounds} rounds; the last answer after {mean_of_rounds(slowest).value:.0f} ms,"
            f" which is {mean_of_rounds(answered_within).value:.0f} nodes in the prolog's"
            f" {DEADLINE_MS} ms; the nodes' part is done on the same processors: ms of processor a"
            f" node: {', '.join(parts)}",
        )
    ]

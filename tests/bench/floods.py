"""Starts while two users send the service all they can, against starts while nobody does.

The users have a processor and a munged of their own, as on another host; the service, PostgreSQL,
munged and what asks for starts share the others, in both cases.
"""

from __future__ import annotations

from devcluster import accounts
from devcluster.floods import KINDS
from devcluster.users import JOB_USERS

from bench.figures import Aim, Figure, mean_of_rounds, ratio_of_rounds
from bench.place import Place, in_turn

STARTS = 1500
"""A round's, by two clients."""
STUDIES = 8
RUNS = 1500
"""As many has each of the users who ask for lists of them."""
AIM = Aim(2.0)
AT_NODES_DOOR = "silence at the door for nodes"
FLOODS = tuple(arguments for kind, arguments in KINDS.items() if kind != AT_NODES_DOOR)
"""What each sends at once: all that goes to users' door."""


def figures(place: Place, rounds: int) -> list[Figure]:
    """Measure, and return the figures."""
    p99: dict[str, list[float]] = {"quiet": [], "flooded": []}
    medians: dict[str, list[float]] = {"quiet": [], "flooded": []}
    missed = asked = 0
    with (
        place.sharing_out_processors(),
        place.database("bench_floods") as database,
        place.service(database) as service,
    ):

        def starts() -> dict[str, float]:
            nonlocal missed, asked
            summary = place.client(
                "lives",
                service,
                "--starts-only",
                "--clients=2",
                # A round's own: launches in flight, which here never end, make the next one slower.
                f"--app=floods-{asked}",
                f"--studies={STUDIES}",
                f"--lives={STARTS}",
                f"--first-job-id={asked + 1}",
            )
            asked += STARTS
            missed += summary["failed"]
            times: dict[str, float] = summary["starts"]
            return times

        for number, account in enumerate(map(accounts.find, JOB_USERS)):
            place.client(
                "lives",
                service,
                "--starts-only",
                f"--app=floods-of-{account.name}",
                f"--uid={account.uid}",
                f"--lives={RUNS}",
                f"--first-job-id={1_000_000_000 + number * RUNS}",
            )
        starts()
        for side in in_turn(rounds, "quiet", "flooded"):
            if side == "quiet":
                times = starts()
            else:
                with place.flooded(service, FLOODS):
                    times = starts()
            p99[side].append(times["p99"])
            medians[side].append(times["median"])
    shown = ", ".join(
        f"{side} p99 {mean_of_rounds(p99[side]).value:.1f} ms,"
        f" median {mean_of_rounds(medians[side]).value:.1f} ms"
        for side in p99
    )
    return [
        Figure(
            "p99 of a start while two users flood the service, against while nobody does",
            "ratio",
            ratio_of_rounds(p99["flooded"], p99["quiet"]),
            AIM,
            f"{rounds} rounds of {STARTS} starts, one processor for the users; {shown};"
            f" {missed} of {asked} starts missed the prolog's deadline",
        )
    ]

"""What is done to the cluster: a random list of operations under a seed. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KILLS: Mapping[str, str] = {
    "kill io-autotuned": "the service is killed (SIGKILL) and started again",
    "kill postmaster": "PostgreSQL's first process is killed and started again: crash recovery",
    "kill backend": "one process of PostgreSQL's that serves io-autotuned is killed: all of them"
    " end, and the database recovers",
    "kill slurmctld": "slurmctld is killed and started again",
    "kill slurmd": "the slurmd of one node is killed and started again",
    "kill munged": "munged is killed and started again",
    "kill helper": "node helpers are killed wherever they are in prolog or epilog",
}
"""Operations of a moment, and what they mean."""

LASTING: Mapping[str, str] = {
    "helper stopped": "node helpers in prolog or epilog are stopped (SIGSTOP) and stay so",
    "helper missing": "the node helper's program is not there",
    "spool full": "the file system of the spool has not a byte left",
    "spool unusable": "everybody can write the spool, so that root does not trust it",
    "database read-only": "PostgreSQL takes no writes (default_transaction_read_only)",
    "clock ahead": "the clock of PostgreSQL and io-autotuned jumps ahead, and back at the end",
    "clock behind": "it jumps back, and ahead at the end",
    "service mute": "connections are accepted and never answered",
    "answers drip": "the service's answers come a byte at a time",
    "answers garbage": "connections are answered with what is not HTTP",
    "answers huge": "an answer's body does not end",
    "credential wrong": "the request's credential is changed on its way",
    "request replayed": "each request reaches the service twice, and the second answer comes back",
    "answer altered": "the service's answer is changed on its way",
    "answer forged": "a user's process answers, and signs as that user",
}
"""Operations that hold for a while and are undone, and what they mean."""

PROXIED = ("service", "answer", "credential", "request")
"""How the names of those begin that a proxy does."""

BETWEEN = (0.5, 3.0)
"""Seconds from the end of one operation to the next."""
HOLDS = (2.0, 8.0)
"""Seconds for which a lasting one holds, or a part that was killed stays away at most."""
AWAY = (0.0, 3.0)
"""Seconds from a kill to the start."""
JUMPS = (30, 7200)
"""Seconds by which the clock jumps."""
TOGETHER = 0.25
"""How often something is killed while something else holds."""


@dataclass(frozen=True)
class Operation:
    """One thing to do to the cluster."""

    kind: str
    pause: float
    """Seconds to wait before it."""
    hold: float
    """Seconds that it lasts, or from a kill to the start."""
    amount: int
    """Seconds of a jump of the clock, the number of a node, how many helpers, or how many endpoints
    the clients have: as its kind needs."""
    during: str | None = None
    """What is killed half way through one that lasts."""

    def told(self) -> str:
        """Return it as one line."""
        also = f", with {self.during}" if self.during else ""
        return f"{self.kind} ({self.amount}) for {self.hold:.1f} s{also}"


def meanings() -> dict[str, str]:
    """Return every kind of operation and what it means."""
    return {**KILLS, **LASTING}


def generated(seed: int, count: int, nodes: int) -> list[Operation]:
    """Return ``count`` operations for a cluster of ``nodes`` nodes; the same for the same seed.

    Every kind comes once before any comes again, each time in another order.
    """
    chance, order = random.Random(seed), random.Random(f"order {seed}")
    kinds: list[str] = []
    while len(kinds) < count:
        some = list(meanings())
        order.shuffle(some)
        kinds += some
    return [_one(chance, kind, nodes) for kind in kinds[:count]]


def _one(chance: random.Random, kind: str, nodes: int) -> Operation:
    pause = chance.uniform(*BETWEEN)
    hold = chance.uniform(*(AWAY if kind in KILLS else HOLDS))
    amount = 1
    if kind == "kill slurmd":
        amount = chance.randint(1, nodes)
    elif kind in {"kill helper", "helper stopped"}:
        amount = chance.randint(1, 3)
    elif kind.startswith("clock"):
        amount = chance.randint(*JUMPS)
    elif kind.startswith(PROXIED):
        amount = chance.randint(1, 2)
    together = chance.random() < TOGETHER
    during = chance.choice(_during(kind)) if kind in LASTING and together else None
    return Operation(kind, pause, hold, amount, during)


def _during(kind: str) -> Sequence[str]:
    """Return what can be killed while this holds; what brings parts back must not undo it."""
    return sorted(set(KILLS) - ({"kill helper"} if kind.startswith("helper") else set()))

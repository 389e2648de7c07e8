"""What admins do on the day, and what happens to replicas. Pure: a seed gives the same list."""

from __future__ import annotations

import random
from dataclasses import dataclass

from day.launches import APPLICATIONS, PAST_STEPS, STEPS

MEANINGS = {
    "pin": "an admin pins a study; three steps later unpins it",
    "reset": "an admin resets a study: a new epoch",
    "freeze": "an admin freezes a study; three steps later ends that",
    "kill": "a replica is killed (SIGKILL) under load and started again",
    "upgrade": "rolling: the new program migrates, then each replica ends (SIGTERM) and the new one"
    " starts in its place, under load; with no version left, a rolling restart",
    "retention": "an admin has runs removed that are older than 30 days",
    "report": "the nightly report of the day so far",
    "extremes": "a node's reports have extremes of each field: years, numbers, texts, collections;"
    " then the node's own reports come",
    "forged": "a node reports parametrizations that nobody gave its jobs",
    "orders": "a user sends 300 orders at once while jobs start",
    "unassessable": "a study's evidence cannot be written for a while",
    "read-only": "the database takes no writes for a while, under reports and starts",
}
LASTS = 3
"""Steps that a pin or a freeze holds."""
UNDOES = {"unpin": "pin", "resume": "freeze"}


FAULTS = ("extremes", "forged", "orders", "unassessable", "read-only")
"""Of these each comes twice, once every replica is of this tree."""


@dataclass(frozen=True)
class Operation:
    """Something that is done in a step."""

    step: int
    kind: str
    application: str = ""
    replica: int = 0


def generated(seed: int, steps: int = STEPS) -> list[Operation]:
    """Return the day's operations in their order."""
    chance = random.Random(f"operations {seed}")

    def at(hour: float) -> int:
        return PAST_STEPS + int(steps * hour / 24)

    first, second = at(9.2), at(15.2)
    found = [
        # Without an epoch that is over, retention has nothing to remove.
        *(Operation(PAST_STEPS - 1, "reset", f"app-{place}") for place in range(5)),
        Operation(first, "upgrade"),
        Operation(second, "upgrade"),
        Operation(at(22), "retention"),
        Operation(at(23.2), "report"),
        *(
            Operation(at(hour + place / 2), kind)
            for hour in (16.2, 19.2)
            for place, kind in enumerate(FAULTS)
        ),
    ]
    steered = chance.sample(range(5, APPLICATIONS // 2), APPLICATIONS // 2 - 5)
    kinds = ["pin", "reset", "pin", "freeze", "kill"]
    for number, step in enumerate(range(at(1), at(23) - LASTS, max(2, steps // 36))):
        kind = kinds[number % len(kinds)]
        if step in {first, second} or (kind == "freeze" and step <= first):
            continue
        application = f"app-{steered.pop()}"
        if kind == "kill":
            found.append(Operation(step, kind, replica=chance.randrange(2)))
            continue
        found.append(Operation(step, kind, application))
        for undo, done in UNDOES.items():
            if done == kind:
                found.append(Operation(step + LASTS, undo, application))
    return sorted(found, key=lambda one: one.step)

"""Which jobs a site has on a day, and what becomes of each. Pure: a seed gives the same ones."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

DAY_SECONDS = 24 * 3600
STEPS = 144
"""The clock goes on in so many steps; what happens within one has its order from chance."""
PAST_STEPS = 3
"""Steps of a day long before, of which retention removes runs."""
PAST_JOBS = 200
"""In each of them."""
APPLICATIONS = 120
FIRST_UID = 20_001
USERS = 12
LOST_AFTER_SECONDS = 6 * 3600
"""``lost_after_seconds`` of service.toml: the usual week does not fit into a day."""
RHYTHM = (2, 2, 1, 1, 1, 2, 3, 5, 8, 10, 11, 10, 7, 9, 11, 11, 10, 8, 6, 5, 4, 4, 3, 2)
"""How busy each hour is, against the others."""
ARRAYS = 0.25
"""The share of a step's jobs that come as arrays, of up to this many tasks."""
TASKS = 150
REPEATED = 0.05
"""The share of launches whose requests come twice."""


@dataclass(frozen=True)
class Fate:
    """What becomes of a launch."""

    share: float
    state: str | None
    """Slurm's word; None: it never comes."""
    is_reported: bool
    ends: frozenset[str]
    """The states in which its run may be in the end."""


_COUNTED, _NOT = frozenset({"counted"}), frozenset({"not_counted"})
FATES: Mapping[str, Fate] = {
    "completes": Fate(0.82, "COMPLETED", True, _COUNTED),
    "fails": Fate(0.05, "FAILED", True, _NOT),
    "is cancelled": Fate(0.03, "CANCELLED", True, _NOT),
    "runs out of time": Fate(0.02, "TIMEOUT", True, frozenset({"censored"})),
    "runs out of memory": Fate(0.01, "OUT_OF_MEMORY", True, _NOT),
    "is requeued": Fate(0.02, "NODE_FAIL", False, _NOT),
    "loses its report": Fate(0.02, "COMPLETED", False, _NOT),
    "reports hours late": Fate(0.01, "COMPLETED", True, _COUNTED),
    # An earlier service counted one against which nothing speaks.
    "loses its outcome": Fate(0.01, None, True, _COUNTED | _NOT),
    "is never heard of": Fate(0.01, None, False, _NOT),
}
"""Of a requeued job this is the first launch; its second one completes."""


@dataclass(frozen=True)
class Launch:
    """One launch of a job. Steps are numbered from the first of the past ones."""

    job_id: int
    restarts: int
    uid: int
    application: str
    fate: str
    starts: int
    ends: int
    reported: int | None
    told: int | None
    repeats: bool
    """Each of its requests comes again, at the other replica."""

    def may_be(self, step: int) -> frozenset[str]:
        """Return the states in which its run may be once it has a verdict."""
        late = self.reported is not None and self.reported > self.ends and step < self.reported
        return FATES[self.fate].ends | (_NOT if late else frozenset())


def generated(seed: int, jobs: int, steps: int = STEPS) -> list[Launch]:
    """Return the past's launches and the day's, of so many jobs, in the order of their starts."""
    chance = random.Random(f"launches {seed}")
    launches: list[Launch] = []
    job_id = 0
    weights = [RHYTHM[step * 24 // steps] * chance.uniform(0.7, 1.3) for step in range(steps)]
    shares = [jobs * weight / sum(weights) for weight in weights]
    counts = [PAST_JOBS] * PAST_STEPS + [round(share) for share in shares]
    popularity = [1 / (place + 3) for place in range(APPLICATIONS)]
    for step, count in enumerate(counts):
        left = count
        while left > 0:
            (place,) = chance.choices(range(APPLICATIONS), popularity)
            is_array = chance.random() < ARRAYS / TASKS * 2
            tasks = min(left, chance.randint(2, TASKS)) if is_array else 1
            for _ in range(tasks):
                job_id += 1
                launches += _job(chance, job_id, place, (step, len(counts) - 1))
            left -= tasks
    return sorted(launches, key=lambda one: (one.starts, one.job_id))


def first_of_day(launches: list[Launch]) -> int:
    """Return the first job id that is of the day and not of the past."""
    return min(one.job_id for one in launches if one.starts >= PAST_STEPS)


def _job(chance: random.Random, job_id: int, place: int, steps: tuple[int, int]) -> list[Launch]:
    """Return a job's launches: one, or two where it is requeued. It ends by the day's last step."""
    step, last = steps
    names, shares = list(FATES), [fate.share for fate in FATES.values()]
    (fate,) = chance.choices(names, shares)
    hour = (last + 1 - PAST_STEPS) / 24
    # Of ten jobs six end in the step in which they start; the longest takes five hours.
    longest = chance.randint(2, max(2, int(5 * hour)))
    lasts = min(chance.choice([0, 0, 0, 0, 0, 0, 1, 1, 2, longest]), last - step)
    if step < PAST_STEPS:
        lasts = 0
    if step < PAST_STEPS or (fate == "is requeued" and step + lasts == last):
        fate = "completes"
    late = int(chance.uniform(1, 3) * hour) + 1 if fate == "reports hours late" else 0
    first = _launch(chance, (job_id, 0, place), fate, (step, lasts, late))
    if fate != "is requeued":
        return [first]
    again = first.ends + 1
    lasts = min(lasts, last - again)
    return [first, _launch(chance, (job_id, 1, place), "completes", (again, lasts, 0))]


def _launch(
    chance: random.Random, key: tuple[int, int, int], fate: str, steps: tuple[int, int, int]
) -> Launch:
    job_id, restarts, place = key
    step, lasts, late = steps
    ends = step + lasts
    return Launch(
        job_id=job_id,
        restarts=restarts,
        uid=FIRST_UID + place % USERS,
        application=f"app-{place}",
        fate=fate,
        starts=step,
        ends=ends,
        reported=ends + late if FATES[fate].is_reported else None,
        told=ends if FATES[fate].state else None,
        repeats=chance.random() < REPEATED,
    )

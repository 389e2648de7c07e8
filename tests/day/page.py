"""docs/measurements/day.md: what a day was and what came of it. Pure: text from numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tables import table

from day.invariants import INVARIANTS, Tally
from day.launches import FATES, Launch
from day.operations import MEANINGS

_HEAD = """\
# A site's day

Written by `make soak-day`; do not edit. 24 hours of a site against a real PostgreSQL and two
replicas of io-autotuned, whose clock is injected: it goes on in {steps} steps. The jobs are
made up; what their nodes, the collector and admins ask is signed, and sent through the list of both
replicas, as theirs is. A rolling upgrade is the new program's `--migrate` beside both old replicas,
then one replica after the other, while jobs start and end. Nodes speak as those of the first
version throughout, and ask the nodes' address once there is one. After each step the invariants are
checked by SQL and through the API; one that does not hold ends the day.

`make soak-day DAY_ARGS="--jobs={jobs} --steps={steps} --seed={seed}"`
has the same jobs and operations; how they meet is chance. {ended}

Versions: {versions}.
"""

_STARTS = """\
How long 99 % of starts take at most, against the median of all that are asked for while nothing is
done; 24 requests are under way at once. While a replica is away, its clients ask the other one.
"""


@dataclass(frozen=True)
class Outcome:
    """What a day was."""

    seed: int
    jobs: int
    steps: int
    versions: Sequence[str]
    seconds: float
    launches: Sequence[Launch]
    requests: int
    operations: Counter[str]
    starts: Mapping[str, Sequence[float]]
    """Milliseconds, by what was done meanwhile."""
    read: Mapping[str, object]
    """What the last check has read."""
    removed: Mapping[str, int]
    reported: int
    """Runs of the night's report."""
    violated: str | None


def render(outcome: Outcome, tallies: Mapping[str, Tally]) -> str:
    """Return the page."""
    violated = outcome.violated
    ended = f"**It was ended by a violation:** {violated}" if violated else "None was violated."
    head = _HEAD.format(
        versions=", ".join(outcome.versions),
        jobs=outcome.jobs,
        steps=outcome.steps,
        seed=outcome.seed,
        ended=ended,
    )
    fates = Counter(one.fate for one in outcome.launches)
    return "\n".join(
        [
            head,
            table(["what", "number"], _numbers(outcome)),
            "## What becomes of launches\n",
            table(
                ["a launch", "launches", "Slurm's word", "its run is in the end"],
                [
                    (name, fates[name], fate.state or "none", " or ".join(sorted(fate.ends)))
                    for name, fate in FATES.items()
                ],
            ),
            "## Operations\n",
            table(
                ["operation", "times", "what is done"],
                [(kind, outcome.operations[kind], means) for kind, means in MEANINGS.items()],
            ),
            "## Invariants\n",
            table(
                ["invariant", "what holds", "checked", "things looked at"],
                [
                    (one.name, one.means, tally.rounds, tally.looked_at)
                    for one in INVARIANTS
                    for tally in [tallies.get(one.name, Tally())]
                ],
            ),
            "## Starts\n",
            _STARTS,
            table(["meanwhile", "starts", "p99 against the usual median"], _starts(outcome)),
        ]
    )


def _numbers(outcome: Outcome) -> list[tuple[str, object]]:
    return [
        ("seed", outcome.seed),
        ("jobs", outcome.jobs),
        ("launches, requeued ones and those of 40 days before included", len(outcome.launches)),
        ("minutes", f"{outcome.seconds / 60:.1f}"),
        ("requests, each signed and answered", outcome.requests),
        ("runs of the day, by state", _counts(outcome.read.get("states"))),
        ("epochs that drift has opened", outcome.read.get("drifts")),
        ("runs in the night's report, all that had a verdict", outcome.reported),
        ("removed by retention", _counts(outcome.removed)),
    ]


def _counts(counts: object) -> str:
    pairs = counts.items() if isinstance(counts, Mapping) else ()
    return ", ".join(f"{number} {word}" for word, number in sorted(pairs))


def _starts(outcome: Outcome) -> list[tuple[str, int, str]]:
    usual = sorted(outcome.starts.get("usual", []))
    if not usual:
        return []
    median = usual[len(usual) // 2]
    names = {"usual": "nothing", "upgrade": "a rolling upgrade", "kill": "a replica is killed"}
    return [
        (names[label], len(times), f"{sorted(times)[int(len(times) * 0.99)] / median:.1f}")
        for label, times in outcome.starts.items()
    ]

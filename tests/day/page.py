"""docs/measurements/day.md: what a day was and what came of it. Pure: text from numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from soak.checking import Tally
from tables import table

from day.asker import Json
from day.invariants import INVARIANTS
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


@dataclass
class Counts:
    """What happened."""

    requests: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    starts: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Milliseconds of starts, by what was done meanwhile."""
    removed: dict[str, int] = field(default_factory=dict)
    reported: int = 0
    """Runs of the night's report."""
    read: Json = field(default_factory=dict)
    """What the last check has read."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What a day was."""

    seed: int
    jobs: int
    steps: int
    versions: Sequence[str]
    launches: Sequence[Launch]
    counts: Counts
    violated: str | None


def render(outcome: Outcome, tallies: Mapping[str, Tally]) -> str:
    """Return the page."""
    violated, counts = outcome.violated, outcome.counts
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
                [(kind, counts.operations[kind], means) for kind, means in MEANINGS.items()],
            ),
            "## Invariants\n",
            table(
                ["invariant", "what holds", "checked", "things looked at"],
                [
                    (one.name, one.means, tallies[one.name].rounds, tallies[one.name].in_all)
                    for one in INVARIANTS
                ],
            ),
            "## Starts\n",
            _STARTS,
            table(
                ["meanwhile", "starts", "p99 against the usual median"],
                _starts(counts.starts),
            ),
        ]
    )


def _numbers(outcome: Outcome) -> list[tuple[str, object]]:
    counts = outcome.counts
    return [
        ("seed", outcome.seed),
        ("jobs", outcome.jobs),
        ("launches, requeued ones and those of 40 days before included", len(outcome.launches)),
        ("minutes", f"{counts.seconds / 60:.1f}"),
        ("requests, each signed and answered", counts.requests),
        ("runs of the day, by state", _counts(counts.read.get("states"))),
        ("epochs that drift has opened", counts.read.get("drifts")),
        ("runs in the night's report, all that had a verdict", counts.reported),
        ("removed by retention", _counts(counts.removed)),
    ]


def _counts(counts: object) -> str:
    pairs = counts.items() if isinstance(counts, Mapping) else ()
    return ", ".join(f"{number} {word}" for word, number in sorted(pairs))


def _starts(starts: Mapping[str, Sequence[float]]) -> list[tuple[str, int, str]]:
    usual = sorted(starts.get("usual", []))
    if not usual:
        return []
    median = usual[len(usual) // 2]
    names = {"usual": "nothing", "upgrade": "a rolling upgrade", "kill": "a replica is killed"}
    return [
        (names[label], len(times), f"{sorted(times)[int(len(times) * 0.99)] / median:.1f}")
        for label, times in starts.items()
    ]

"""docs/measurements/soak.md: what a soak did and what came of it. Pure: text from numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tables import table

from soak.checking import Tally
from soak.facts import SLURM, Facts
from soak.helpers import Life
from soak.invariants import INVARIANTS
from soak.operations import meanings

_HEAD = """\
# The soak

Written by `make soak`; do not edit. Short real jobs on a private cluster of real slurmctld, slurmd,
munged, PostgreSQL and io-autotuned, and meanwhile a random list of operations under a seed, one
after the other. Each is undone; then the invariants are checked, and once more when all has come to
rest. `make soak SOAK_ARGS="--jobs=2000 --seed={seed}"` does the same operations again; when exactly
they meet a job is chance. `make test` has a short one.
"""

_EXCUSED = """\
What nobody promised, because of what was done to it, counted in the last check. Nothing else was
forgiven.
"""


@dataclass(frozen=True)
class Outcome:
    """What a soak was, beside its facts."""

    seed: int
    version: str
    """Slurm's."""
    nodes: int
    seconds: float
    operations: Sequence[tuple[str, str | None]]
    """What was done: the kind, and what was killed during it."""
    hit: int
    """How many helpers were killed or stopped."""
    proxied: int
    """How many connections to the service a proxy had."""
    drained_by_slurm: int
    """How often Slurm drained a node because it had given a job's id again."""
    held_by_slurm: int
    """How often Slurm held a job that it could not launch."""


def render(outcome: Outcome, facts: Facts, tallies: Mapping[str, Tally]) -> str:
    """Return the page."""
    violated = sum(len(tally.violations) for tally in tallies.values())
    return "\n".join(
        [
            _HEAD.format(seed=outcome.seed),
            _numbers(outcome, facts, violated),
            "## Operations\n",
            _operations(outcome.operations),
            "## Invariants\n",
            _invariants(tallies),
            *_violations(tallies),
            "## Excused\n",
            _EXCUSED,
            _excused(tallies),
            "## What Slurm did by itself\n",
            _slurm(outcome, facts),
        ]
    )


def _numbers(outcome: Outcome, facts: Facts, violated: int) -> str:
    states = Counter(job.row.state for job in facts.jobs)
    runs = Counter(run.state for run in facts.stored.runs)
    rows = [
        ("seed", outcome.seed),
        ("Slurm", outcome.version),
        ("nodes", outcome.nodes),
        ("minutes", f"{outcome.seconds / 60:.1f}"),
        ("operations", len(outcome.operations)),
        ("node helpers killed or stopped", outcome.hit),
        ("connections that the proxy spoilt", outcome.proxied),
        ("jobs, by Slurm's word", _counts(states)),
        ("runs, by state", _counts(runs)),
        ("runs by what was applied", _counts(Counter(run.applied for run in facts.stored.runs))),
        ("helpers in hooks that lived 0.1 s or longer", _lives(facts.lives)),
        ("violated invariants", violated),
    ]
    return table(["what", "number"], rows)


def _counts(counts: Counter[str] | Counter[str | None]) -> str:
    return ", ".join(f"{number} {word or 'unknown'}" for word, number in counts.most_common())


def _lives(lives: Sequence[Life]) -> str:
    if not lives:
        return "0"
    took = sorted(life.took for life in lives)
    share = took[min(len(took) - 1, int(len(took) * 0.99))]
    return f"{len(took)}; 99 % within {share:.2f} s; the longest {took[-1]:.2f} s"


def _operations(done: Sequence[tuple[str, str | None]]) -> str:
    alone = Counter(kind for kind, _ in done)
    during = Counter(kill for _, kill in done if kill is not None)
    rows = [
        (kind, alone[kind] or "-", during[kind] or "-", means)
        for kind, means in meanings().items()
        if alone[kind] or during[kind]
    ]
    return table(["operation", "times", "while another held", "what is done"], rows)


def _invariants(tallies: Mapping[str, Tally]) -> str:
    rows = [
        (
            one.name,
            one.means,
            tallies[one.name].rounds,
            tallies[one.name].looked_at,
            len(tallies[one.name].violations),
        )
        for one in INVARIANTS
    ]
    header = ["invariant", "what holds", "checked", "looked at in the last check", "violated"]
    return table(header, rows)


def _violations(tallies: Mapping[str, Tally]) -> Iterable[str]:
    told = [
        f"- {name}, {when}: {wrong}"
        for name, tally in tallies.items()
        for wrong, when in tally.violations.items()
    ]
    return ["## Violations\n", "\n".join(told) + "\n"] if told else []


def _excused(tallies: Mapping[str, Tally]) -> str:
    rows = [
        (name, because, number)
        for name, tally in tallies.items()
        for because, number in sorted(tally.excused.items())
    ]
    return table(["invariant", "because", "how many"], rows or [("none", "-", 0)])


def _slurm(outcome: Outcome, facts: Facts) -> str:
    """Return what Slurm itself did to jobs, which nobody promises anything about."""
    restarted = sum(job.row.restarts > 0 for job in facts.jobs)
    killed = [job for job in facts.jobs if facts.touched(job, SLURM)]
    other = sum(
        job.row.state != ("FAILED" if job.submission.exit_code else "COMPLETED") for job in killed
    )
    rows = [
        ("jobs beside which slurmctld, slurmd or munged was killed", len(killed)),
        ("of those, jobs that ended in another state than their script", other),
        ("jobs that were requeued", restarted),
        ("jobs that a killed slurmctld has forgotten", len(facts.vanished)),
        (
            "ids that a killed slurmctld has given to two jobs, or whose end it has forgotten",
            len(facts.returned),
        ),
        ("nodes that it drained therefore, and that were resumed", outcome.drained_by_slurm),
        ("jobs that it could not launch and held, and that were released", outcome.held_by_slurm),
        ("submissions refused while Slurm was away", len(facts.refusals)),
    ]
    return table(["what", "number"], rows)

"""What must hold, whatever is done to the cluster. Pure: facts in, what was violated out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from soak.facts import SLURM, Facts, JobFacts
from soak.jobs import OWN_HINTS, understood
from soak.proxy import FORGED

DEADLINE = 2.3
"""Seconds that a hook waits for the helper at most: its deadline, and for its end once killed."""
NOTICE = 0.2
"""How late the watch may notice an end."""
SLOW = 1.0
"""Whoever waited longer has waited for the service."""
MEMORY = 15.0
"""Seconds for which a service that did not answer is not asked again."""
CLOCK = 0.05
"""What /proc/uptime cannot tell: it counts hundredths."""
GONE = frozenset({"kill helper", "helper stopped", "helper missing"})
"""What takes the node helper away."""


HANGING = frozenset({"service mute", "answers drip"})
"""What costs whoever asks the whole deadline."""


@dataclass(frozen=True)
class Invariant:
    """One thing that must hold."""

    name: str
    means: str
    check: Callable[[Facts], Iterator[tuple[int, str | None]]]
    """Yields for each thing that it looked at how many they were, and what is wrong with them."""
    at_end: bool = False
    """Whether it holds only once all has come to rest."""


def _ended(facts: Facts) -> Iterator[JobFacts]:
    for job in facts.jobs:
        if job.row.over and job.row.job_id not in facts.returned:
            yield job


def _nodes(facts: Facts) -> Iterator[tuple[int, str | None]]:
    for node, state in facts.nodes.items():
        bad = any(word in state for word in ("drain", "fail", "down"))
        yield 1, f"{node} is {state}" if bad else None


def _outcome(facts: Facts) -> Iterator[tuple[int, str | None]]:
    for job in _ended(facts):
        code = job.submission.exit_code
        expected = ("FAILED" if code else "COMPLETED", code)
        found = (job.row.state, job.row.exit_code)
        if found == expected:
            yield 1, None
        elif facts.touched(job, SLURM):
            # Slurm itself was killed under it: it requeues or fails jobs of its own accord.
            yield 0, None
        else:
            yield 1, f"{_named(job)} ended as {found} and not as {expected}"


def _output(facts: Facts) -> Iterator[tuple[int, str | None]]:
    for job in _ended(facts):
        if job.row.state not in {"COMPLETED", "FAILED"}:
            continue
        if job.text is not None and understood(job.submission, job.text) is not None:
            yield 1, None
        elif facts.touched(job, SLURM) and (job.submission.has_srun or job.row.restarts):
            yield 0, None
        else:
            yield 1, f"{_named(job)} has printed {job.text!r}"


def _own_hints(facts: Facts) -> Iterator[tuple[int, str | None]]:
    for job in _ended(facts):
        printed = understood(job.submission, job.text or "")
        if job.submission.kind == "own hints" and printed is not None:
            wrong = printed.given != OWN_HINTS
            yield 1, f"{_named(job)} has found {printed.given!r}" if wrong else None


def _no_forgery(facts: Facts) -> Iterator[tuple[int, str | None]]:
    for job in facts.jobs:
        if job.text is not None:
            found = FORGED.split()[0] in job.text
            yield 1, f"{_named(job)} was given what was forged: {job.text!r}" if found else None


def _submission(facts: Facts) -> Iterator[tuple[int, str | None]]:
    slurm_away = facts.outages_of(SLURM)
    for began, ended, stderr in facts.refusals:
        excused = any(out.began <= ended and began <= out.ended for out in slurm_away)
        yield 1, None if excused else f"sbatch failed: {stderr}"


def _deadline(facts: Facts) -> Iterator[tuple[int, str | None]]:
    for life in facts.lives:
        late = life.took > DEADLINE + NOTICE
        yield (
            1,
            (
                f"the helper's {life.command} of job {life.job_id} took {life.took:.2f} s"
                if late
                else None
            ),
        )


def _breaker(facts: Facts) -> Iterator[tuple[int, str | None]]:
    for outage in facts.outages:
        if not outage.kinds & HANGING:
            continue
        slow = sorted(
            (life.began, life.ended, life)
            for life in facts.lives
            if life.took > SLOW
            and life.job_id not in outage.jobs
            and outage.began_boot <= life.began
            and life.ended <= outage.ended_boot + DEADLINE
        )
        if not slow:
            continue
        noticed = min(ended for _, ended, _ in slow)
        # Whoever asked before anybody knew has waited too; from then on one in so many seconds.
        later = [life for began, _, life in slow if began > noticed + NOTICE]
        allowed = int((outage.ended_boot - noticed) // MEMORY)
        wrong = len(later) > allowed
        yield (
            1,
            (
                f"{len(later)} helpers waited after the outage was known: {later[:5]}"
                if wrong
                else None
            ),
        )


def _once(facts: Facts) -> Iterator[tuple[int, str | None]]:
    for run in facts.stored.runs:
        twice = run.reports != run.nodes
        yield (
            1,
            f"job {run.job_id} has {run.reports} reports of {run.nodes} nodes" if twice else None,
        )
    for epoch in facts.stored.epochs:
        same = epoch.in_cache == epoch.counted and epoch.tally == epoch.judged
        yield 1, None if same else f"the caches are not the runs: {epoch}"


def _gapless(facts: Facts) -> Iterator[tuple[int, str | None]]:
    for name in facts.stored.twice:
        yield 1, f"{name} has two studies of one context"
    following: dict[int, int] = {}
    for epoch in facts.stored.epochs:
        expected = following.get(epoch.study, 1)
        following[epoch.study] = epoch.ordinal + 1
        whole = epoch.judgements == epoch.ordinals == epoch.highest and epoch.ordinal == expected
        yield 1, None if whole else f"epoch or judgements have gaps: {epoch}"


def _never_fast(facts: Facts) -> Iterator[tuple[int, str | None]]:
    for job in _ended(facts):
        if job.run is not None and job.run.restarts == job.row.restarts:
            wrong = job.run.state == "counted" and job.row.state != "COMPLETED"
            yield 1, f"{_named(job)} is {job.row.state} and counts" if wrong else None


def _told_apart(facts: Facts) -> Iterator[tuple[int, str | None]]:
    """A run that counts for a parametrization had it, and one of the default had nothing."""
    for job in _ended(facts):
        printed = understood(job.submission, job.text or "")
        if printed is None or job.run is None or job.run.state != "counted":
            continue
        if job.submission.kind == "settings":
            expected = facts.setting[0]
            if job.run.applied == "parametrization":
                expected = job.run.setting or expected
        else:
            expected = job.run.hints if job.run.applied == "parametrization" else ""
        wrong = printed.given != expected
        yield (
            1,
            (
                f"{_named(job)} counts as {job.run.applied}, was to find {expected!r} and found"
                f" {printed.given!r}"
                if wrong
                else None
            ),
        )


def _elapsed(facts: Facts) -> Iterator[tuple[int, str | None]]:
    for job in _ended(facts):
        printed = understood(job.submission, job.text or "")
        if printed is None or job.run is None or job.run.state != "counted":
            continue
        longest = job.row.ended - job.row.began + 2.0
        elapsed = job.run.elapsed or 0.0
        wrong = not printed.seconds - CLOCK <= elapsed <= longest
        yield (
            1,
            (
                f"{_named(job)} worked for {printed.seconds} s, Slurm says {longest - 2} s, and its"
                f" elapsed is {elapsed}"
                if wrong
                else None
            ),
        )


def _counted(facts: Facts) -> Iterator[tuple[int, str | None]]:
    hit = _hit(facts)
    for job in _ended(facts):
        state = None if job.run is None else job.run.state
        if not job.submission.tuned:
            yield 1, f"{_named(job)} asked for nothing and has a run" if job.run else None
            continue
        counts = job.row.state == "COMPLETED" and job.submission.kind != "own hints"
        expected = "counted" if counts else "not_counted"
        # A requeued launch may have had no prolog; a helper that was taken away costs the tuning.
        excused = (
            job.row.restarts > 0
            or job.row.job_id in hit
            or facts.touched(job, {"helper missing"})
            # Where nothing can be saved nothing is changed, and such a run does not count.
            or (job.submission.kind == "settings" and facts.touched(job, {"spool full"}))
            or job.row.began == 0
        )
        if state == expected or (
            excused and state != "censored" and (counts or state != "counted")
        ):
            yield int(state == expected), None
        else:
            verdict = None if job.run is None else job.run.verdict
            yield 1, f"{_named(job)} is {state} and not {expected}: {verdict}"


def _settings(facts: Facts) -> Iterator[tuple[int, str | None]]:
    before, now = facts.setting
    yield 1, None if before == now else f"the setting was {before} and is {now}"


def _left(facts: Facts) -> Iterator[tuple[int, str | None]]:
    # An epilog whose helper was taken away has cleared nothing away; and where slurmctld has
    # forgotten a launch there is no epilog.
    gone = _hit(facts) | facts.returned | facts.vanished
    excused = gone | {
        job.row.job_id
        for job in facts.jobs
        if facts.touched(job, {"helper missing", "kill slurmctld"})
        or (job.row.restarts > 0 and facts.outages_of({"kill slurmctld"}))
    }
    left = [name for name in facts.left if not name.isdigit() or int(name) not in excused]
    yield 1, f"left behind: {left}" if left else None


def _hit(facts: Facts) -> set[int]:
    """Return the jobs whose helper was killed or stopped."""
    return {job_id for outage in facts.outages for job_id in outage.jobs}


def _named(job: JobFacts) -> str:
    return f"job {job.row.job_id} ({job.submission.name}, {job.submission.kind})"


INVARIANTS = [
    Invariant("no node drained", "no node is drained, down or failing", _nodes),
    Invariant(
        "no job's end changed",
        "each job ends as its script does; jobs under which Slurm itself was killed are Slurm's",
        _outcome,
    ),
    Invariant("no job's output changed", "each job prints its lines and nothing else", _output),
    Invariant(
        "the user's variable stays", "a job whose user has set the hints finds them", _own_hints
    ),
    Invariant(
        "nothing forged is acted on",
        "no job is given what a changed or forged answer says",
        _no_forgery,
    ),
    Invariant(
        "no submission refused", "sbatch fails only where Slurm itself was killed", _submission
    ),
    Invariant(
        "no hook beyond the deadline",
        f"no prolog or epilog waits longer than {DEADLINE} s for the helper, as seen from outside,"
        " the time in which the machine had no processor for it left out",
        _deadline,
    ),
    Invariant(
        "an outage is noticed once",
        f"once a helper has waited for a service that hangs, one in {MEMORY:.0f} s waits again",
        _breaker,
    ),
    Invariant(
        "nothing counted twice",
        "one report of each node of a run; caches and tallies are what the runs add up to",
        _once,
    ),
    Invariant(
        "no study forked",
        "one study of an application, accelerator and context; epochs and judgements without gaps",
        _gapless,
    ),
    Invariant(
        "no failed run is fast", "what Slurm does not call completed does not count", _never_fast
    ),
    Invariant(
        "a run counts for what it had",
        "the job itself has found what its run counts for, in its hints or in the kernel",
        _told_apart,
    ),
    Invariant(
        "elapsed is true",
        "elapsed is no less than the job's own clock says and no more than Slurm's",
        _elapsed,
    ),
    Invariant(
        "every completed job counted once",
        "each job that Slurm calls completed has one run that counts; any other has none that does",
        _counted,
        at_end=True,
    ),
    Invariant(
        "every setting restored", "the setting is what it was before the soak", _settings, True
    ),
    Invariant(
        "nothing left behind",
        "no report in the spool, no saved value, no directory of a job whose helper was left alone",
        _left,
        at_end=True,
    ),
]
"""All of them."""


@dataclass
class Tally:
    """How often an invariant was checked, and what was wrong."""

    rounds: int = 0
    looked_at: int = 0
    """Things looked at in the last round."""
    violations: dict[str, str] | None = None
    """What was wrong, and when it was seen first."""


class Checker:
    """Checks the invariants again and again, and keeps what was violated."""

    def __init__(self) -> None:
        """Begin with nothing checked."""
        self.tallies = {one.name: Tally(violations={}) for one in INVARIANTS}

    def check(self, facts: Facts, when: str, *, at_end: bool) -> list[str]:
        """Check them, and return what is violated and was not before."""
        new = []
        for one in INVARIANTS:
            if one.at_end and not at_end:
                continue
            tally = self.tallies[one.name]
            tally.rounds += 1
            tally.looked_at = 0
            for looked_at, wrong in one.check(facts):
                tally.looked_at += looked_at
                assert tally.violations is not None
                if wrong is not None and wrong not in tally.violations:
                    tally.violations[wrong] = when
                    new.append(f"{one.name}: {wrong}")
        return new

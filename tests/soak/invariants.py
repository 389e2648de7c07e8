"""What must hold, whatever is done to the cluster. Pure: facts in, what was violated out."""

from __future__ import annotations

from collections.abc import Iterator

from soak.checking import Finding, Findings, Invariant
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
HANGING = frozenset({"service mute", "answers drip"})
"""What costs whoever asks the whole deadline."""
LOST = "a slurmctld that was killed has given its id to two jobs, or forgotten its end"
TWICE = "a slurmctld that was killed has forgotten that it had launched this id, and did so again"


def _excused(why: str) -> Finding:
    return Finding(excuse=why)


def _confusion(facts: Facts, job: JobFacts) -> str | None:
    """Return how Slurm itself has lost track of a job, if it has."""
    if job.row.job_id in facts.returned:
        return LOST
    # Its id may be given again long after.
    killed = facts.outages_of({"kill slurmctld"})
    if job.row.job_id in facts.twice and any(one.began <= job.row.ended for one in killed):
        return TWICE
    return None


def _ended(facts: Facts) -> Iterator[JobFacts]:
    """Yield the jobs that have ended, and of which Slurm itself has not lost track."""
    for job in facts.jobs:
        if job.row.over and _confusion(facts, job) is None:
            yield job


def _lost(facts: Facts) -> Findings:
    """Yield what is left out: of these jobs nobody can say what was to become of them."""
    for job in facts.jobs:
        confusion = _confusion(facts, job)
        if job.row.over and confusion is not None:
            yield _excused(confusion)


def _nodes(facts: Facts) -> Findings:
    for node, state in facts.nodes.items():
        bad = any(word in state for word in ("drain", "fail", "down"))
        yield Finding(f"{node} is {state}" if bad else None)


def _slurm_killed(facts: Facts, job: JobFacts) -> str | None:
    """Return which of Slurm's own was killed while a job was there."""
    for kind in sorted(SLURM):
        if facts.touched(job, {kind}):
            return f"{kind} while the job was there"
    return None


def _outcome(facts: Facts) -> Findings:
    yield from _lost(facts)
    for job in _ended(facts):
        code = job.submission.exit_code
        expected = ("FAILED" if code else "COMPLETED", code)
        found = (job.row.state, job.row.exit_code)
        # It requeues or fails jobs of its own accord.
        killed = _slurm_killed(facts, job)
        if found == expected:
            yield Finding()
        elif killed is not None:
            yield _excused(killed)
        else:
            yield Finding(f"{_named(job)} ended as {found} and not as {expected}")


def _output(facts: Facts) -> Findings:
    yield from _lost(facts)
    for job in _ended(facts):
        if job.row.state not in {"COMPLETED", "FAILED"}:
            # That it ended so is looked at already.
            continue
        killed = _slurm_killed(facts, job)
        if job.text is not None and understood(job.submission, job.text) is not None:
            yield Finding()
        elif killed is not None and job.submission.has_srun:
            yield _excused(f"{killed}, and its srun had to wait for it")
        elif killed is not None and job.row.restarts:
            yield _excused(f"{killed}, and it was launched again")
        else:
            yield Finding(f"{_named(job)} has printed {job.text!r}")


def _own_hints(facts: Facts) -> Findings:
    yield from _lost(facts)
    for job in _ended(facts):
        printed = understood(job.submission, job.text or "")
        if job.submission.kind == "own hints" and printed is not None:
            wrong = printed.given != OWN_HINTS
            yield Finding(f"{_named(job)} has found {printed.given!r}" if wrong else None)


def _no_forgery(facts: Facts) -> Findings:
    for job in facts.jobs:
        if job.text is not None:
            found = FORGED.split()[0] in job.text
            yield Finding(
                f"{_named(job)} was given what was forged: {job.text!r}" if found else None
            )


def _submission(facts: Facts) -> Findings:
    for began, ended, stderr in facts.refusals:
        kinds = [
            kind
            for kind in sorted(SLURM)
            for out in facts.outages_of({kind})
            if out.began <= ended and began <= out.ended
        ]
        if kinds:
            yield _excused(f"{kinds[0]} while sbatch asked")
        else:
            yield Finding(f"sbatch failed: {stderr}")


def _deadline(facts: Facts) -> Findings:
    for life in facts.lives:
        late = life.at_least > DEADLINE
        told = f"the helper's {life.command} of job {life.job_id} took {life.at_least:.2f} s"
        yield Finding(told if late else None)


def _breaker(facts: Facts) -> Findings:
    for outage in facts.outages:
        if not outage.kinds & HANGING:
            continue
        slow = sorted(
            (life.began, life.ended, life)
            for life in facts.lives
            # While it hung: a service that comes back to a busy host is slow at first.
            if min(life.seen, outage.held_boot) - life.began - life.queued > SLOW
            and (life.job_id, life.command) not in outage.hits
            and outage.began_boot <= life.began
            and life.ended <= outage.ended_boot + DEADLINE
        )
        if not slow:
            continue
        noticed = min(ended for _, ended, _ in slow)
        # Whoever asked before anybody knew has waited too; from then on one in so many seconds.
        later = [life for began, _, life in slow if began > noticed + NOTICE]
        # None who waited may have ended before the outage did: then nobody knew of it in time.
        allowed = max(0, int((outage.held_boot - noticed) // MEMORY))
        wrong = len(later) > allowed
        told = f"{len(later)} helpers waited after the outage was known: {later[:5]}"
        yield Finding(told if wrong else None)


def _once(facts: Facts) -> Findings:
    for run in facts.stored.runs:
        twice = run.reports != run.nodes
        told = f"job {run.job_id} has {run.reports} reports of {run.nodes} nodes"
        yield Finding(told if twice else None)
    for epoch in facts.stored.epochs:
        same = epoch.in_cache == epoch.counted and epoch.tally == epoch.judged
        yield Finding(None if same else f"the caches are not the runs: {epoch}")


def _gapless(facts: Facts) -> Findings:
    for name in facts.stored.twice:
        yield Finding(f"{name} has two studies of one context")
    following: dict[int, int] = {}
    for epoch in facts.stored.epochs:
        expected = following.get(epoch.study, 1)
        following[epoch.study] = epoch.ordinal + 1
        whole = epoch.judgements == epoch.ordinals == epoch.highest and epoch.ordinal == expected
        yield Finding(None if whole else f"epoch or judgements have gaps: {epoch}")


def _never_fast(facts: Facts) -> Findings:
    yield from _lost(facts)
    for job in _ended(facts):
        if job.run is not None and job.run.restarts == job.row.restarts:
            wrong = job.run.state == "counted" and job.row.state != "COMPLETED"
            yield Finding(f"{_named(job)} is {job.row.state} and counts" if wrong else None)


def _told_apart(facts: Facts) -> Findings:
    """A run that counts for a parametrization had it, and one of the default had nothing."""
    yield from _lost(facts)
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
        told = (
            f"{_named(job)} counts as {job.run.applied}, was to find {expected!r} and found"
            f" {printed.given!r}"
        )
        yield Finding(told if wrong else None)


def _elapsed(facts: Facts) -> Findings:
    yield from _lost(facts)
    for job in _ended(facts):
        printed = understood(job.submission, job.text or "")
        if printed is None or job.run is None or job.run.state != "counted":
            continue
        longest = job.row.ended - job.row.began + 2.0
        elapsed = job.run.elapsed or 0.0
        wrong = not printed.seconds - CLOCK <= elapsed <= longest
        told = (
            f"{_named(job)} worked for {printed.seconds} s, Slurm says {longest - 2} s, and its"
            f" elapsed is {elapsed}"
        )
        yield Finding(told if wrong else None)


def _uncounted(facts: Facts, job: JobFacts) -> str | None:
    """Return why nobody promised that a job's run counts."""
    has_setting = job.submission.kind == "settings"
    excuses = {
        "it never began": job.row.began == 0,
        "a part of Slurm was killed, which lost the launch: its script never began": not (
            job.row.state == "COMPLETED" or job.script_began
        )
        and facts.touched(job, SLURM),
        "Slurm has launched it again, maybe without a prolog": job.row.restarts > 0,
        "its helper was killed or stopped in the prolog": facts.hit(job, "start"),
        "the helper's program was missing while the job was there": facts.touched(
            job, {"helper missing"}
        ),
        "its helper was killed or stopped before it had seen its setting in force": has_setting
        and facts.hit(job, "finish"),
        "nothing is changed where what was cannot be saved: the spool took nothing": has_setting
        and facts.touched(job, {"spool full", "spool unusable"}),
    }
    return next((why for why, holds in excuses.items() if holds), None)


def _counted(facts: Facts) -> Findings:
    yield from _lost(facts)
    for job in _ended(facts):
        state = None if job.run is None else job.run.state
        if not job.submission.tuned:
            yield Finding(f"{_named(job)} asked for nothing and has a run" if job.run else None)
            continue
        expected = "not_counted"
        if job.submission.kind != "own hints":
            expected = {"COMPLETED": "counted", "TIMEOUT": "censored"}.get(job.row.state, expected)
        why = _uncounted(facts, job)
        if state == expected:
            yield Finding()
        elif why is not None and state in {None, "not_counted"}:
            yield _excused(why)
        else:
            verdict = None if job.run is None else job.run.verdict
            yield Finding(f"{_named(job)} is {state} and not {expected}: {verdict}")


def _settings(facts: Facts) -> Findings:
    before, now = facts.setting
    yield Finding(None if before == now else f"the setting was {before} and is {now}")


def _left(facts: Facts) -> Findings:
    yield Finding(f"left behind: {facts.left}" if facts.left else None)


def _named(job: JobFacts) -> str:
    return f"job {job.row.job_id} ({job.submission.name}, {job.submission.kind})"


INVARIANTS = [
    Invariant(
        "no node drained",
        "no node is drained, down or failing",
        _nodes,
        promises=("a node drains",),
    ),
    Invariant(
        "no job's end changed",
        "each job ends as its script does; jobs under which Slurm itself was killed are Slurm's",
        _outcome,
        promises=("a job fails",),
    ),
    Invariant(
        "no job's output changed",
        "each job prints its lines and nothing else",
        _output,
        promises=("a job fails",),
    ),
    Invariant(
        "the user's variable stays",
        "a job whose user has set the hints finds them",
        _own_hints,
        promises=("a variable that the user set is overwritten",),
    ),
    Invariant(
        "nothing forged is acted on",
        "no job is given what a changed or forged answer says",
        _no_forgery,
        promises=("a user steers another user's study",),
    ),
    Invariant(
        "no submission refused",
        "sbatch fails only where Slurm itself was killed",
        _submission,
        promises=("a submission fails",),
    ),
    Invariant(
        "no hook beyond the deadline",
        f"no prolog or epilog waits longer than {DEADLINE} s for the helper, as seen from outside,"
        " the time in which the machine had no processor for it left out",
        _deadline,
        promises=("a job hangs, or waits longer than the deadline",),
    ),
    Invariant(
        "an outage is noticed once",
        f"once a helper has waited for a service that hangs, one in {MEMORY:.0f} s waits again",
        _breaker,
        promises=("a job hangs, or waits longer than the deadline",),
    ),
    Invariant(
        "nothing counted twice",
        "one report of each node of a run; caches and tallies are what the runs add up to",
        _once,
        promises=("a report is counted twice",),
    ),
    Invariant(
        "no study forked",
        "one study of an application, accelerator and context; epochs and judgements without gaps",
        _gapless,
        promises=("a report is counted twice",),
    ),
    Invariant(
        "no failed run is fast",
        "what Slurm does not call completed does not count",
        _never_fast,
        promises=("a failed run is taken for a fast one",),
    ),
    Invariant(
        "a run counts for what it had",
        "the job itself has found what its run counts for, in its hints or in the kernel",
        _told_apart,
        promises=("a wrong gain is reported",),
    ),
    Invariant(
        "elapsed is true",
        "elapsed is no less than the job's own clock says and no more than Slurm's",
        _elapsed,
        promises=("a wrong gain is reported",),
    ),
    Invariant(
        "every completed job counted once",
        "each job that Slurm calls completed has one run that counts; of one that Slurm calls timed"
        " out it is a lower bound, if its script began; any other has none that counts",
        _counted,
        at_end=True,
        promises=("a report is lost",),
    ),
    Invariant(
        "every setting restored",
        "the setting is what it was before the soak",
        _settings,
        True,
        promises=("a setting stays changed after a job",),
    ),
    Invariant(
        "nothing left behind",
        "no report in the spool, no saved value, no directory of a job, whatever its helper met",
        _left,
        at_end=True,
        promises=("a report is lost",),
    ),
]
"""All of them."""

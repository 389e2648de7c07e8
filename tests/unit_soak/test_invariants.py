"""Each invariant holds of what is right, and is violated by what it is there to find."""

from __future__ import annotations

from dataclasses import replace

import pytest
from soak.checking import Checker
from soak.facts import Facts, JobFacts, Outage
from soak.helpers import Life
from soak.invariants import INVARIANTS, LOST, TWICE
from soak.jobs import FAILURE, OWN_HINTS, Submission
from soak.ledger import Row, forgotten_ends, launches
from soak.page import Outcome, render
from soak.store import Epoch, Run, Stored

ROW = Row(7, "COMPLETED", 0, began=1000.0, ended=1001.0, exit_code=0, name="soak-00001")
RUN = Run(
    7,
    0,
    "counted",
    "COMPLETED",
    "parametrization",
    elapsed=0.6,
    verdict="it counts",
    hints="cb_nodes 2",
    setting=None,
    reports=1,
    nodes=1,
)
EPOCH = Epoch(
    1, 1, 1, judgements=1, ordinals=1, highest=1, in_cache=1, counted=1, tally=1, judged=1
)
LIFE = Life("start", 7, began=100.0, seen=100.1, ended=100.2, queued=0.0)
OUTAGE = Outage(frozenset({"service mute"}), 900.0, 905.0, 100.0, 105.0, 104.5, hits=frozenset())


def text(given: str = "cb_nodes 2") -> str:
    return f"begin soak-00001\nat 5.00\ngiven {given}\nat 5.50\nend soak-00001\n"


def submission(kind: str = "tuned") -> Submission:
    return Submission("soak-00001", kind, "io-alice", "soak-1", pause=0.5)


JOB = JobFacts(ROW, submission(), text(), RUN)
GOOD = Facts(
    jobs=[JOB],
    stored=Stored([RUN], [EPOCH], []),
    nodes={"n1": "idle", "n2": "mixed"},
    lives=[LIFE],
    outages=[OUTAGE],
    returned=frozenset(),
    twice=frozenset(),
    vanished=frozenset(),
    refusals=[],
    setting=("60", "60"),
    left=[],
)


def with_job(job: JobFacts) -> Facts:
    runs = [] if job.run is None else [job.run]
    return replace(GOOD, jobs=[job], stored=replace(GOOD.stored, runs=runs))


def waited(began: float) -> Life:
    return replace(LIFE, began=began, seen=began + 2.0, ended=began + 2.0)


BAD = {
    "no node drained": replace(GOOD, nodes={"n1": "drained"}),
    "no job's end changed": with_job(replace(JOB, row=replace(ROW, state="NODE_FAIL"), run=None)),
    "no job's output changed": with_job(replace(JOB, text="slurmstepd: error\n" + text())),
    "the user's variable stays": with_job(
        JobFacts(ROW, submission("own hints"), text("/run/ours"), replace(RUN, state="not_counted"))
    ),
    "nothing forged is acted on": with_job(replace(JOB, text=text("soak_forged 1 cb_nodes 2"))),
    "no submission refused": replace(GOOD, refusals=[(902.0, 903.0, "io-autotune: no")]),
    "no hook beyond the deadline": replace(GOOD, lives=[replace(LIFE, seen=103.0, ended=103.0)]),
    "an outage is noticed once": replace(GOOD, lives=[waited(100.5), waited(102.8)]),
    "nothing counted twice": with_job(replace(JOB, run=replace(RUN, reports=2))),
    "no study forked": replace(
        GOOD, stored=replace(GOOD.stored, epochs=[replace(EPOCH, ordinals=2, judgements=3)])
    ),
    "no failed run is fast": with_job(
        JobFacts(replace(ROW, state="FAILED", exit_code=FAILURE), submission("fails"), text(), RUN)
    ),
    "a run counts for what it had": with_job(replace(JOB, text=text("cb_nodes 4"))),
    "elapsed is true": with_job(replace(JOB, run=replace(RUN, elapsed=0.3))),
    "every completed job counted once": with_job(replace(JOB, run=None)),
    "every setting restored": replace(GOOD, setting=("60", "30")),
    "nothing left behind": replace(GOOD, left=["c.7.0.n1.json"]),
}


def violated(facts: Facts) -> set[str]:
    checker = Checker(INVARIANTS)
    checker.check(facts, "now", at_end=True)
    return {name for name, tally in checker.tallies.items() if tally.violations}


def test_what_is_right_violates_nothing() -> None:
    assert violated(GOOD) == set()


@pytest.mark.parametrize("name", [one.name for one in INVARIANTS])
def test_each_invariant_finds_what_it_is_there_for(name: str) -> None:
    assert name in violated(BAD[name])


def test_a_violation_is_told_once_and_where_it_was_seen_first() -> None:
    checker = Checker(INVARIANTS)
    bad = BAD["no node drained"]
    assert checker.check(bad, "first", at_end=False) == ["no node drained: n1 is drained"]
    assert checker.check(bad, "second", at_end=False) == []
    done = [("kill slurmd", None), ("spool full", "kill munged")]
    outcome = Outcome(
        1, "22.05.8", 2, 60.0, done, hit=0, proxied=0, drained_by_slurm=0, held_by_slurm=0
    )
    told = render(outcome, bad, checker.tallies)
    assert "- no node drained, first: n1 is drained" in told
    assert "| kill slurmd | 1 | - |" in told
    assert "| kill munged | - | 1 |" in told
    assert "## Violations" not in render(outcome, GOOD, Checker(INVARIANTS).tallies)


def test_a_hook_whose_end_was_noticed_late_kept_its_deadline() -> None:
    late = replace(LIFE, seen=102.2, ended=104.0)
    assert violated(replace(GOOD, lives=[late])) == set()


def test_an_outage_that_ends_before_anybody_knows_of_it_is_no_violation() -> None:
    (outage,) = GOOD.outages
    last = waited(outage.held_boot - 1.0)
    assert last.ended > outage.held_boot
    assert violated(replace(GOOD, lives=[last])) == set()


def test_what_slurm_does_when_it_is_killed_is_slurms() -> None:
    killed = replace(OUTAGE, kinds=frozenset({"kill slurmd"}), began=999.0, ended=1003.0)
    facts = replace(BAD["no job's end changed"], outages=[killed])
    assert "no job's end changed" not in violated(facts)
    long_ago = replace(killed, began=10.0, ended=20.0)
    assert "no job's end changed" in violated(replace(facts, outages=[long_ago]))


COUNTED = "every completed job counted once"


def hit(job_id: int, command: str) -> Outage:
    kinds = frozenset({"kill helper"})
    return replace(OUTAGE, kinds=kinds, hits=frozenset({(job_id, command)}))


def excused(facts: Facts) -> dict[str, dict[str, int]]:
    checker = Checker(INVARIANTS)
    checker.check(facts, "now", at_end=True)
    return {name: dict(tally.excused) for name, tally in checker.tallies.items() if tally.excused}


def test_a_helper_killed_in_the_prolog_excuses_its_job_alone_and_is_counted() -> None:
    facts = replace(BAD[COUNTED], outages=[hit(7, "start")])
    assert COUNTED not in violated(facts)
    assert excused(facts) == {COUNTED: {"its helper was killed or stopped in the prolog": 1}}
    assert COUNTED in violated(replace(facts, outages=[hit(8, "start")]))
    # What it knew then is reported, whatever becomes of it in the epilog.
    assert COUNTED in violated(replace(facts, outages=[hit(7, "finish")]))


def test_a_killed_helper_does_not_excuse_a_run_that_waits_for_ever() -> None:
    waiting = replace(JOB, run=replace(RUN, state="in_flight"))
    assert COUNTED in violated(replace(with_job(waiting), outages=[hit(7, "start")]))


def test_what_slurm_has_timed_out_is_a_lower_bound() -> None:
    row = replace(ROW, state="TIMEOUT")
    for state, expected in (("censored", set()), ("not_counted", {COUNTED})):
        facts = with_job(replace(JOB, row=row, run=replace(RUN, state=state)))
        # That it has not ended as its script does is another matter.
        assert violated(facts) - {"no job's end changed"} == expected


def test_a_launch_that_a_killed_part_of_slurm_has_lost_has_no_lower_bound() -> None:
    lost = replace(JOB, row=replace(ROW, state="TIMEOUT"), run=replace(RUN, state="not_counted"))
    killed = replace(OUTAGE, kinds=frozenset({"kill slurmd"}), began=999.0, ended=1003.0)
    for job, outages, expected in (
        (replace(lost, text=None), [killed], set()),
        (replace(lost, text=None), [], {COUNTED}),
        (replace(lost, text="begin soak-00001\nat 5.00\n"), [killed], {COUNTED}),
    ):
        assert violated(replace(with_job(job), outages=outages)) & {COUNTED} == expected


def test_a_full_spool_excuses_what_has_a_setting_to_save_alone() -> None:
    run = replace(RUN, state="not_counted")
    full = replace(OUTAGE, kinds=frozenset({"spool full"}), began=999.0, ended=1003.0)
    for kind, expected in (("settings", set()), ("tuned", {COUNTED})):
        facts = with_job(JobFacts(ROW, submission(kind), text(), run))
        assert violated(replace(facts, outages=[full])) == expected


def test_what_slurm_has_lost_is_left_out_and_counted() -> None:
    facts = replace(BAD[COUNTED], returned=frozenset({7}))
    assert violated(facts) == set()
    assert excused(facts)[COUNTED] == {LOST: 1}


def test_what_a_killed_slurmctld_launches_twice_is_left_out_and_counted() -> None:
    facts = replace(BAD["no job's output changed"], twice=frozenset({7}))
    assert "no job's output changed" in violated(facts), "nobody has killed it"
    killed = replace(OUTAGE, kinds=frozenset({"kill slurmctld"}), began=999.0, ended=1003.0)
    facts = replace(facts, outages=[killed])
    assert violated(facts) == set()
    assert excused(facts)["no job's output changed"] == {TWICE: 1}


def test_a_launch_is_read_from_slurmds_log() -> None:
    line = "[2026-11-22T05:23:33.290] Launching batch job 453 for UID 994\n"
    other = "[2026-11-22T05:23:33.883] [453.batch] done with job\n"
    assert launches([line + other, line, line.replace("453", "7")]) == {453: 2, 7: 1}


def test_an_end_that_slurmctld_has_forgotten_is_read_from_its_log() -> None:
    allocated = "[T] sched: Allocate JobId=9_2(7) NodeList=n2 #CPUs=1 Partition=main\n"
    started = "[T] sched/backfill: _start_job: Started JobId=7 in main on n2\n"
    done = "[T] _job_complete: JobId=9_2(7) WEXITSTATUS 0\n[T] _job_complete: JobId=9_2(7) done\n"
    recovered = "[T] Recovered JobId=9_2(7) StepId=batch\n[T] Recovered JobId=9_2(7) Assoc=0\n"
    known = "[T] Recovered JobId=9_2(7) Assoc=0\n"
    assert forgotten_ends(allocated + done + recovered) == {7}
    assert forgotten_ends(started + recovered + done) == set(), "it had not ended"
    assert forgotten_ends(allocated + done + known) == set(), "its end is known"
    assert forgotten_ends(allocated + done + started + recovered) == set(), "launched again"


def test_what_was_excused_is_told() -> None:
    facts = replace(BAD[COUNTED], outages=[hit(7, "start")])
    checker = Checker(INVARIANTS)
    checker.check(facts, "now", at_end=True)
    outcome = Outcome(
        1, "22.05.8", 2, 60.0, [], hit=1, proxied=0, drained_by_slurm=0, held_by_slurm=0
    )
    told = render(outcome, facts, checker.tallies)
    assert f"| {COUNTED} | its helper was killed or stopped in the prolog | 1 |" in told
    assert "| none | - | 0 |" in render(outcome, GOOD, Checker(INVARIANTS).tallies)


def test_a_job_that_has_set_its_own_hints_finds_them() -> None:
    own = JobFacts(ROW, submission("own hints"), text(OWN_HINTS), replace(RUN, state="not_counted"))
    assert violated(with_job(own)) == set()

"""A seed's day is the same day, and each invariant is violated by what it is there to find."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from day import bodies, launches, operations
from day.asker import Answer, Asked
from day.invariants import INVARIANTS, QUERIES, Facts, Violated, check, looked_at
from day.launches import FATES, PAST_JOBS, PAST_STEPS, Launch
from day.page import Counts, Outcome, render
from soak.checking import Checker

JOBS, STEPS = 5_000, 48
LAST = PAST_STEPS + STEPS - 1


def launched(**changes: str | int) -> Launch:
    launch = Launch(
        job_id=7,
        restarts=0,
        uid=20_001,
        application="app-0",
        fate="completes",
        starts=3,
        ends=4,
        reported=4,
        told=4,
        repeats=False,
    )
    return replace(launch, **changes)  # type: ignore[arg-type]


def answered(json: object, problem: str | None = None) -> Answer:
    return Answer(Asked("/v1/x"), 1.0, json, problem)


GIVEN = {"role": "pinned", "parametrization": {"cb_nodes": 2}}
READ: dict[str, Any] = {
    **{name: [1, []] for name in QUERIES},
    "states": {"counted": 1},
    "again": 0,
    "judged": [[7, 0, "counted", "completed"]],
    "audited": {"day: pin": 1},
}
GOOD = Facts(
    step=4,
    launches={(7, 0): launched()},
    started=1,
    answers=[answered({})],
    repeated=[("start", {"run_id": 1}, {"run_id": 1})],
    overdue=[],
    read=READ,
    steered=[("app-0", "pin", answered(GIVEN))],
    done={"day: pin"},
    views=[("app-0", {"studies": []}, {"studies": []})],
    replays=[answered([{"same": True, "given": {}, "recomputed": {}}])],
    caches=[{"name": "caches", "state": "ok"}],
    faults=[("a forged run", None)],
)


def read(**changes: object) -> Facts:
    return replace(GOOD, read={**READ, **changes})


BROKEN = {
    "faults are met": replace(GOOD, faults=[("a forged run", "is counted")]),
    "every request answered": replace(GOOD, answers=[answered({}, "no answer")]),
    "one question, one answer": replace(GOOD, repeated=[("start", {"run_id": 1}, {"run_id": 2})]),
    "counted at most once": read(states={"counted": 2}),
    "as its job ended": read(judged=[[7, 0, "not_counted", "lost"]]),
    "no failed run is fast": read(fast=[1, ["1"]]),
    "nothing waits longer than promised": replace(GOOD, overdue=["7.0 COMPLETED"]),
    "tallies are the runs": read(tally=[1, ["1"]]),
    "caches are the runs": replace(GOOD, caches=[{"name": "caches", "state": "failed"}]),
    "a run is its latest judgement": read(latest=[1, ["1"]]),
    "no study forked": read(spaces=[1, ["1"]]),
    "no more exploring than allowed": read(exploring=[1, ["1"]]),
    "steering holds": replace(
        GOOD, steered=[("app-0", "freeze", answered({**GIVEN, "role": "search"}))]
    ),
    "no design point twice at once": read(design=[1, ["1"]]),
    "replicas agree": replace(GOOD, views=[("app-0", {"gain": 1}, {"gain": 2})]),
    "copies in memory are the database": replace(
        GOOD, replays=[answered([{"same": False, "given": {}, "recomputed": {}}])]
    ),
}


def test_a_seed_gives_the_same_day() -> None:
    assert launches.generated(1, JOBS, STEPS) == launches.generated(1, JOBS, STEPS)
    assert launches.generated(1, JOBS, STEPS) != launches.generated(2, JOBS, STEPS)
    assert operations.generated(1) == operations.generated(1)


def test_a_day_has_its_jobs_and_every_fate() -> None:
    planned = launches.generated(1, JOBS, STEPS)
    jobs = {one.job_id for one in planned}
    assert len(jobs) == pytest.approx(JOBS + PAST_STEPS * PAST_JOBS, abs=STEPS)
    assert launches.first_of_day(planned) == PAST_STEPS * PAST_JOBS + 1
    assert len({(one.job_id, one.restarts) for one in planned}) == len(planned)
    assert Counter(one.fate for one in planned).keys() == FATES.keys()
    assert sum(fate.share for fate in FATES.values()) == pytest.approx(1)
    assert all(one.starts <= one.ends <= LAST for one in planned)
    by_key = {(one.job_id, one.restarts): one for one in planned}
    for one in planned:
        if one.fate == "is requeued":
            assert by_key[one.job_id, 1].starts > one.ends


def test_every_kind_of_operation_is_done_and_undone() -> None:
    done = Counter(one.kind for one in operations.generated(1))
    assert done["upgrade"] == 2
    assert done.keys() == operations.MEANINGS.keys() | operations.UNDOES.keys()
    for undo, kind in operations.UNDOES.items():
        assert done[undo] == done[kind]


def test_a_late_report_may_count_only_once_it_is_there() -> None:
    late = launched(fate="reports hours late", reported=10)
    assert late.may_be(9) == {"counted", "not_counted"}
    assert late.may_be(10) == {"counted"}


def test_a_node_reports_what_it_was_given() -> None:
    file = {"files": [{"content": "cb_nodes 2\n"}]}
    given = {"run_id": 3, "parametrization": {"cb_nodes": 2}, "delivery": file}
    told = bodies.finish(launched(), given)
    assert told["applied"] == {"kind": "parametrization", "parametrization": {"cb_nodes": 2}}
    assert bodies.finish(launched(), {**given, "delivery": {}})["applied"] == {"kind": "default"}
    failed = bodies.finish(launched(fate="fails"), given)
    assert (failed["steps"][0]["wait_status"], failed["epilog"]["exit_code"]) == (256, "1:0")
    (outcome,) = bodies.outcomes([(launched(), 1000.0, 1010.0)])["outcomes"]
    assert outcome["started_at"] == "1970-01-01T00:16:40+00:00"


def test_what_is_right_is_not_violated() -> None:
    checker = Checker(INVARIANTS)
    check(checker, GOOD)
    assert all(tally.looked_at > 0 for tally in checker.tallies.values())
    assert checker.tallies.keys() == BROKEN.keys() == {one.name for one in INVARIANTS}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_found_by_its_invariant(name: str) -> None:
    with pytest.raises(Violated, match=f"^{name}: "):
        check(Checker(INVARIANTS), BROKEN[name])


def test_the_page_tells_what_was_violated() -> None:
    checker = Checker(INVARIANTS)
    check(checker, GOOD)
    outcome = Outcome(
        seed=1,
        jobs=1,
        steps=2,
        versions=["this tree"],
        launches=[launched()],
        counts=Counts(
            requests=3,
            operations=Counter({"pin": 1}),
            starts={"usual": [1.0, 2.0]},
            removed={"runs": 2},
            reported=1,
            read=READ,
            seconds=60.0,
        ),
        violated=None,
    )
    page = render(outcome, checker.tallies)
    assert "None was violated." in page
    assert "| minutes | 1.0 |" in page
    assert "1 counted" in page
    assert "a study forked" in render(replace(outcome, violated="a study forked"), checker.tallies)


def test_one_statement_reads_everything() -> None:
    query = looked_at("2026-01-01", "-infinity", 601)
    assert "\n" not in query
    assert "{" not in query.replace("'{}'", "")

"""What must hold after each operation: facts in, what is wrong out. The queries are here too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from soak.checking import Checker, Finding, Findings, Invariant

from day.asker import Answer, Json
from day.bodies import PINNED
from day.launches import LOST_AFTER_SECONDS, Launch

OF_FAULTS = 2_000_000_000
"""Jobs from here on are those of faults, which look at them themselves."""
EXPLORING = 8
"""``[study] exploring``."""
_KEPT = "to_jsonb(e) ->> 'removed_at' is null"
"""Retention has not removed its runs. An older schema has no such column."""

QUERIES: Mapping[str, str] = {
    "tally": f"""
        select e.id::text, e.total <> count(r.id)
        from epochs e left join runs r on r.epoch_id = e.id and r.state <> 'in_flight'
        where e.takes <> 'runs' and {_KEPT} group by e.id""",
    "cache": f"""
        select e.id::text, coalesce(c.n, 0) <> coalesce(r.n, 0)
                           or abs(coalesce(c.s, 0) - coalesce(r.s, 0)) > 1e-9 * coalesce(r.s, 0)
        from epochs e
        left join (select epoch_id, sum(count) n, sum(count * mean) s from tested group by 1) c
             on c.epoch_id = e.id
        left join (select epoch_id, count(*) n, sum(elapsed) s from runs where state = 'counted'
                   group by 1) r on r.epoch_id = e.id
        where e.takes <> 'runs' and {_KEPT}""",
    "judgements": f"""
        select e.id::text, e.judgements <> count(j.id) or min(j.ordinal) <> 1
                           or max(j.ordinal) <> count(j.id)
        from epochs e left join judgements j on j.epoch_id = e.id where {_KEPT} group by e.id""",
    "latest": """
        select r.id::text, (r.judged_ordinal, r.verdict, r.judged_at)
                           is distinct from (j.ordinal, j.verdict, j.judged_at)
               or (r.state = 'counted') <> (j.effect = 'sample')
               or (r.state = 'censored') <> (j.effect = 'censored')
        from runs r left join lateral (
            select * from judgements j where j.run_id = r.id order by id desc limit 1) j on true
        where r.judged_at >= '{since}'""",
    "epochs": """
        select study_id::text, min(ordinal) <> 1 or max(ordinal) <> count(*)
        from epochs group by study_id""",
    "studies": """
        select application_id::text, count(*) > 1
        from studies group by application_id, accelerator, context_key""",
    "spaces": """
        select id::text, opened_why not like 'reset: %' and opened_why <> 'first run'
                         and to_jsonb(e) ->> 'drift' is null
        from epochs e""",
    "reports": """
        select p.run_id::text, count(*) > 1
        from reports p join runs r on r.id = p.run_id where r.judged_at >= '{since}' group by 1""",
    "fast": """
        select id::text, state = 'counted' and outcome <> 'COMPLETED'
        from runs where outcome is not null and judged_at >= '{since}'""",
    "exploring": f"""
        select epoch_id::text, count(*) > {EXPLORING}
        from runs where state = 'in_flight' and not released and role in ('design', 'search')
        group by 1""",
    "design": """
        select epoch_id::text, count(*) > 1
        from runs where state = 'in_flight' and role = 'design' and started_at >= '{unmixed}'
        group by epoch_id, parametrization""",
}
"""Each gives what was looked at, and whether it is broken."""

OVERDUE = f"""
    select job_id || '.' || restart_count || ' ' || coalesce(outcome, 'no word')
    from runs where job_id < {OF_FAULTS} and (state = 'in_flight' or changes > judged_changes) and (
        outcome is not null and (finished_at is not null or outcome <> 'COMPLETED')
        or outcome_at < now() - interval '300 s' or finished_at < now() - interval '600 s'
        or started_at < now() - interval '{LOST_AFTER_SECONDS} s') limit 5"""
"""Runs that have waited for a verdict for longer than service.toml says."""


def looked_at(since: str, unmixed: str, first_job: int) -> str:
    """Return the statement that reads everything as of one moment: one value, JSON.

    What changes with a verdict is read of runs with one since then. Replicas are of one version
    since ``unmixed``.
    """
    texts = {
        name: query.replace("{since}", since).replace("{unmixed}", unmixed)
        for name, query in QUERIES.items()
    }
    parts = {
        name: "select jsonb_build_array(count(*), coalesce(jsonb_agg(what) filter (where bad),"
        f" '[]')) from ({query}) q(what, bad)"
        for name, query in texts.items()
    }
    of_day = f"from runs where job_id >= {first_job} and job_id < {OF_FAULTS}"
    parts |= {
        "judged": "select coalesce(jsonb_agg(jsonb_build_array(job_id, restart_count, state,"
        f" verdict)), '[]') {of_day} and judged_at >= '{since}'",
        "states": "select coalesce(jsonb_object_agg(state, n), '{}') from"
        f" (select state, count(*) n {of_day} group by 1) s",
        "again": f"select count(*) {of_day} and generation > 0",
        "audited": "select coalesce(jsonb_object_agg(why, n), '{}') from"
        " (select why, count(*) n from audit where why like 'day: %' group by 1) a",
        "drifts": "select count(*) from epochs e where to_jsonb(e) ->> 'drift' is not null",
        # A verdict's time is its transaction's begin.
        "since": "select to_jsonb(now() - interval '5 s')",
    }
    listed = ", ".join(f"'{name}', ({query})" for name, query in parts.items())
    return f"select jsonb_build_object({listed})".replace("\n", " ")


@dataclass(frozen=True)
class Facts:
    """Everything that the invariants look at."""

    step: int
    launches: Mapping[tuple[int, int], Launch]
    """All of the day."""
    started: int
    """How many of the day have been started."""
    answers: list[Answer]
    """To all that was asked since the last check."""
    repeated: list[tuple[str, Json, Json]]
    """Questions that were asked twice, and what each answer tells."""
    overdue: list[str]
    read: Mapping[str, Any]
    """What :func:`looked_at` gave."""
    steered: list[tuple[str, str, Answer]]
    """Starts of studies that are pinned or frozen: the study, which of these, the answer."""
    done: set[str]
    """Why each steering was done: once each."""
    views: list[tuple[str, Json, Json]]
    """What each replica tells of a study."""
    replays: list[Answer]
    caches: list[Json]
    """What ``doctor`` says of the caches."""
    faults: list[tuple[str, str | None]]
    """What was tried of faults, and what is wrong with what came of it."""


def _answered(facts: Facts) -> Findings:
    for answer in facts.answers:
        yield Finding(f"{answer.asked}: {answer.problem}" if answer.problem else None)


def _repeated(facts: Facts) -> Findings:
    for asked, first, second in facts.repeated:
        yield Finding(None if first == second else f"{asked}: first {first}, then {second}")


def _in_time(facts: Facts) -> Findings:
    yield Finding(f"no verdict yet: {facts.overdue}" if facts.overdue else None)


def _once(facts: Facts) -> Findings:
    stored, again = sum(facts.read["states"].values()), facts.read["again"]
    same = stored == facts.started and again == 0
    wrong = f"{facts.started} launches have {stored} runs; {again} were taken twice"
    yield Finding(None if same else wrong)
    yield from _query("reports")(facts)


def _ends(facts: Facts) -> Findings:
    for job_id, restarts, state, verdict in facts.read["judged"]:
        launch = facts.launches[job_id, restarts]
        allowed = launch.may_be(facts.step)
        wrong = f"job {job_id}.{restarts}, which {launch.fate}, is {state}: {verdict}"
        yield Finding(None if state in allowed else wrong)


def _steered(facts: Facts) -> Findings:
    for study, how, answer in facts.steered:
        told = answer.json
        role = told.get("role")
        if how == "pin":
            values = told["parametrization"]
            good = role == "pinned" and str(values["cb_nodes"]) == PINNED["cb_nodes"]
        else:
            good = role not in {"design", "search"}
        yield Finding(None if good else f"{study} is steered ({how}) and a start was given {told}")
    for why in facts.done:
        times = facts.read["audited"].get(why, 0)
        yield Finding(None if times == 1 else f"'{why}' is {times} times in the audit")


def _agree(facts: Facts) -> Findings:
    for study, first, second in facts.views:
        yield Finding(None if first == second else f"{study}: {_difference(first, second)}")


def _replayed(facts: Facts) -> Findings:
    for answer in facts.replays:
        for one in answer.json:
            same = one["same"] or one["given"] is None or one["recomputed"] is None
            yield Finding(None if same else f"{answer.asked.path}: {one}")


def _caches(facts: Facts) -> Findings:
    for check in facts.caches:
        yield Finding(None if check["state"] == "ok" else f"{check}")
    yield from _query("cache")(facts)


def _met(facts: Facts) -> Findings:
    for tried, wrong in facts.faults:
        yield Finding(f"{tried}: {wrong}" if wrong else None)


def _query(*names: str) -> Callable[[Facts], Findings]:
    def look(facts: Facts) -> Findings:
        for name in names:
            count, broken = facts.read[name]
            yield from (Finding(f"{name}: {what}") for what in broken)
            yield Finding(number=count - len(broken))

    return look


def _difference(first: Any, second: Any, path: str = "") -> str:  # noqa: ANN401 -- JSON
    """Return where two answers differ first."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            if first.get(key) != second.get(key):
                return _difference(first.get(key), second.get(key), f"{path}.{key}")
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for place, (one, other) in enumerate(zip(first, second, strict=True)):
            if one != other:
                return _difference(one, other, f"{path}[{place}]")
    return f"{path}: {first!r} and {second!r}"


INVARIANTS = [
    Invariant(
        "every request answered",
        "no request fails or is refused, whatever one replica is going through",
        _answered,
    ),
    Invariant(
        "one question, one answer",
        "who asks again, at the other replica, gets the same run and parametrization; a second"
        " report or outcome changes nothing",
        _repeated,
    ),
    Invariant(
        "counted at most once",
        "a launch has one run, a run one report of its node",
        _once,
    ),
    Invariant(
        "as its job ended",
        "completed and reported: it counts; out of time: a lower bound; any other does not count",
        _ends,
    ),
    Invariant(
        "no failed run is fast", "what Slurm does not call completed does not count", _query("fast")
    ),
    Invariant(
        "nothing waits longer than promised",
        "a run has its verdict once outcome and report are there, or the patience of service.toml"
        " is over",
        _in_time,
    ),
    Invariant(
        "tallies are the runs",
        "an epoch's tally is the number of its runs with a verdict",
        _query("tally"),
    ),
    Invariant(
        "caches are the runs",
        "counts and means of what was tested are those of the runs; `doctor` adds all up anew now"
        " and then",
        _caches,
    ),
    Invariant(
        "a run is its latest judgement",
        "judgements are numbered without a gap, and the latest one holds",
        _query("judgements", "latest"),
    ),
    Invariant(
        "no study forked",
        "one study of an application; epochs without a gap, opened by a first run, a reset or"
        " drift, and by no upgrade",
        _query("studies", "epochs", "spaces"),
    ),
    Invariant(
        "no more exploring than allowed",
        f"at most {EXPLORING} runs of a study explore at once",
        _query("exploring"),
    ),
    Invariant(
        "steering holds",
        "from the answer to a pin or a freeze on, both replicas keep to it; each is done once",
        _steered,
    ),
    Invariant(
        "no design point twice at once",
        "no two runs in flight test the same one; while an upgrade makes two versions run side by"
        " side it is not promised",
        _query("design"),
    ),
    Invariant(
        "replicas agree",
        "each tells the same of a study, once both have heard of the others",
        _agree,
    ),
    Invariant(
        "copies in memory are the database",
        "what a start was given from a copy is what the engine gives from the stored history",
        _replayed,
    ),
    Invariant(
        "faults are met",
        "what no field should have is refused or has a verdict; what nobody gave does not count; a"
        " user has no more orders than a user may; a study that cannot be assessed is named, and"
        " assessed later; what a read-only database refused is there once",
        _met,
    ),
]
"""All of them."""


class Violated(Exception):
    """An invariant does not hold."""


def check(checker: Checker[Facts], facts: Facts) -> None:
    """Check all of them.

    Raises:
        Violated: one does not hold.

    """
    if wrong := checker.check(facts, f"in step {facts.step}", at_end=True):
        raise Violated("\n  ".join([*wrong[:5], f"{len(wrong)} in all"]))

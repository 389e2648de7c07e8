"""Faults of a site's day: what broken nodes and users send, and a database that takes no writes.

Each is met in jobs of its own, whose ids are above all others', so that the invariants about the
day's jobs go on meanwhile.
"""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.place import Place
from devcluster import accounts, process
from devcluster.users import JOB_USERS

from day import bodies
from day.asker import Answer, Asked, Asker, Json
from day.invariants import OF_FAULTS
from day.launches import FIRST_UID, Launch
from day.replicas import DATABASE, EACH, NODES, REPLICAS, Replicas

APPLICATION = "app-of-faults"
WAIT_SECONDS = 60.0
FLOOD = 300
"""Orders that a user sends at once."""
MOST_ORDERS = 100
"""``[users] orders``, by default."""
FORGED = {"cb_nodes": 1, "cb_buffer_size": 1}
"""What no start was given."""
WITHOUT_WORD = ("no answer", "deadline", "connect")
"""What a problem has in it that is no refusal."""

EXTREMES: Sequence[tuple[tuple[str | int, ...], object]] = (
    (("prolog_at",), "-009999-01-02T01:59:59Z"),
    (("prolog_at",), "9999-12-30T22:00:00Z"),
    (("steps", 0, "duration_ns"), 2**64 - 1),
    (("steps", 0, "wait_status"), -(2**31)),
    (("steps", 0, "nodes"), 2**32 - 1),
    (("epilog", "limit_seconds"), 2**64 - 1),
    (("epilog", "exit_code"), "9" * 5000),
    (("measures",), {"bytes_written": 1e308, "bytes_read": -1e308}),
    (("measures",), {f"measure-{number}": 1.0 for number in range(5000)}),
    (("applied",), {"kind": "parametrization", "parametrization": {"x" * 4096: "\u0000"}}),
    (("job", "node"), "n" * 5000),
    (("request", "app"), "\u001b[2J"),
)
"""Fields of a report and what they hold."""

_BREAK = """
    create function refuse() returns trigger language plpgsql as $$
        begin raise exception 'a fault refuses it'; end $$;
    update epochs set evidence = null where study_id = {study};
    create trigger refuse before update on epochs for each row
        when (new.study_id = {study} and new.evidence is not null) execute function refuse()"""
_MEND = "drop function refuse cascade"


@dataclass
class Faults:
    """What is tried, and what came of it."""

    place: Place
    replicas: Replicas
    asker: Asker
    configs: Sequence[Path]
    now: Callable[[], float]
    """The service's clock."""
    met: list[tuple[str, str | None]] = field(default_factory=list)
    """What was tried, and what is wrong with what came of it."""
    asked: int = 0
    _ordered: int = 0
    _job: int = OF_FAULTS

    def meet(self, kind: str, step: int) -> None:
        """Let one happen."""
        {
            "extremes": self._extremes,
            "forged": self._forged,
            "orders": self._orders,
            "unassessable": self._unassessable,
            "read-only": self._read_only,
        }[kind](step)

    def _found(self, tried: str, wrong: str | None) -> None:
        self.met.append((tried, wrong))

    # What nodes send

    def _all(self, requests: Sequence[Asked]) -> list[Answer]:
        self.asked += len(requests)
        return self.asker.all(requests)

    def _launch(self, step: int) -> Launch:
        self._job += 1
        return Launch(
            job_id=self._job,
            restarts=0,
            uid=FIRST_UID,
            application=APPLICATION,
            fate="completes",
            starts=step,
            ends=step,
            reported=step,
            told=step,
            repeats=False,
        )

    def _started(self, step: int, number: int) -> list[tuple[Launch, Json]]:
        launched = [self._launch(step) for _ in range(number)]
        asked = [Asked("/v1/runs/start", bodies.start(one), NODES) for one in launched]
        answers = self._all(asked)
        for answer in answers:
            self._found("a start", answer.problem)
        pairs = zip(launched, answers, strict=True)
        return [(launch, answer.json) for launch, answer in pairs if answer.problem is None]

    def _told(self, launched: Sequence[Launch]) -> None:
        """Let Slurm say that they have completed."""
        now = self.now()
        for place in range(0, len(launched), 20):
            some = [(launch, now - 30, now) for launch in launched[place : place + 20]]
            (answer,) = self._all([Asked("/v1/outcomes", bodies.outcomes(some))])
            self._found("outcome records", answer.problem)

    def _states(self, launched: Sequence[Launch]) -> dict[int, str]:
        """Return the state of each one's run, once all have a verdict or it takes too long."""
        ids = ", ".join(str(launch.job_id) for launch in launched)
        query = f"select job_id, state from runs where job_id in ({ids})"
        states: dict[int, str] = {}

        def waiting() -> str | None:
            rows = self.place.sql(DATABASE, query)
            states.update({int(job_id): state for job_id, state in rows})
            return ", ".join(str(job) for job, state in states.items() if state == "in_flight")

        process.wait_until(lambda: waiting() or None, WAIT_SECONDS)
        return states

    def _extremes(self, step: int) -> None:
        """Let each field of a report have what no field should have."""
        started = self._started(step, len(EXTREMES))
        for (launch, given), (path, value) in zip(started, EXTREMES, strict=False):
            good = bodies.finish(launch, given)
            (answer,) = self._all([Asked("/v1/runs/finish", _with(good, path, value), NODES)])
            problem = answer.problem or ""
            unheard = any(word in problem for word in WITHOUT_WORD)
            self._found(f"a report with {path} = {str(value)[:40]}", problem if unheard else None)
            # The node's own report, which is there already if the extreme one was taken.
            (answer,) = self._all([Asked("/v1/runs/finish", good, NODES)])
            self._found(f"the report after {path}", answer.problem)
        self._told([launch for launch, _ in started])
        for job_id, state in self._states([launch for launch, _ in started]).items():
            wrong = "has no verdict" if state == "in_flight" else None
            self._found(f"the run of job {job_id}", wrong)

    def _forged(self, step: int) -> None:
        """Let a node say that a job ran with what nobody gave it."""
        started = self._started(step, 3)
        for launch, given in started:
            body = bodies.finish(launch, given)
            body["applied"] = {"kind": "parametrization", "parametrization": FORGED}
            (answer,) = self._all([Asked("/v1/runs/finish", body, NODES)])
            self._found("a forged report", answer.problem)
        self._told([launch for launch, _ in started])
        for job_id, state in self._states([launch for launch, _ in started]).items():
            wrong = None if state == "not_counted" else f"is {state}"
            self._found(f"the forged run of job {job_id}", wrong)

    # What users send

    def _orders(self, step: int) -> None:
        """Let a user order without end, while jobs start."""
        user = accounts.find(JOB_USERS[0])
        program = self.place.cluster.paths.bin / "calls"
        flood = [
            Asked(
                "/v1/orders",
                {
                    "kind": "off",
                    "scope": {"application": f"flood-{step}-{number}"},
                    "why": "a flood",
                },
                once=True,
            )
            for number in range(FLOOD)
        ]
        with Asker(program, self.configs, user=user.uid) as asker:
            answers = asker.all(flood)
            self.asked += len(flood)
            started = self._started(step, 20)
        self._ordered += sum(answer.problem is None for answer in answers)
        query = f"select count(*) from orders where uid = {user.uid} and ended_at is null"
        ((count,),) = self.place.sql(DATABASE, query)
        wrong = int(count) != self._ordered or int(count) > MOST_ORDERS
        told = f"{count} are in force, and {self._ordered} were taken"
        self._found("orders without end", told if wrong else None)
        self._finished(started)

    def _finished(self, started: Sequence[tuple[Launch, Json]]) -> None:
        reports = [Asked("/v1/runs/finish", bodies.finish(*one), NODES) for one in started]
        for answer in self._all(reports):
            self._found("a report", answer.problem)
        self._told([launch for launch, _ in started])

    # What the database has, or does not take

    def _unassessable(self, step: int) -> None:
        """Let a study have what cannot be assessed for a while."""
        self._finished(self._started(step, 1))
        query = (
            "select s.id from studies s join applications a on a.id = s.application_id"
            f" where a.name = '{APPLICATION}'"
        )
        ((study,),) = self.place.sql(DATABASE, query)
        self.place.sql(DATABASE, _BREAK.format(study=study))
        try:
            named = process.wait_until(lambda: self._apart(f"study {study}"), WAIT_SECONDS)
            self._found("a study that cannot be assessed is named", named)
        finally:
            self.place.sql(DATABASE, _MEND)
        # Of two replicas the one that named it may go on for a while when the other has done it.
        left = (
            f"select count(*) from epochs where study_id = {study} and evidence is null"
            " and judgements > 0"
        )

        def waiting() -> str | None:
            ((count,),) = self.place.sql(DATABASE, left)
            return None if count == "0" else f"{count} epochs have no evidence"

        mended = process.wait_until(waiting, WAIT_SECONDS)
        self._found("a study that can be assessed again is assessed", mended)

    def _apart(self, named: str) -> str | None:
        """Return what is wrong unless some replica names it."""
        details = []
        for replica in range(REPLICAS):
            (answer,) = self._all([Asked("/v1/doctor", by=EACH + replica)])
            checks = answer.json.get("checks", [])
            apart = (one for one in checks if one["name"] == "set apart")
            details += [one["detail"] for one in apart if one["state"] != "ok"]
        return None if any(named in detail for detail in details) else f"{details} lack {named}"

    def _read_only(self, step: int) -> None:
        """Let the database take no writes for a while."""
        ((launch, given), *_) = self._started(step, 1)
        report = Asked("/v1/runs/finish", bodies.finish(launch, given), NODES)
        with self._taking_no_writes():
            unready = process.wait_until(self._is_ready, WAIT_SECONDS)
            self._found("a service whose database takes no writes is not ready", unready)
            start = Asked("/v1/runs/start", bodies.start(self._launch(step)), NODES)
            refused = self._all([report, start])
            for answer in refused:
                wrong = "was taken" if answer.problem is None else None
                self._found(f"{answer.asked.path} while no writes are taken", wrong)
        ready = process.wait_until(lambda: None if self._is_ready() else "not ready", WAIT_SECONDS)
        self._found("it is ready again", ready)
        self._finished([(launch, given)])
        states = self._states([launch])
        self._found("the report that was refused", None if states else "it has no run")
        query = (
            "select count(*) from reports p join runs r on r.id = p.run_id"
            f" where r.job_id = {launch.job_id}"
        )
        ((count,),) = self.place.sql(DATABASE, query)
        self._found("it is there once", None if count == "1" else f"{count} times")

    def _is_ready(self) -> str | None:
        """Return which replicas say that they are ready."""
        ready = [str(one) for one in range(REPLICAS) if self.replicas.unready(one) is None]
        return ", ".join(ready) or None

    @contextlib.contextmanager
    def _taking_no_writes(self) -> Iterator[None]:
        setting = "default_transaction_read_only"
        self.place.sql("postgres", f"alter system set {setting} = on")
        self.place.sql("postgres", "select pg_reload_conf()")
        try:
            yield
        finally:
            self.place.sql("postgres", f"alter system reset {setting}")
            self.place.sql("postgres", "select pg_reload_conf()")
            # A verdict's transaction may just have begun.
            time.sleep(1.0)


def _with(body: Json, path: Sequence[str | int], value: object) -> Json:
    """Return a body with another value in one place."""
    changed: Json = copy.deepcopy(body)
    inner = changed
    *above, last = path
    for name in above:
        inner = inner[name]  # type: ignore[index]
    inner[last] = value  # type: ignore[index]
    return changed

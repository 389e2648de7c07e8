"""The day: its clock, its load, its operations, and the checks after each step."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.place import Place
from devcluster import clock, command, files, process, render
from devcluster.users import DATABASE_ADMIN
from soak.background import running
from soak.checking import Checker

from day import bodies, launches, operations
from day.asker import Answer, Asked, Asker, Json
from day.faults import Faults
from day.invariants import INVARIANTS, OVERDUE, Facts, Violated, check, looked_at
from day.launches import DAY_SECONDS, PAST_STEPS, Launch
from day.operations import Operation
from day.page import Counts
from day.replicas import DATABASE, EACH, NODES, REPLICAS, TREE, USERS, Replicas, Version

CLOCK_SECONDS = 1.2
"""libfaketime reads the clock's file again once another second has begun (``clock.env``)."""
LONG_AGO = 40 * 24 * 3600
VERDICT_SECONDS = 90.0
"""Reconciliation looks twice a second, and has to get through a burst."""
HEARD_SECONDS = 10.0
"""What replicas know of other studies is a second old (docs/decisions/0041)."""
COLLECTED = 20
"""Outcome records in one request of the collector."""
LOOKED_AT = 4
"""Studies and runs that are looked at through the API in each check."""
CACHES_EVERY = 24
"""Steps; ``doctor`` adds up all of history."""


class Day:
    """One day of a site."""

    def __init__(
        self, place: Place, versions: Sequence[Version], plan: tuple[int, int, int], report: Path
    ) -> None:
        """Plan the day that seed, jobs and steps say; ``report`` is a Python with its needs."""
        self.seed, self.jobs, self.steps = plan
        self._place, self._report = place, report
        self._step_seconds = DAY_SECONDS // self.steps
        self._replicas = Replicas(place, versions[0])
        self._newer = list(versions[1:])
        # From the first upgrade's end on, when the site has told its nodes.
        self._doors = not self._newer
        self._chance = random.Random(f"day {self.seed}")
        planned = launches.generated(self.seed, self.jobs, self.steps)
        self._first = launches.first_of_day(planned)
        self.launches = {(one.job_id, one.restarts): one for one in planned}
        self._events = _events(planned)
        self._operations: dict[int, list[Operation]] = defaultdict(list)
        for one in operations.generated(self.seed, self.steps):
            self._operations[one.step].append(one)
        self._began = time.time()
        self._offset = 0
        self._since = self._unmixed = "-infinity"
        self._spans: dict[tuple[int, int], tuple[float, float]] = {}
        self._answers: dict[tuple[int, int], tuple[Json, float]] = {}
        self._started: set[tuple[int, int]] = set()
        self._fresh: list[int] = []
        """Jobs that this version has started."""
        self._held: dict[str, str] = {}
        self._done: set[str] = set()
        self._facts: dict[str, list[Any]] = defaultdict(list)
        self.checker = Checker(INVARIANTS)
        self.counts = Counts()

    def run(self, say: Callable[[str], None]) -> None:
        """Live through it.

        Raises:
            Violated: an invariant does not hold.

        """
        began = time.monotonic()
        last = PAST_STEPS + self.steps - 1
        with self._replicas.running(), Asker(self._program("calls"), self._configs()) as asker:
            self._asker = asker
            self._faults = Faults(self._place, self._replicas, asker, self._configs(), self._now)
            for step in range(last + 1):
                told = [one.kind for one in self._operations[step]]
                if told or step % 12 == 0:
                    passed = f"{time.monotonic() - began:.0f} s, {len(self._started)} started"
                    say(f"step {step} of {last}, {passed}: {', '.join(told) or '-'}")
                self._set_clock(step)
                self._live(step)
                self._check(step)
            # Everything that is still to be heard, then the patience with what never will be.
            end = max(self._events)
            self._set_clock(end)
            self._deliver([one for step in range(last + 1, end + 1) for one in self._events[step]])
            self._check(end)
            self._set_clock(end + launches.LOST_AFTER_SECONDS // self._step_seconds + 1)
            self._since = "-infinity"
            self._check(end + 1, at_end=True)
        self.counts.seconds = time.monotonic() - began

    # The clock

    def _set_clock(self, step: int) -> None:
        """Let it be a step's begin for the service and PostgreSQL."""
        then = self._began + step * self._step_seconds
        if step >= PAST_STEPS:
            midnight = (self._began + LONG_AGO) // 86400 * 86400
            then = midnight + (step - PAST_STEPS) * self._step_seconds
        offset = int(then - time.time())
        # No step takes as long as it lasts, so time does not go back.
        self._offset = max(self._offset, offset)
        path = clock.clock_file(self._place.cluster.paths)
        files.write(path, f"+{self._offset}\n", mode=0o644)
        until = time.monotonic() + CLOCK_SECONDS
        process.wait_until(
            lambda: None if time.monotonic() > until else "it is not read yet", 2 * CLOCK_SECONDS
        )

    def _now(self) -> float:
        return time.time() + self._offset

    # The load

    def _live(self, step: int) -> None:
        """Do a step's operations while its jobs start and end."""
        beside = [one for one in self._operations[step] if one.kind in {"upgrade", "kill"}]
        label = beside[0].kind if beside else "usual"
        ended = threading.Event()

        def operate() -> None:
            try:
                for one in beside:
                    self._operate(one)
            finally:
                ended.set()

        starting = [one for what, one in self._events[step] if what == "start"]
        ending = [one for one in self._events[step] if one[0] != "start"]
        half = len(starting) // 2
        with running(threading.Event(), operate):
            steering = [self._steering(one) for one in self._operations[step]]
            self._start(starting[:half], label, [one for one in steering if one is not None])
            self._start(starting[half:], label, [])
            self._deliver(ending)
            while not ended.is_set():
                self._ask_again(starting)
        if label == "upgrade":
            self._doors = True
            self._fresh.clear()
        for one in self._operations[step]:
            self.counts.operations[one.kind] += 1
            if one.kind in {"retention", "report"}:
                self._operate(one)
            if one.kind in operations.FAULTS:
                self._faults.meet(one.kind, step)

    def _ask(self, requests: Iterable[Asked]) -> list[Answer]:
        answers = self._asker.all(requests)
        self.counts.requests += len(answers)
        self._facts["answers"] += answers
        return answers

    def _by(self, number: int) -> int:
        """Return the list that a request goes by: half of the nodes have the other order."""
        return (NODES if self._doors else USERS) + number % REPLICAS

    def _start(self, starting: Sequence[Launch], label: str, steering: Sequence[Asked]) -> None:
        requests = [_starting(one, self._by(one.job_id)) for one in starting]
        held = dict(self._held)
        place = len(requests) // 2
        # Slurm starts a job before its prolog asks.
        began = self._now()
        answers = self._ask([*requests[:place], *steering, *requests[place:]])
        told = answers[:place] + answers[place + len(steering) :]
        for launch, answer in zip(starting, told, strict=True):
            if answer.problem is None:
                key = (launch.job_id, launch.restarts)
                self._answers[key] = (answer.json, began)
                self._started.add(key)
                self._fresh.append(launch.job_id)
                self.counts.starts[label].append(answer.milliseconds)
                if not steering and launch.application in held:
                    how = held[launch.application]
                    self._facts["steered"].append((launch.application, how, answer))
        self._ask_again([one for one in starting if one.repeats])

    def _ask_again(self, launched: Sequence[Launch]) -> None:
        """Ask what each gets of the other replica."""
        chosen = launched[:200]
        answers = self._ask(_starting(one, self._by(one.job_id + 1)) for one in chosen)
        for launch, answer in zip(chosen, answers, strict=True):
            key = (launch.job_id, launch.restarts)
            if answer.problem is None and key in self._answers:
                first = self._answers[key][0]
                pair = (_essence(first), _essence(answer.json))
                self._facts["repeated"].append((f"start of {key}", *pair))

    def _deliver(self, ending: Sequence[tuple[str, Launch]]) -> None:
        """Deliver reports and outcome records, of each launch one or the other first."""
        first: list[tuple[str, Launch]] = []
        second: list[tuple[str, Launch]] = []
        for what, launch in ending:
            if (launch.job_id, launch.restarts) not in self._answers:
                # Its start failed, which the check will say.
                continue
            word_first = launch.job_id % 2 == 0
            (first if (what == "outcome") == word_first else second).append((what, launch))
        for half in (first, second):
            self._deliver_once(half, again=False)
            self._deliver_once([one for one in half if one[1].repeats], again=True)

    def _deliver_once(self, half: Sequence[tuple[str, Launch]], *, again: bool) -> None:
        reports = [launch for what, launch in half if what == "report"]
        told = [launch for what, launch in half if what == "outcome"]
        ended = self._now()
        requests = [
            Asked(
                "/v1/runs/finish",
                bodies.finish(one, self._answers[one.job_id, one.restarts][0]),
                self._by(one.job_id + again),
            )
            for one in reports
        ]
        for place in range(0, len(told), COLLECTED):
            some = [(one, *self._span(one, ended)) for one in told[place : place + COLLECTED]]
            requests.append(Asked("/v1/outcomes", bodies.outcomes(some), USERS + place % REPLICAS))
        answers = self._ask(requests)
        for launch, answer in zip(reports, answers, strict=False):
            if answer.problem is None:
                pair = ({"duplicate": again}, {"duplicate": answer.json["duplicate"]})
                self._facts["repeated"].append((f"report of {launch.job_id}", *pair))

    def _span(self, launch: Launch, now: float) -> tuple[float, float]:
        """Return when a launch began and ended; a record that comes again tells the same."""
        began = self._answers[launch.job_id, launch.restarts][1]
        return self._spans.setdefault((launch.job_id, launch.restarts), (began, now))

    # Operations

    def _steering(self, one: Operation) -> Asked | None:
        """Return an admin's request; None: it is none, or there is no such study yet."""
        kinds = {"pin", "unpin", "reset", "freeze", "resume"}
        if one.kind not in kinds:
            return None
        query = (
            "select s.id from studies s join applications a on a.id = s.application_id"
            f" where a.name = '{one.application}'"
        )
        found = self._place.sql(DATABASE, query)
        undone = operations.UNDOES.get(one.kind)
        if not found or (undone is not None and one.application not in self._held):
            return None
        study = int(found[0][0])
        why = f"day: {one.kind} of {one.application} in step {one.step}"
        self._done.add(why)
        if undone is not None:
            del self._held[one.application]
        elif one.kind != "reset":
            self._held[one.application] = one.kind
        if one.kind in {"freeze", "resume"}:
            path = "/v1/orders/end" if one.kind == "resume" else "/v1/orders"
            body: Json = {"kind": "freeze", "scope": {"study": study}, "why": why}
        else:
            path, body = f"/v1/studies/{study}/{one.kind}", {"why": why}
            if one.kind == "pin":
                body["values"] = bodies.PINNED
        return Asked(path, body, USERS + one.step % REPLICAS, once=True)

    def _operate(self, one: Operation) -> None:
        if one.kind == "upgrade":
            # A short day restarts what it has.
            self._replicas.upgrade(self._newer.pop(0) if self._newer else self._replicas.version)
        elif one.kind == "kill":
            self._replicas.end(one.replica, signal.SIGKILL)
            self._replicas.start(one.replica)
        elif one.kind == "retention":
            body = {"older_than_days": 30, "why": "night: retention"}
            more = True
            while more:
                (answer,) = self._ask([Asked("/v1/retention", body, once=True)])
                told = answer.json
                for what in ("runs", "trimmed", "reports"):
                    self.counts.removed[what] = self.counts.removed.get(what, 0) + told.get(what, 0)
                more = bool(told.get("more"))
            assert self.counts.removed["runs"], "retention has found nothing to remove"
        elif one.kind == "report":
            self.counts.reported = self._make_report()
            query = "select count(*) from runs where state <> 'in_flight'"
            ((judged,),) = self._place.sql(DATABASE, query)
            if self.counts.reported != int(judged):
                raise Violated(f"the report has {self.counts.reported} of {judged} judged runs")

    def _make_report(self) -> int:
        """Make the night of the day so far, by the service's clock; return how many runs it has."""
        day = time.strftime("%Y-%m-%d", time.gmtime(self._now()))
        nights = self._place.directory / "nights"
        paths = self._place.cluster.paths
        url = render.database_url(paths, self._place.record, DATABASE_ADMIN, DATABASE)
        argv = [str(self._report), "-m", "io_autotune_report.command", "--database", url]
        argv += ["--state", f"{nights}-state", "--nights", str(nights), "--first", day]
        env = clock.env(paths, self._place.record) | {
            "PYTHONPATH": str(TREE / "analysis" / "report"),
            "TZ": "UTC",
        }
        # As root: the report's environment may lie where the service's user may not look.
        command.run(argv, env=env, timeout=600.0)
        made = json.loads((nights / day / "report.json").read_text(encoding="utf-8"))
        return int(made["total"]["runs"])

    # The checks

    def _check(self, step: int, *, at_end: bool = False) -> None:
        """Wait for the verdicts that are due, then check everything."""
        overdue: list[str] = []

        def is_due() -> str | None:
            overdue[:] = [row[0] for row in self._place.sql(DATABASE, OVERDUE)]
            if at_end and not overdue:
                query = "select job_id from runs where state = 'in_flight' limit 5"
                overdue[:] = [row[0] for row in self._place.sql(DATABASE, query)]
            return ", ".join(overdue) or None

        process.wait_until(is_due, VERDICT_SECONDS)
        query = looked_at(self._since, self._unmixed, self._first)
        ((text,),) = self._place.sql(DATABASE, query)
        read = self.counts.read = json.loads(text)
        self._since = read["since"]
        if any(one.kind == "upgrade" for one in self._operations[step]):
            self._unmixed = read["since"]
        views = self._views()
        replays = self._ask(Asked(f"/v1/runs/{job}/replay") for job in self._some(self._fresh))
        kept = self._facts
        self._facts = defaultdict(list)
        facts = Facts(
            step=step,
            launches=self.launches,
            started=sum(job_id >= self._first for job_id, _ in self._started),
            answers=kept["answers"],
            repeated=kept["repeated"],
            overdue=overdue,
            read=read,
            steered=kept["steered"],
            done=self._done,
            views=views,
            replays=replays,
            caches=self._caches() if step % CACHES_EVERY == 0 or at_end else [],
            faults=self._faults.met,
        )
        self._faults.met = []
        self.counts.requests += self._faults.asked
        self._faults.asked = 0
        check(self.checker, facts)
        for key in [key for key in self._answers if self._is_over(key, step)]:
            del self._answers[key]
            self._spans.pop(key, None)

    def _is_over(self, key: tuple[int, int], step: int) -> bool:
        launch = self.launches[key]
        return max(launch.ends, launch.reported or 0, launch.told or 0) < step

    def _some(self, jobs: Sequence[int]) -> list[int]:
        recent = jobs[-1000:]
        return self._chance.sample(recent, min(LOOKED_AT, len(recent)))

    def _views(self) -> list[tuple[str, Json, Json]]:
        """Return what each replica tells of some studies, once both have heard of all others."""
        names = sorted({self.launches[key].application for key in self._answers})
        chosen = self._chance.sample(names, min(LOOKED_AT, len(names)))
        asked = [
            Asked(f"/v1/studies?app={quote(name)}", by=EACH + replica)
            for name in chosen
            for replica in range(REPLICAS)
        ]
        views: list[tuple[str, Json, Json]] = []

        def differ() -> str | None:
            told = [answer.json for answer in self._ask(asked)]
            views[:] = [
                (name, *told[2 * place : 2 * place + 2]) for place, name in enumerate(chosen)
            ]
            return ", ".join(name for name, first, second in views if first != second) or None

        process.wait_until(differ, HEARD_SECONDS)
        return views

    def _caches(self) -> list[Json]:
        answers = self._ask(Asked("/v1/doctor", by=EACH + one) for one in range(REPLICAS))
        checks = [check for answer in answers for check in answer.json.get("checks", [])]
        return [check for check in checks if check["name"] == "caches"]

    def _configs(self) -> list[Path]:
        """Write how the program that asks reaches whom."""
        found = []
        for door in ("users", "nodes"):
            sockets = [self._replicas.socket(one, door) for one in range(REPLICAS)]
            found += [
                self._replicas.client(f"{door}-{first}", sockets[first:] + sockets[:first])
                for first in range(REPLICAS)
            ]
        alone = [[self._replicas.socket(one)] for one in range(REPLICAS)]
        found += [self._replicas.client(f"alone-{one}", alone[one]) for one in range(REPLICAS)]
        return found

    def _program(self, name: str) -> Path:
        return self._place.cluster.paths.bin / name


def _events(planned: Sequence[Launch]) -> dict[int, list[tuple[str, Launch]]]:
    """Return what happens in each step."""
    events: dict[int, list[tuple[str, Launch]]] = defaultdict(list)
    for one in planned:
        events[one.starts].append(("start", one))
        if one.reported is not None:
            events[one.reported].append(("report", one))
        if one.told is not None:
            events[one.told].append(("outcome", one))
    return events


def _starting(launch: Launch, by: int) -> Asked:
    return Asked("/v1/runs/start", bodies.start(launch), by)


def _essence(answer: Json) -> Json:
    """Return what two answers to one question must share: older services tell less."""
    delivery = answer["delivery"]
    return {
        **{key: answer[key] for key in ("run_id", "role", "phase", "parametrization")},
        "files": [file["content"] for file in delivery.get("files", [])],
    }

"""A primary with a standby that is promoted while jobs start and end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from command.jobs import End, Json, Made
from command.place import Place
from command.service import ALICE, ROOT, Service
from harness import await_true

from database.conftest import Runs
from database.servers import Server, await_in_log

PAUSE_SECONDS = 0.1
"""Between the starts of jobs."""
BEFORE_JOBS, AFTER_JOBS = 20, 20
REPLICATED = {"synchronous_commit": "on", "wal_level": "replica", "max_wal_senders": "5"}


@dataclass(frozen=True)
class Pair:
    """A primary and its standby, to which every commit goes before it is acknowledged."""

    primary: Server
    standby: Server


@pytest.fixture
def pair(root: Path) -> Iterator[Pair]:
    """Run both."""
    primary, standby = Server(root, "h1"), Server(root, "h2")
    primary.make()
    primary.admit("local all all trust", "local replication all trust")
    with ExitStack() as stack:
        stack.enter_context(primary.running(**REPLICATED))
        primary.create()
        standby.follow(primary)
        stack.enter_context(standby.running(**REPLICATED))
        primary.set("synchronous_standby_names = '*'")
        state = "select count(*) from pg_stat_replication where sync_state = 'sync'"
        await_true("it is replicated", lambda: primary.sql(state) == ["1"])
        yield Pair(primary, standby)


@dataclass
class Jobs:
    """Jobs whose nodes ask and report while something happens to the database."""

    served: Service
    refused: list[Made] = field(default_factory=list)
    """Ran with their defaults."""
    started: list[tuple[Made, Json]] = field(default_factory=list)
    acknowledged: list[Made] = field(default_factory=list)
    """Their reports were."""
    waiting: list[tuple[Made, Json, End]] = field(default_factory=list)
    """The spool."""
    slowest_ms: float = 0.0

    def live(self) -> bool:
        """Let a job start, and end at once; return whether it got what it was to run with."""
        job = self.served.job(ALICE, "promoted")
        (answer,) = self.served.try_start(job)
        self.slowest_ms = max(self.slowest_ms, answer.milliseconds)
        if answer.problem is None:
            self.started.append((job, answer.json))
            self.waiting.append((job, answer.json, End()))
        else:
            self.refused.append(job)
        self.flush()
        return answer.problem is None

    def flush(self) -> bool:
        """Let all reports be delivered that wait, and return whether none does then."""
        answers = self.served.try_finish(*self.waiting)
        taken = [
            one for one, answer in zip(self.waiting, answers, strict=True) if not answer.problem
        ]
        self.acknowledged += [job for job, _, _ in taken]
        self.waiting = [one for one in self.waiting if one not in taken]
        return not self.waiting


def test_every_report_that_was_acknowledged_is_there_once_after_a_promotion(
    where: Place, pair: Pair, run_service: Runs
) -> None:
    """Promise: a report is lost

    Promise: a report is counted twice

    Attack (database): The primary dies under load, and its standby is promoted.
    Outcome: Every acknowledged report is there once.
    """
    url = pair.primary.url(pair.standby, target_session_attrs="read-write")
    with run_service("promoted", url, {}) as served:
        jobs = Jobs(served)
        for _ in range(BEFORE_JOBS):
            assert jobs.live()
            time.sleep(PAUSE_SECONDS)
        failing = threading.Thread(target=fail_over, args=(pair,))
        failing.start()
        while failing.is_alive():
            jobs.live()
            time.sleep(PAUSE_SECONDS)
        failing.join()
        await_true("jobs are served again", jobs.live)
        for _ in range(AFTER_JOBS):
            assert jobs.live(), "it has found the new primary"
            time.sleep(PAUSE_SECONDS)
        await_true("all reports are delivered", jobs.flush)
        assert len(jobs.acknowledged) == len(jobs.started)
        assert jobs.slowest_ms < 2000.0, "no prolog waits longer"
        ended = [(job, given, End()) for job, given in jobs.started]
        runs = served.end(ended)
        assert {run["state"] for run in runs} == {"counted"}
        counts = (
            "select count(*), count(distinct r.job_id) from runs r join reports on run_id = r.id"
            f" where r.job_id in ({', '.join(str(job.job_id) for job in jobs.acknowledged)})"
        )
        number = len(jobs.acknowledged)
        assert pair.standby.sql(counts) == [f"{number}|{number}"]
        judged = "select sum(judgements) from epochs"
        assert pair.standby.sql(judged) == [str(number)]
        await_in_log(where.paths.log_of("promoted"), "the database is this server")


def fail_over(pair: Pair) -> None:
    """Kill the primary, and promote its standby a moment later."""
    pair.primary.kill()
    time.sleep(1.0)
    pair.standby.promote()
    pair.standby.set("synchronous_standby_names = ''")


def test_a_standby_alone_is_read_and_called_so_until_it_is_promoted(
    pair: Pair, run_service: Runs
) -> None:
    url = pair.primary.url(pair.standby)
    with run_service("standby", url, {}) as served:
        served.run(ALICE, "read")
        pair.primary.kill()
        await_true("it is not ready", lambda: not served.readiness()["ready"])
        (problem,) = served.readiness()["problems"]
        assert "no server listens there" in problem
        assert "takes no writes: it is a standby" in problem
        assert "promote it" in problem
        assert served.ask(ALICE, "status", "read"), "histories can be read meanwhile"
        found = {one["name"]: one for one in served.told(ROOT, "doctor")["checks"]}
        assert "it is a standby" in found["database"]["detail"]
        (answer,) = served.try_start(served.job(ALICE, "read"))
        assert "takes no writes now" in str(answer.problem)
        pair.standby.promote()
        await_true("it is ready", lambda: served.readiness()["ready"])
        pair.standby.set("synchronous_standby_names = ''")
        served.run(ALICE, "read")


def test_a_primary_whose_standby_is_first_in_the_url_is_found(
    pair: Pair, run_service: Runs
) -> None:
    with run_service("second", pair.standby.url(pair.primary), {}) as served:
        served.run(ALICE, "second")

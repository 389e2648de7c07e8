"""Whole lives of runs a second, against pgbench's transactions; and what MUNGE costs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devcluster import process
from devcluster.users import SERVICE_USER

from bench.figures import Aim, Figure, mean_of_rounds, ratio_of_rounds
from bench.place import Place, Service, in_turn

CLIENTS = 64
STUDIES = 50
AIM = Aim(0.5, at_least=True)
POSTGRESQL_AIM = Aim(1.3)
TAIL_AIM = Aim(5.0)
JUDGED_SECONDS = 120.0
PATIENT_MS = 60_000
"""Who measures waits for every answer."""

TRANSACTIONS = Path(__file__).with_name("transactions.sql")
"""What pgbench does for a life, with placeholders for values."""
EMPTIED = Path(__file__).with_name("emptied.sql")
"""Makes a database of the service's pgbench's."""


@dataclass
class Rounds:
    """What the rounds of one side gave."""

    rates: list[float] = field(default_factory=list)
    """Lives a second."""
    tails: list[float] = field(default_factory=list)
    """p99 of a start over its median."""
    medians: list[float] = field(default_factory=list)
    slowest: list[float] = field(default_factory=list)
    costs: dict[str, list[float]] = field(default_factory=dict)
    """Milliseconds of processor time for a life, by who used it."""


def figures(place: Place, rounds: int, lives: int) -> list[Figure]:
    """Measure, and return the figures."""
    with (
        place.database("bench_munge") as signed,
        place.database("bench_free") as free,
    ):
        with place.service(signed) as service:
            live(place, service, "warm", 8 * STUDIES)
        with place.database("bench_pgbench", signed) as copied:
            script = _prepare_pgbench(place, copied)
            done = {"munge": Rounds(), "free": Rounds(), "pgbench": Rounds()}
            with place.service(signed) as service, place.service(free, munge=False) as unsigned:
                for number, side in enumerate(in_turn(rounds, "munge", "pgbench", "free")):
                    # As where autovacuum has had its time: plans are made for tables of this size.
                    for database in (signed, free, copied):
                        place.sql(database, "vacuum analyze")
                    if side == "pgbench":
                        rate, cost = _pgbench(place, copied, script, lives)
                        done[side].rates.append(rate)
                        done[side].costs.setdefault("postgresql", []).append(cost)
                    else:
                        munge = side == "munge"
                        chosen = service if munge else unsigned
                        _round(place, chosen, done[side], f"round-{number}", lives, munge=munge)
    return _figures(done, rounds, lives)


def _figures(done: dict[str, Rounds], rounds: int, lives: int) -> list[Figure]:
    munge, free, pgbench = done["munge"], done["free"], done["pgbench"]
    how = f"{rounds} rounds of {lives} lives each, {CLIENTS} clients, {STUDIES} studies"

    def rate(side: Rounds) -> str:
        return f"{mean_of_rounds(side.rates).value:.0f}"

    def cost(side: Rounds) -> str:
        parts = (f"{who} {mean_of_rounds(ms).value:.2f}" for who, ms in side.costs.items())
        return ", ".join(parts)

    return [
        Figure(
            "lives a second, without MUNGE, against pgbench's",
            "ratio",
            ratio_of_rounds(free.rates, pgbench.rates),
            AIM,
            f"{rate(free)} lives/s against {rate(pgbench)}; {how}; ms of processor a life:"
            f" {cost(free)}; pgbench's: {cost(pgbench)}",
        ),
        Figure(
            "lives a second, with MUNGE, against pgbench's",
            "ratio",
            ratio_of_rounds(munge.rates, pgbench.rates),
            AIM,
            f"{rate(munge)} lives/s; ms of processor a life: {cost(munge)}",
        ),
        Figure(
            "PostgreSQL's processor time for a life, without MUNGE, against pgbench's",
            "ratio",
            ratio_of_rounds(free.costs["postgresql"], pgbench.costs["postgresql"]),
            POSTGRESQL_AIM,
            how,
        ),
        Figure(
            "what MUNGE costs: a life with it against one without",
            "ratio",
            ratio_of_rounds(free.rates, munge.rates),
            None,
            "time for a life; eight credentials made or read, half of them by the client",
        ),
        Figure(
            f"p99 of start against its median, {CLIENTS} clients",
            "ratio",
            mean_of_rounds(munge.tails),
            TAIL_AIM,
            f"median {mean_of_rounds(munge.medians).value:.1f} ms, slowest of all"
            f" {max(munge.slowest):.0f} ms; in the rounds with MUNGE",
        ),
    ]


def _round(
    place: Place, service: Service, done: Rounds, name: str, lives: int, *, munge: bool
) -> None:
    users = {
        "io-autotuned": service.identity.pid,
        "postgresql": place.pid_of("postgresql"),
        "munged": place.pid_of("munged"),
    }
    with place.using(users) as used:
        summary, seconds = live(place, service, name, lives, munge=munge)
    done.rates.append(lives / seconds)
    starts = summary["starts"]
    done.tails.append(starts["p99"] / starts["median"])
    done.medians.append(starts["median"])
    done.slowest.append(starts["slowest"])
    for who, spent in used.items():
        done.costs.setdefault(who, []).append(spent / lives * 1e3)
    done.costs.setdefault("clients", []).append(summary["processor_seconds"] / lives * 1e3)


def live(
    place: Place,
    service: Service,
    name: str,
    lives: int,
    *,
    studies: int = STUDIES,
    clients: int = CLIENTS,
    munge: bool = True,
) -> tuple[dict[str, Any], float]:
    """Live so many lives; return what the client says, and the seconds until the last is judged."""
    ((last,),) = place.sql(service.database, "select coalesce(max(job_id), 0) from runs")
    summary = place.client(
        "lives",
        service,
        f"--app={name}",
        f"--lives={lives}",
        f"--clients={clients}",
        f"--studies={studies}",
        f"--first-job-id={int(last) + 1}",
        f"--deadline-ms={PATIENT_MS}",
        munge=munge,
    )
    assert summary["lives"] == lives, f"some lives failed: {summary['failures']}"
    ended_at = "extract(epoch from max(judged_at) - min(started_at))"
    await_judged(place, service)
    ((seconds,),) = place.sql(
        service.database, f"select {ended_at} from runs where job_id > {last}"
    )
    return summary, float(seconds)


def await_judged(place: Place, service: Service) -> None:
    """Wait until every run has its verdict, and that it counts."""

    def look() -> str | None:
        query = "select count(*) from runs where state = 'in_flight'"
        ((waiting,),) = place.sql(service.database, query)
        return None if waiting == "0" else f"{waiting} runs have no verdict"

    problem = process.wait_until(look, JUDGED_SECONDS)
    assert problem is None, problem
    query = "select count(*), min(verdict) from runs where state <> 'counted'"
    ((others, why),) = place.sql(service.database, query)
    assert others == "0", f"{others} runs do not count: {why}"


def _prepare_pgbench(place: Place, database: str) -> str:
    """Empty the tables but for as many studies, and return the script: a run's values, as text."""
    values = {
        "request": "r.request",
        "parametrization": "r.parametrization",
        "reason": "r.reason",
        "suggestion": "r.suggestion",
        "delivery": "r.delivery",
        "report": "p.body",
        "applied": "r.applied",
        "epilog": "r.epilog",
        "verdict": "r.verdict",
        "recent": "t.recent",
    }
    # The run whose values are of middling size.
    query = (
        f"select json_build_array({', '.join(values.values())})"
        " from runs r join reports p on p.run_id = r.id join tested t on t.epoch_id = r.epoch_id"
        " order by length(r.suggestion::text), r.id offset (select count(*) / 2 from runs) limit 1"
    )
    ((text,),) = place.sql(database, query)
    written = {"studies": str(STUDIES)}
    for name, value in zip(values, json.loads(text), strict=True):
        written[name] = _literal(value)
    place.sql(database, _filled(EMPTIED, written))
    script = place.directory / "transactions.sql"
    script.write_text(_filled(TRANSACTIONS, written), encoding="utf-8")
    return str(script)


def _filled(template: Path, values: dict[str, str]) -> str:
    text = template.read_text(encoding="utf-8")
    return re.sub(r"@([a-z]+)@", lambda found: values[found[1]], text)


def _literal(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    # pgbench takes a colon for the begin of a variable, in a string too.
    for plain, escaped in (("\\", "\\\\"), ("'", "\\'"), (":", "\\x3a")):
        text = text.replace(plain, escaped)
    return f"E'{text}'"


def _pgbench(place: Place, database: str, script: str, lives: int) -> tuple[float, float]:
    """Return lives a second, and milliseconds of PostgreSQL's processor time for one."""
    server = place.pid_of("postgresql")
    before = place.seconds_of(server)
    text = place.pg(
        "pgbench",
        "--no-vacuum",
        "--protocol=prepared",
        f"--client={CLIENTS}",
        "--jobs=2",
        f"--transactions={lives // CLIENTS}",
        f"--file={script}",
        f"--username={SERVICE_USER}",
        database,
    )
    found = re.search(r"tps = ([0-9.]+)", text)
    assert found is not None, text
    used = place.seconds_of(server) - before
    return float(found[1]), used / (lives // CLIENTS * CLIENTS) * 1e3

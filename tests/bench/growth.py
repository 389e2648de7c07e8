"""What does not grow: a suggestion's time with runs and orders, memory; and lists of studies."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from devcluster import command

from bench.figures import Aim, Estimate, Figure, mean_of_rounds, ratio_of_rounds
from bench.lives import live
from bench.place import Place, Service, in_turn, resident_bytes

FEW, MANY = 1_000, 1_000_000
STUDIES = 1_000
"""Of the many runs: a thousand each, as of the few one study has."""
STARTS = 400
AIM = Aim(1.2)
MEMORY_AIM = Aim(1.1)
WARMING, PARTS, COMPARED = 6, 12, 3
KEPT_STUDIES = 160
"""More than the service keeps surrogates of (`tuner-service/service/src/surrogates.rs`); those of
the parts that warm it are more than it keeps copies of (`tuner-service/store/src/kept.rs`)."""


def figures(place: Place, rounds: int) -> list[Figure]:
    """Measure a suggestion's time beside few runs and many, and return the figure."""
    name = f"the time of a suggestion with {MANY} runs in the database, against {FEW}"
    sides = {"few": (FEW, 1), "many": (MANY, STUDIES)}

    def fill(service: Service, side: str) -> None:
        _fill(place, service, *sides[side])

    return [_compared(place, rounds, "bench", name, f"one study of {FEW} runs", fill)]


def orders(place: Place, rounds: int) -> list[Figure]:
    """Measure a suggestion's time beside few ended orders of others and many; return the figure."""
    name = (
        f"the time of a suggestion beside {MANY_ORDERS} ended orders of others,"
        f" against {FEW_ORDERS}"
    )
    counts = {"few": FEW_ORDERS, "many": MANY_ORDERS}

    def fill(service: Service, side: str) -> None:
        live(place, service, "load", FEW, studies=1)
        place.sql(service.database, _ORDERED.format(count=counts[side]))
        place.sql(service.database, "vacuum analyze")

    return [_compared(place, rounds, "bench_orders", name, "one study", fill)]


def _compared(
    place: Place,
    rounds: int,
    database: str,
    name: str,
    of: str,
    fill: Callable[[Service, str], None],
) -> Figure:
    """Return the figure of starts on a database that has been filled with much, against little."""
    medians: dict[str, list[float]] = {"few": [], "many": []}
    with (
        place.database(f"{database}_few") as few,
        place.database(f"{database}_many") as many,
        place.service(few) as small,
        place.service(many) as large,
    ):
        services = {"few": small, "many": large}
        for side, service in services.items():
            fill(service, side)
        for side in in_turn(rounds, "few", "many"):
            summary, _ = live(place, services[side], "load", STARTS, studies=1, clients=1)
            medians[side].append(summary["starts"]["median"])
    return Figure(
        name,
        "ratio",
        ratio_of_rounds(medians["many"], medians["few"]),
        AIM,
        f"medians of {STARTS} starts of {of},"
        f" {mean_of_rounds(medians['many']).value:.2f} ms against"
        f" {mean_of_rounds(medians['few']).value:.2f} ms, {rounds} rounds",
    )


LISTED, LISTED_RUNS = 10_000, 40
"""Studies in a list, and runs of each: it is in the middle of its search."""
LISTED_AIM = Aim(2.0)


def lists(place: Place, rounds: int) -> list[Figure]:
    """Measure how long an admin waits for a list of all studies, and return the figure."""
    with place.database("bench_lists") as database, place.service(database) as service:
        live(place, service, "load", LISTED_RUNS, studies=1)
        _copy(place, database, LISTED)
        argv = [
            str(place.cluster.paths.bin / "io-autotune"),
            f"--config={service.client_toml}",
            "status",
            "--json",
        ]
        seconds = []
        for _ in range(rounds):
            started = time.monotonic()
            listed = command.run(argv, timeout=600.0).stdout
            seconds.append(time.monotonic() - started)
            found = len(json.loads(listed))
            assert found == LISTED, f"{found} studies instead of {LISTED}"
        query = "select pg_database_size(current_database()), (select count(*) from runs)"
        ((size, runs),) = place.sql(database, query)
        each = float(size) / float(runs) / 1024
    return [
        Figure(
            "the database's size for a run",
            "KiB",
            Estimate(each, each, each),
            None,
            f"{runs} runs of {LISTED} studies with reports, judgements and indexes, vacuumed",
        ),
        Figure(
            f"`io-autotune status` of {LISTED} studies, as an admin",
            "s",
            mean_of_rounds(seconds),
            LISTED_AIM,
            f"{LISTED_RUNS} runs of each, as JSON, {rounds} times",
        ),
    ]


FEW_ORDERS, MANY_ORDERS = 10, 1_000_000
_ORDERED = """
    insert into orders (kind, owner_uid, application, uid, why, ended_at)
    select 'off', 70000 + n % 1000, 'app' || n, 70000 + n % 1000, 'a bench', now()
    from generate_series(1, {count}) n
"""
"""Of a thousand users."""


def _fill(place: Place, service: Service, runs: int, studies: int) -> None:
    """Live a thousand lives of one study, then copy it, with all its rows, into the others."""
    live(place, service, "load", FEW, studies=1)
    _copy(place, service.database, studies)
    ((found,),) = place.sql(service.database, "select count(*) from runs")
    assert int(found) == runs, f"{found} runs instead of {runs}"


def _copy(place: Place, database: str, studies: int) -> None:
    """Make as many studies of the one that there is, with all its rows."""
    if studies > 1:
        for table, changed in _CHANGED.items():
            place.sql(database, _copying(place, database, table, changed, studies))
    place.sql(database, "vacuum analyze")


STEP = 10_000_000
"""A copy's ids are the original's and a multiple of this."""


def _moved(*columns: str) -> dict[str, str]:
    return {column: f"{column} + n * {STEP}::bigint" for column in columns}


_CHANGED = {
    "applications": {**_moved("id"), "name": "name || '-' || n"},
    "studies": _moved("id", "application_id"),
    "epochs": _moved("id", "study_id", "parent_id"),
    "runs": {**_moved("id", "epoch_id"), "job_id": f"job_id + n * {4 * FEW}::bigint"},
    "reports": _moved("id", "run_id"),
    "judgements": _moved("id", "epoch_id", "run_id"),
    "tested": _moved("epoch_id", "first_run"),
}
"""What differs between a row and its copies, by table."""


def _copying(place: Place, database: str, table: str, changed: dict[str, str], studies: int) -> str:
    """Return the statement that adds a table's rows for the other studies."""
    query = (
        "select column_name from information_schema.columns where table_schema = 'public'"
        f" and table_name = '{table}' order by ordinal_position"
    )
    columns = [row[0] for row in place.sql(database, query)]
    values = [changed.get(column, column) for column in columns]
    return (
        f"insert into {table} ({', '.join(columns)}) overriding system value"
        f" select {', '.join(values)} from {table}, generate_series(1, {studies - 1}) n"
    )


SITES, RUNS_OF_A_STUDY = (10, 100, 1_000, 10_000, 100_000), 10
"""Studies of a site, and runs of each."""
LIVES_OF_A_STUDY = (100, 1_000, 10_000)


def decades(place: Place, rounds: int) -> list[Figure]:
    """Measure a start on ever larger sites and in ever longer studies."""

    def site(service: Service, studies: int) -> None:
        live(place, service, "load", RUNS_OF_A_STUDY, studies=1)
        _copy(place, service.database, studies)

    def study(service: Service, runs: int) -> None:
        live(place, service, "load", runs, studies=1)
        place.sql(service.database, "vacuum analyze")

    return [
        *_grown(place, rounds, "on a site with {} studies", SITES, site),
        *_grown(place, rounds, "of a study with {} runs", LIVES_OF_A_STUDY, study),
    ]


def _grown(
    place: Place,
    rounds: int,
    where: str,
    sizes: Sequence[int],
    fill: Callable[[Service, int], None],
) -> Iterator[Figure]:
    """Yield the figures of each size against the smallest one."""
    first = sizes[0]
    medians: dict[int, list[float]] = {size: [] for size in sizes}
    with ExitStack() as opened:
        services = {}
        for size in sizes:
            database = opened.enter_context(place.database(f"bench_decade_{size}"))
            services[size] = opened.enter_context(place.service(database))
            fill(services[size], size)
        for side in in_turn(rounds, *(str(size) for size in sizes)):
            summary, _ = live(place, services[int(side)], "load", STARTS, studies=1, clients=1)
            medians[int(side)].append(summary["starts"]["median"])
    for size in sizes[1:]:
        yield Figure(
            f"a start {where.format(size)}, against {where.format(first)}",
            "ratio",
            ratio_of_rounds(medians[size], medians[first]),
            AIM,
            f"medians of {STARTS} starts, {mean_of_rounds(medians[size]).value:.1f} ms against"
            f" {mean_of_rounds(medians[first]).value:.1f} ms; {rounds} rounds",
        )


def memory(place: Place, rounds: int, lives: int) -> list[Figure]:
    """Measure the service's memory in the last parts of a long time, against in its first.

    Each part has more new studies than the service keeps surrogates of, and some parts come before
    any that is looked at: what it keeps is full then.
    """
    ratios, sizes = [], []
    for _ in range(rounds):
        with place.database("bench_memory") as database, place.service(database) as service:
            seen = []
            for part in range(WARMING + PARTS):
                live(place, service, f"part-{part}", lives, studies=KEPT_STUDIES)
                seen.append(float(resident_bytes(service.identity.pid)))
            first, last = seen[WARMING : WARMING + COMPARED], seen[-COMPARED:]
            ratios.append(sum(last) / sum(first))
            sizes.append(sum(last) / COMPARED / 2**20)
    return [
        Figure(
            f"the service's memory after {(WARMING + PARTS) * lives} lives"
            f" against after {(WARMING + COMPARED) * lives}",
            "ratio",
            mean_of_rounds(ratios),
            MEMORY_AIM,
            f"resident, {mean_of_rounds(sizes).value:.0f} MiB at the end; means of {COMPARED} parts"
            f" of {lives} lives and {KEPT_STUDIES} new studies each; {rounds} services",
        )
    ]

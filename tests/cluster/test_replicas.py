"""Two services on one database: one may go at any moment, and Slurm may give a job id again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from threading import Event, Thread

import pytest
from clusters import cluster_of_its_own
from devcluster import files, render
from flooding import storm as stormed
from harness import ROOT, Json, Site, asked, await_true, hints
from services import Encrypted, nodes_socket, service_beside

GIVEN = {"cb_nodes": "2"}
STARTS = 100
DEADLINE_MS = 10_000
"""What is tested is whether all are answered, not how fast this host is."""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster whose job ids may come back."""
    with cluster_of_its_own(request, "replicas") as site:
        yield site


@pytest.fixture(scope="module", autouse=True)
def encrypted(site: Site) -> Iterator[Encrypted]:
    """Run a second service, which also speaks TLS."""
    encrypted = Encrypted(site)
    same = site.paths.service_toml.read_text(encoding="utf-8")
    with service_beside(site, "second", same, encrypted=encrypted):
        yield encrypted


@pytest.fixture(autouse=True)
def _both_are_asked(site: Site) -> None:
    """Tell all clients of both services; bringing up parts of the cluster tells them of one."""
    ask_second(
        site, f"unix:{site.paths.run / 'second.sock'}", f"unix:{nodes_socket(site, 'second')}"
    )


def ask_second(site: Site, of_users: str, of_nodes: str, more: str = "") -> None:
    """Let all clients ask the cluster's own service first, and the second one there."""
    path = site.paths.client_toml
    users = [f"unix:{site.paths.service_socket}", of_users]
    nodes = [f"unix:{site.paths.nodes_socket}", of_nodes]
    clients = render.asking(path.read_text(encoding="utf-8"), users, nodes)
    files.write(path, clients + more, mode=0o644)


def storm(site: Site, app: str, first_job_id: int, deadline_ms: int = DEADLINE_MS) -> Json:
    """Start many runs of one study at once, as their prologs would, and hang up at the deadline."""
    return stormed(site, app, first_job_id, STARTS, deadline_ms)


def runs_of(site: Site, app: str) -> list[list[str]]:
    """Return job id and role of each run of an application, in the order of their starts."""
    return site.sql(
        "select r.job_id, r.role from runs r join epochs e on e.id = r.epoch_id"
        " join studies s on s.id = e.study_id join applications a on a.id = s.application_id"
        f" where a.name = '{app}' order by r.id"
    )


def check_pools(site: Site) -> None:
    """No connection was left inside a transaction."""
    inside = (
        "select count(*) from pg_stat_activity where application_name like 'io-autotuned%'"
        " and state like 'idle in transaction%'"
    )
    await_true("the pools to be whole", lambda: site.sql(inside) == [["0"]])


def test_jobs_are_tuned_and_reported_while_one_service_is_down(
    site: Site, encrypted: Encrypted
) -> None:
    app = "replicas-down"
    site.pinned(app, GIVEN)
    # From here on the second service is asked by TLS alone.
    ask_second(site, encrypted.of_users, encrypted.of_nodes, f'tls_ca = "{encrypted.ca}"\n')
    with site.parts_stopped("io-autotuned"):
        job = site.sbatch("cat $ROMIO_HINTS", asked(app))
        run = site.judged(job)
        assert hints(site.output(job)).items() >= GIVEN.items()
        assert run["state"] == "counted", run
        assert site.spooled() == []
        # A submission waits for it no longer than a moment: on a busy host not each has one.
        await_true("a preview", lambda: app in site.sbatch("true", asked(app)).stderr)


def test_a_mute_service_is_passed_by_and_returned_to(site: Site) -> None:
    app = "replicas-mute"
    study_id = site.pinned(app, GIVEN)["study_id"]
    with site.part_frozen("io-autotuned"):
        job = site.sbatch("cat $ROMIO_HINTS", asked(app))
        run = site.judged(job)
        assert hints(site.output(job)).items() >= GIVEN.items()
        assert run["state"] == "counted", run
        assert site.endpoint.read_text(encoding="utf-8").endswith("second-nodes.sock")
        assert not site.outage.exists(), "one of two that is mute is no outage"
        # What must not be done twice is asked of one that is alive.
        site.pin(app, {"cb_nodes": "4"}, user=ROOT)
        audited = f"select count(*) from audit where action = 'pin' and study_id = {study_id}"
        assert site.sql(audited) == [["2"]], "the pin of the first service and this one"
        job = site.sbatch("cat $ROMIO_HINTS", asked(app))
        assert site.judged(job)["state"] == "counted"
        assert hints(site.output(job))["cb_nodes"] == "4"
        assert not site.outage.exists()
    await_true("the nodes to ask the first service again", lambda: not site.endpoint.exists())


def test_the_other_service_gives_the_answer_of_one_that_is_killed(site: Site) -> None:
    app = "replicas-killed"
    answers: list[Json] = []
    first_job_id = 2_000_000
    asking = Thread(target=lambda: answers.append(storm(site, app, first_job_id)))
    asking.start()
    await_true("some to be answered", lambda: len(runs_of(site, app)) > STARTS // 10)
    site.kill_part("io-autotuned")
    asking.join()
    site.cluster.up()
    (summary,) = answers
    assert summary["lives"] == STARTS, summary
    runs = runs_of(site, app)
    assert sorted(int(job_id) for job_id, _role in runs) == list(
        range(first_job_id, first_job_id + STARTS)
    ), "a job has no run, or two"
    # What was answered is what is kept, and is answered again.
    again = storm(site, app, first_job_id)
    assert (again["roles"], again["explored"]) == (summary["roles"], summary["explored"])
    assert summary["explored"] == summary["exploring"], "the same experiment twice at once"
    assert len(runs_of(site, app)) == STARTS
    check_pools(site)


def test_the_database_restarts_while_clients_hang_up(site: Site) -> None:
    app = "replicas-hang-up"
    first_job_id = 3_000_000
    stop = Event()
    hung_up: list[int] = []

    def impatient() -> None:
        # Longer and longer, so that all of a request's course is cut at one time or another.
        for round_ in count():
            if stop.is_set():
                return
            summary = storm(site, app, first_job_id, 40 + 20 * (round_ % 20))
            hung_up.append(summary["failed"])

    asking = Thread(target=impatient)
    asking.start()
    try:
        for end in ("restart", "kill", "restart"):
            rounds = len(hung_up)
            await_true("clients to hang up", lambda: sum(hung_up[rounds:]) > 0)  # noqa: B023
            if end == "kill":
                site.kill_part("postgresql")
                site.cluster.up()
            else:
                with site.parts_stopped("postgresql"):
                    pass
    finally:
        stop.set()
        asking.join()
    assert sum(hung_up) > STARTS, "nobody hung up"
    check_pools(site)
    # More at once than the pools have connections: each of these works.
    for _ in range(3):
        summary = storm(site, app, first_job_id)
        assert summary["lives"] == STARTS, summary
    runs = runs_of(site, app)
    assert sorted(int(job_id) for job_id, _role in runs) == list(
        range(first_job_id, first_job_id + STARTS)
    ), "a job has no run, or two"
    explored = [role for _job_id, role in runs if role in ("design", "search")]
    assert len(explored) == summary["exploring"] == summary["explored"], "an experiment twice"
    check_pools(site)
    site.counted_run("true", asked("replicas-after"))

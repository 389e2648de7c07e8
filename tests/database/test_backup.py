"""The commands of docs/backup.md: what is dumped or copied is restored, and studies go on."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from command.jobs import End, Json, Made, variables
from command.place import Place
from command.service import ALICE, ROOT, More, Service
from devcluster import accounts, command
from harness import await_true
from pages import steps

from database.conftest import Runs
from database.servers import ADMIN, BEGIN_SECONDS, Server

TREE = Path(__file__).resolve().parents[2]
PAGE = TREE / "docs" / "backup.md"
ROLE = "io-autotune"
ADMITTED = ("local all all trust", "local replication all trust")
MOST_RUNS = 20
OF_AFTER = 9000
"""A job's id that no job of before has."""


@dataclass
class Host:
    """The host on which an admin follows the page."""

    where: Place
    root: Path
    env: Mapping[str, str]
    more: Mapping[str, str]
    """What the page says, and what it is here."""

    def follow(self, section: str, server: Server, service: ExitStack | None = None) -> int:
        """Execute a section on a server, and return how many commands it has.

        Raises:
            AssertionError: one fails, or the page has none.

        """
        at = self.root
        env = {**self.env, "PGHOST": str(server.sockets), "PGPORT": str(server.port)}
        env["PATH"] = f"{Path(server.program('psql')).parent}:{env['PATH']}"
        executed = 0
        for step in steps(PAGE, ["service#"]):
            if step.section != section:
                continue
            executed += 1
            line = step.command
            for said, here in self.more.items():
                line = line.replace(said, here)
            if line.startswith("systemctl stop"):
                assert service is not None
                service.close()
            elif line.startswith("cd "):
                at = Path(line.removeprefix("cd "))
            elif not line.startswith("systemctl "):
                argv = ["bash", "-c", line]
                done = command.run(argv, env=env, cwd=at, timeout=BEGIN_SECONDS, check=False)
                if step.prints != "...":
                    where = f"{PAGE.name}:{step.line}"
                    assert done.returncode == 0, f"{where}: {done.stderr}"
                    assert done.stdout.strip() == step.prints, where
        assert executed, f"the page has no section {section!r} with commands"
        return executed


@pytest.fixture
def host(where: Place, root: Path) -> Host:
    """Return a host with a place for backups."""
    more = {
        "/var/backups/io-autotune": str(root / "backups"),
        "runuser -u io-autotune": "runuser -u postgres",
        "io-autotuned --check": f"io-autotuned --config {where.paths.etc}/after.toml --check",
    }
    env = {
        **where.env,
        "PGUSER": ADMIN,
        "IO_AUTOTUNE_CONFIG": f"{where.paths.etc}/after-client.toml",
    }
    return Host(where, root, env, more)


def made(root: Path, name: str) -> Server:
    """Make a server that may be copied."""
    server = Server(root, name)
    server.make()
    server.admit(*ADMITTED)
    return server


def install(where: Place, server: Server) -> None:
    """Make the roles and the schema, as docs/install.md says."""
    server.create()
    roles = (TREE / "deploy" / "sql" / "roles.sql").read_text(encoding="utf-8")
    server.sql(roles)
    url = server.url(**{"options[role]": "io-autotune-migrate"})
    command.run([str(where.paths.bin / "io-autotuned"), "--migrate", url], timeout=BEGIN_SECONDS)
    role = (TREE / "deploy" / "sql" / "report-role.sql").read_text(encoding="utf-8")
    server.sql(role)


def started(served: Service, *, is_default: bool) -> tuple[Made, Json]:
    """Let jobs start until one has the default, or something else, and return it in flight."""
    for _ in range(MOST_RUNS):
        job = served.job(ALICE, "ocean")
        (given,) = served.start(job)
        if bool(variables(given["delivery"])) is not is_default:
            return job, given
        served.end([(job, given, End())])
    raise AssertionError("no run is as it should be")


def test_a_restored_dump_goes_on_and_later_runs_count_only_for_what_it_gave(
    where: Place, root: Path, host: Host, run_service: Runs
) -> None:
    """Promise: a report is counted twice

    Promise: a wrong gain is reported
    """
    old, new = made(root, "h1"), made(root, "h2")
    with old.running(wal_level="replica"), new.running():
        install(where, old)
        service = ExitStack()
        served = service.enter_context(run_service("before", old.url(user=ROLE), {}))
        first, reported = (started(served, is_default=True) for _ in range(2))
        known = [served.run(ALICE, "ocean")["job_id"] for _ in range(4)]
        host.follow("Dump", old)
        studies = served.ask(ROOT, "status")
        later = served.run(ALICE, "ocean")["job_id"]
        served.end([(*reported, End())])
        default, tuned = (started(served, is_default=is_default) for is_default in (True, False))
        host.follow("Restore a dump", new, service)
        with run_service("after", new.url(user=ROLE), {}) as served:
            host.follow("Check", new)
            found = {one["name"]: one["state"] for one in served.told(ROOT, "doctor")["checks"]}
            assert (found["database"], found["schema"]) == ("ok", "ok"), found
            assert served.ask(ROOT, "status") == studies
            runs = served.end([(*one, End()) for one in (first, default, tuned)])
            assert [run["state"] for run in runs] == ["counted", "counted", "not_counted"]
            assert runs[2]["not_counted_because"] == "given_otherwise"
            lost, _ = reported
            served.slurms[lost.cluster].queue({lost.job_id: lost.queued(End())})
            known_end = f"select count(*) from outcomes where job_id = {lost.job_id}"
            await_true("Slurm's word on it", lambda: new.sql(known_end) == ["1"])
            new_one = served.job(ALICE, "ocean", job_id=OF_AFTER)
            assert served.live(new_one)["state"] == "counted"
        # Its reports will not come: an admin has less patience.
        impatient: More = {"reconcile": {"patience_seconds": 2}}
        with run_service("later", new.url(user=ROLE), impatient) as served:
            assert served.judged(lost)["not_counted_because"] == "not_reported"
        ids = [*known, first[0].job_id, default[0].job_id]
        counted = f"select count(*) from runs where state = 'counted' and job_id in {tuple(ids)}"
        assert new.sql(counted) == [str(len(ids))]
        assert new.sql(f"select count(*) from runs where job_id = {later}") == ["0"]
        assert new.sql("select count(*) from judgements group by run_id having count(*) > 1") == []


def test_a_copy_of_the_whole_server_goes_on(
    where: Place, root: Path, host: Host, run_service: Runs
) -> None:
    old, copy = made(root, "h1"), Server(root, "h2")
    with old.running(wal_level="replica", max_wal_senders="5"):
        install(where, old)
        with run_service("before", old.url(user=ROLE), {}) as served:
            served.run(ALICE, "ocean")
            host.follow("Dump", old)
            assert host.follow("Copy the whole server", old) == 3
    command.run(["cp", "--archive", str(root / "backups" / "base"), str(copy.data)])
    assert copy.data.stat().st_uid == accounts.find(ADMIN).uid
    with copy.running(), run_service("after", copy.url(user=ROLE), {}) as served:
        await_true("it is ready", lambda: served.readiness()["ready"])
        new_one = served.job(ALICE, "ocean", job_id=OF_AFTER)
        assert served.live(new_one)["state"] == "counted"
        assert copy.sql("select count(*) from judgements") == ["2"]

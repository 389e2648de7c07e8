"""Packages of an older commit are upgraded, by the guide, while jobs run and wait."""

from __future__ import annotations

import shlex

from packages.rooms import TREE

from install import guide, previous
from install.cluster import ALICE, BOB, LOGIN, NODES, SERVICE, Site
from install.following import (
    AFTER_FILES,
    FILES,
    Record,
    green,
    hold,
    let_go,
    running,
    units_of,
    write_applications,
)
from install.hosts import until

UPGRADING = ["Upgrading"]
UPGRADES = True
"""The site has packages of the older commit too."""


def schema(site: Site) -> int:
    """Return the number of the last migration."""
    return int(site.sql("select max(version) from _sqlx_migrations")[0][0])


def test_4_packages_are_upgraded_under_jobs(here: Site, record_property: Record) -> None:
    """Upgraded by the guide, while jobs run and wait: each ends, and is judged once."""
    record_property("from", version_of(here, guide.PREVIOUS))
    record_property("commit", previous.commit()[:7])
    # What the last section prints is of this tree's programs.
    guide.follow(here, guide.INSTALL, [*FILES, *AFTER_FILES], guide.PREVIOUS)
    write_applications(here)
    before = schema(here)
    n1, n2 = NODES
    jobs = [hold(here, f"--nodelist={n1}"), hold(here, f"--nodelist={n2}")]
    for job in jobs:
        running(here, job)
    waiting = [hold(here, f"--nodelist={node}") for node in (n1, n2) * 4]
    jobs += waiting

    # Against the guide's order: one node is first, and asks the old service.
    guide.follow(here, guide.PACKAGES, UPGRADING, guide.NOW, [n2])
    let_go(here, jobs[1])
    running(here, waiting[1])
    let_go(here, waiting[1])
    record_property("new helper, old service", "2 runs, one begun by the old helper")

    guide.follow(here, guide.PACKAGES, UPGRADING, guide.NOW, [SERVICE])
    until("the service to be ready", lambda: '"ready":true' in ready(here) or None)
    after = schema(here)
    listed = [int(file.name[:4]) for file in (TREE / "migrations").glob("*.sql")]
    assert before < after == max(listed)
    record_property("schema", f"{before} to {after}")
    let_go(here, jobs[0])
    running(here, waiting[0])
    let_go(here, waiting[0])
    record_property("old helper, new service", "2 runs: one begun under the old service")

    running(here, waiting[2])
    running(here, waiting[3])
    guide.follow(here, guide.PACKAGES, UPGRADING, guide.NOW, [n1])
    guide.follow(here, guide.PACKAGES, UPGRADING, guide.NOW, [LOGIN])
    jobs += [hold(here)]
    here[LOGIN].run("touch go.all", user=ALICE)
    ended = here.ended(jobs, 180.0)
    assert set(ended.values()) == {"COMPLETED"}, ended
    runs = here.judged("held.sh", jobs)
    assert [run["state"] for run in runs] == ["counted"] * len(jobs)
    assert here.sql("select count(*) from runs where state = $$in_flight$$") == [["0"]]
    twice = "select run_id from judgements group by run_id having count(*) <> 1"
    assert here.sql(twice) == []
    assert int(here.sql("select count(*) from judgements")[0][0]) == len(jobs)
    for node in NODES:
        assert here[node].run("ls /var/spool/io-autotune | grep json || true") == ""
    record_property("jobs", f"{len(jobs)}, none failed; each run judged once")


def test_4_the_upgraded_site_is_whole(here: Site, record_property: Record) -> None:
    """After the upgrade all hosts have the new packages, and the doctor is content."""
    new = version_of(here, guide.NOW)
    for host in (SERVICE, LOGIN, *NODES):
        shown = "dpkg-query --show --showformat '${Version}\\n' '*io-autotune*'"
        said = here[host].run(shown)
        assert set(said.split()) == {new}, f"{host}: {said}"
    units_of(here)
    green(here, ALICE, LOGIN)
    green(here, BOB, LOGIN)
    record_property("to", new)


def ready(site: Site) -> str:
    """Return what the service says of itself."""
    return site[SERVICE].run(f"curl --silent http://{site[SERVICE].address}:8641/v1/ready || true")


def version_of(site: Site, directory: str) -> str:
    """Return the version of packages."""
    place = shlex.quote(directory)
    return site[LOGIN].run(f"dpkg-deb --field {place}/io-autotune_*.deb Version").strip()

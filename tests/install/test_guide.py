"""The life of a site that installs packages by the guide: from the first command to the purge."""

from __future__ import annotations

import re

from install import guide
from install.cluster import ALICE, BOB, CLUSTER, LOGIN, NODES, SERVICE, Site
from install.following import Record, green, install, units_of
from install.hosts import until

JOBS = 8
"""Enough for all baseline runs, and for some that explore."""
HOSTS = (SERVICE, LOGIN, *NODES)
RULES = "/etc/prometheus/io-autotune.rules.yml"
LISTED = """
ELSE='/(proc|sys|dev|tmp|packages|root|home|mnt|var/(log|cache|tmp|lib/(apt|dpkg|systemd)))'
find / -xdev -regextype posix-extended -regex "$ELSE" -prune -o -print | sort
"""
"""All files of a host, without what any package and the work of the site leave."""


def test_1_the_guide_installs_a_site(here: Site, record_property: Record) -> None:
    """Packages are installed, by the guide's blocks alone."""
    for host in HOSTS:
        here[host].run(f"( {LISTED} ) >/root/before")
    record_property("commands of the guide", install(here))
    for host in HOSTS:
        said = here[host].run("systemctl --failed --no-legend; systemctl is-system-running || true")
        assert said.strip() == "running", f"{host}: {said}"
    assert len(units_of(here)) == 5
    record_property("Slurm", here[LOGIN].run("sbatch --version").split()[-1])
    record_property("PostgreSQL", here[SERVICE].run("ls /usr/lib/postgresql").strip())
    record_property("systemd", here[SERVICE].run("systemctl --version").split()[1])


def test_2_the_doctor_is_content(here: Site, record_property: Record) -> None:
    """`io-autotune doctor` has nothing to say: a user, an admin, root of the submit host."""
    for user in (ALICE, BOB, "root"):
        green(here, user, LOGIN)
    record_property("checks for an admin", len(green(here, BOB, LOGIN)))


def test_3_an_application_is_tuned(here: Site, record_property: Record) -> None:
    """An application is submitted again and again, counted, and explored."""
    jobs: list[str] = []
    for _ in range(2):
        # The second half explores, once the first is judged.
        jobs += [here.submit("--io-autotune", "ocean.sh") for _ in range(JOBS // 2)]
        ended = here.ended(jobs, 120.0)
        assert set(ended.values()) == {"COMPLETED"}, ended
        runs = here.judged("ocean.sh", jobs)
    assert [run["state"] for run in runs] == ["counted"] * JOBS, [run["verdict"] for run in runs]
    roles = [run["role"] for run in runs]
    exploring = [run for run in runs if run["role"] in ("design", "search")]
    assert exploring, roles
    explored = exploring[0]
    said = here[LOGIN].run(f"io-autotune explain {explored['job_id']}", user=ALICE)
    assert re.search(r"^counts +yes", said, re.M), said
    status = here[LOGIN].run("io-autotune status", user=ALICE)
    assert "ocean.sh" in status, status
    record_property("runs counted", len(runs))
    record_property("of them exploring", len(exploring))


def test_3_the_night_is_reported(here: Site, record_property: Record) -> None:
    """The nightly report is installed by the guide, and makes its first night."""
    guide.follow(here, guide.INSTALL, ["The nightly report"])
    service = here[SERVICE]
    nights = "/var/lib/io-autotune-report/nights/latest"
    # It is of yesterday, when there was no run.
    assert f'"site":"{CLUSTER}"' in service.run(f"cat {nights}/*.json")
    timers = service.run("systemctl list-timers --no-legend io-autotune-report.timer")
    assert "io-autotune-report.timer" in timers
    record_property("files of a night", service.run(f"ls {nights} | wc -l").strip())


def test_3_it_is_rolled_out_and_back(here: Site, record_property: Record) -> None:
    """Rolled out by the guide: observe, opt in, on unless said otherwise, and back."""
    blocks = guide.blocks(guide.INSTALL, "Rolling out")
    assert len(blocks) == 4

    def stage(number: int, *arguments: str) -> dict[str, object] | None:
        """Submit a job, and return its run, if it has one."""
        job = here.submit(*arguments, "ocean.sh")
        assert here.ended([job])[job] == "COMPLETED"
        run = here.runs("ocean.sh").get(job)
        record_property(f"stage {number}", run["role"] if run else "no run")
        return here.judged("ocean.sh", [job])[0] if run else None

    guide.follow(here, guide.INSTALL, ["Rolling out"], blocks=blocks[:1])
    observed = stage(1)
    assert observed is not None
    assert observed["role"] == "observe"
    guide.follow(here, guide.INSTALL, ["Rolling out"], blocks=blocks[1:2])
    assert stage(2) is None
    asked = stage(2, "--io-autotune")
    assert asked is not None
    assert asked["role"] != "observe"
    guide.follow(here, guide.INSTALL, ["Rolling out"], blocks=blocks[2:3])
    on = stage(3)
    assert on is not None
    assert on["role"] != "observe"
    assert stage(3, "--io-autotune=mode=off") is None
    guide.follow(here, guide.INSTALL, ["Rolling out"], blocks=blocks[3:])
    assert stage(4) is None


def test_6_prometheus_watches(here: Site, record_property: Record) -> None:
    """Debian's Prometheus reads the service, and its alert fires while the service is down."""
    service = here[SERVICE]
    guide.follow(here, guide.MONITORING, ["Watching the service"])
    settings = guide.indented(guide.MONITORING, "scrape_configs:")
    quick = "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
    # As deployed, but for how long something must last.
    service.run(
        f"cat >/etc/prometheus/prometheus.yml <<'TEXT'\n{quick}{settings}TEXT\n"
        f"promtool check config /etc/prometheus/prometheus.yml\n"
        f"sed -i 's/for: [0-9]*m/for: 1s/' {RULES}\n"
        "systemctl restart prometheus"
    )

    def firing() -> set[str]:
        ask = "curl --silent --fail http://127.0.0.1:9090/api/v1"
        said = service.run(f"{ask}/query?query=up || true")
        if '"result":[{' not in said:
            return {"nothing was read yet"}
        said = service.run(f"{ask}/alerts")
        return set(re.findall(r'"alertname":"(\w+)"[^}]*}[^}]*}[^}]*"state":"firing"', said))

    for _ in range(2):
        until("the alert to resolve", lambda: firing() == set(), 60.0)
        service.run("systemctl stop io-autotuned-{users,nodes}.socket io-autotuned")
        until("the alert to fire", lambda: firing() == {"IoAutotuneDown"}, 60.0)
        service.run("systemctl start io-autotuned-{users,nodes}.socket io-autotuned")
    until("the alert to resolve", lambda: firing() == set(), 60.0)
    record_property("Prometheus", service.run("prometheus --version").split()[2])
    record_property("alert", "IoAutotuneDown fired and resolved, twice")


def test_7_a_purge_leaves_no_trace(here: Site, record_property: Record) -> None:
    """Purged by the guide: no file, unit, account or timer is left; the database is."""
    here[SERVICE].run(f"rm {RULES}")
    guide.follow(here, guide.PACKAGES, ["Removing"])
    for host in HOSTS:
        said = here[host].run(f"( {LISTED} ) >/root/after; diff /root/before /root/after || true")
        new = [line[2:] for line in said.splitlines() if line.startswith("> ")]
        ours = [path for path in new if "autotune" in path]
        assert not ours, f"{host}: {ours}"
        rest = [path for path in new if re.match("/(etc|usr|lib)/", path)]
        assert not [path for path in rest if not path.endswith("-")], f"{host}: {rest}"
        accounts = here[host].run("getent passwd | grep autotune || true; systemctl list-timers")
        assert "autotune" not in accounts, f"{host}: {accounts}"
        said = here[host].run("systemctl --failed --no-legend; dpkg --list | grep autotune || true")
        assert not said.strip(), f"{host}: {said}"
    job = here.submit("ocean.sh")
    assert here.ended([job])[job] == "COMPLETED"
    runs = int(here.sql("select count(*) from runs")[0][0])
    assert runs > JOBS
    record_property("left in the database, as the guide says", f"{runs} runs")

"""What the sites of all tests do by the guide."""

from __future__ import annotations

import json
from collections.abc import Callable

from pages import Step

from install import guide
from install.cluster import ALICE, LOGIN, NODES, SERVICE, Site
from install.hosts import until

FILES = ("2. Account", "3. Files")
AFTER_FILES = (
    *("4. Database", "5. service.toml", "Who holds the port"),
    "6. client.toml, the plugin, Slurm",
)
CHECK = "7. Does it work?"
"""Sections of the guide."""
OCEAN = """#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=2
# The kernel is one: MPICH would take shared memory between the hosts, and they share none.
srun --nodes=1 --ntasks=2 --mpi=pmi2 strided --file shared.$SLURM_JOB_ID \\
    --block-size 512 --blocks 4096 --collective
"""
"""A small application of a user's on two nodes: ranks on one write and read a file by MPI-IO."""
HELD = """#!/bin/bash
#SBATCH --nodes=1 --ntasks=4
srun --mpi=pmi2 strided --file held.$SLURM_JOB_ID --block-size 512 --blocks 1024 --collective
until [ -e go.$SLURM_JOB_ID ] || [ -e go.all ]; do sleep 0.1; done
"""
"""A job that takes all of a node, and ends when the test lets it."""
Record = Callable[[str, object], None]
"""pytest's record_property."""


def install(site: Site) -> int:
    """Follow the guide, and return how many of its commands ran."""

    def judged(step: Step) -> None:
        if step.command.startswith("job=$(sbatch"):
            jobs = [job for job, name in site.names().items() if name == "wrap"]
            assert set(site.ended(jobs).values()) == {"COMPLETED"}
            site.judged("check", jobs)

    sections = (*FILES, *AFTER_FILES, CHECK)
    executed = guide.follow(site, guide.INSTALL, sections, after=judged)
    write_applications(site)
    return executed


def write_applications(site: Site) -> None:
    """Give the user something to run."""
    for name, script in (("ocean.sh", OCEAN), ("held.sh", HELD)):
        site[LOGIN].run(f"cat >{name} <<'TEXT'\n{script}TEXT", user=ALICE)


def green(site: Site, user: str, host: str) -> list[str]:
    """Return what `io-autotune doctor` has checked: it has found nothing.

    Raises:
        AssertionError: it has.

    """
    said = site[host].run("io-autotune doctor --json || true", user=user)
    checks = json.loads(said)["checks"]
    wrong = [check for check in checks if check["state"] != "ok"]
    assert not wrong, wrong
    return [check["name"] for check in checks]


def units_of(site: Site) -> dict[str, str]:
    """Return the file of each unit that runs, by the unit."""
    units = {
        SERVICE: ("io-autotuned.service", "io-autotuned-users.socket", "io-autotuned-nodes.socket"),
        **dict.fromkeys(NODES, ("io-autotune-flush.timer",)),
    }
    found = {}
    for host, names in units.items():
        for name in names:
            said = site[host].run(f"systemctl show --property=ActiveState,FragmentPath {name}")
            shown = dict(line.split("=", 1) for line in said.splitlines())
            assert shown["ActiveState"] == "active", f"{host}: {name}: {said}"
            found[f"{host} {name}"] = shown["FragmentPath"]
    return found


def hold(site: Site, *arguments: str) -> str:
    """Submit a job that waits to be let go."""
    return site.submit("--io-autotune", *arguments, "held.sh")


def let_go(site: Site, job: str) -> None:
    """Let a job end, and see that it ended well and that its run was judged."""
    site[LOGIN].run(f"touch go.{job}", user=ALICE)
    assert site.ended([job])[job] == "COMPLETED"
    assert site.judged("held.sh", [job])[0]["state"] == "counted"


def running(site: Site, job: str) -> None:
    """Wait until a job runs."""
    until(f"job {job} to run", lambda: site.states().get(job) == "RUNNING")

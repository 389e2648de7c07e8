"""A site before io-autotune: hosts with Slurm, munge and PostgreSQL as Debian has them."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packages.rooms import DIRECTORY, ROOTS, TREE
from packages.suites import Suite
from series import roots

from install.hosts import NETWORK, Host, Network, until

CLUSTER = "atlas"
SERVICE, LOGIN, NODES = "service", "login", ("n1", "n2")
"""The host of slurmctld, the service and its database; the submit host; compute nodes."""
ALICE, BOB = "alice", "bob"
UIDS = {ALICE: 1001, BOB: 1002}
"""A user, and an admin of io-autotune's."""
ADMINS = "hpc-admins"
"""Bob's group."""
SLURM = 64030
"""Debian's uid of the account slurm."""
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "iproute2", "procps", "curl"),
    *("munge", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "mpich"),
    *("postgresql", "prometheus", "python3", "libpq5", "libstdc++6", "zlib1g"),
    "libslurm-dev",
)
"""What the site has, and what io-autotune's packages depend on: nothing is fetched later. The
plugin needs the suite's libslurm, whose name has its number: its headers depend on it."""
DAEMONS = ("slurmctld", "slurmd", "postgresql", "prometheus")
KERNEL = ("systemd-modules-load",)
"""Units about the kernel, which is the machine's."""
WORKLOAD = TREE / "build/workloads/strided"

SLURM_CONF = f"""ClusterName={CLUSTER}
SlurmctldHost={SERVICE}
SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmctldPidFile=/run/slurmctld.pid
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmdPidFile=/run/slurmd.pid
SlurmdParameters=config_overrides
PlugStackConfig=/etc/slurm/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=1,sched_interval=2,sched_min_interval=200000,batch_sched_delay=0
MpiDefault=pmi2
PrologFlags=Alloc
ReturnToService=2
MinJobAge=300
CompleteWait=0
KillWait=5
MailProg=/bin/true
NodeName=n[1-2] CPUs=4 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=n[1-2] Default=YES MaxTime=60 State=UP
PartitionName=second Nodes=n[1-2] MaxTime=60 State=UP
"""
CGROUP_CONF = {"bookworm": "CgroupPlugin=cgroup/v1\n"}
NO_CGROUP = "CgroupPlugin=disabled\n"

Run = dict[str, Any]


@dataclass
class Site:
    """Hosts of one suite, on one network."""

    suite: Suite
    directory: Path
    network: Network
    hosts: dict[str, Host] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Host:
        """Return a host."""
        return self.hosts[name]

    def all(self, names: Iterable[str], script: str) -> None:
        """Run a script as root on several hosts."""
        for name in names:
            self[name].run(script)

    def submit(self, *arguments: str, user: str = ALICE) -> str:
        """Submit a job from the submit host, and return its number."""
        said = self[LOGIN].run(f"sbatch --parsable {' '.join(arguments)}", user=user)
        return said.strip().splitlines()[-1].split(";")[0]

    def states(self) -> dict[str, str]:
        """Return each job's state, as slurmctld has them."""
        said = self[SERVICE].run("squeue --states=all --noheader --format='%i %T'")
        return dict(line.split() for line in said.splitlines())

    def names(self) -> dict[str, str]:
        """Return each job's name."""
        said = self[SERVICE].run("squeue --states=all --noheader --format='%i %j'")
        return dict(line.split(maxsplit=1) for line in said.splitlines())

    def ended(self, jobs: Iterable[str], seconds: float = 120.0) -> dict[str, str]:
        """Wait until jobs have ended, and return how."""
        wanted = set(jobs)
        over = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}

        def ask() -> dict[str, str] | None:
            states = {job: state for job, state in self.states().items() if job in wanted}
            return states if all(states.get(job) in over for job in wanted) else None

        return until(f"the end of jobs {sorted(wanted)}", ask, seconds)

    def sql(self, query: str) -> list[list[str]]:
        """Return what the service's database answers."""
        script = f"cd /; runuser -u postgres -- psql --dbname io_autotune --csv -t -c '{query}'"
        return [line.split(",") for line in self[SERVICE].run(script).splitlines() if line]

    def runs(self, application: str, user: str = ALICE) -> dict[str, Run]:
        """Return the runs of a user's application, by the numbers of their jobs."""
        said = self[LOGIN].run(f"io-autotune history {application} --json || true", user=user)
        if not said.startswith("["):
            return {}
        return {str(run["job_id"]): run for run in json.loads(said)}

    def judged(self, application: str, jobs: Iterable[str], seconds: float = 90.0) -> list[Run]:
        """Wait until the runs of jobs have a verdict, and return them in this order."""
        wanted = list(jobs)

        def ask() -> list[Run] | None:
            runs = self.runs(application)
            found = [runs[job] for job in wanted if job in runs]
            decided = all(run["state"] != "in_flight" for run in found)
            return found if decided and len(found) == len(wanted) else None

        return until(f"the verdicts of {application}, jobs {wanted}", ask, seconds)

    def close(self) -> None:
        """End all hosts, and remove what they have written."""
        for host in self.hosts.values():
            host.halt()
            host.forget()
        self.network.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def prepared(suite: Suite, packages: Mapping[Path, str]) -> Site:
    """Return a site that runs jobs and knows nothing of io-autotune.

    Its hosts see directories of packages, each at its place.
    """
    root = roots.made(f"{suite.name}.install", suite.name, sorted(PACKAGES), ROOTS, roots.SKIPPED)
    directory = DIRECTORY / f"sites/{suite.name}.{os.getpid()}"
    shutil.rmtree(directory, ignore_errors=True)
    made = Site(suite, directory, Network(f"io-autotune-install-{os.getpid()}"))
    try:
        _build(made, root, packages)
    except BaseException:
        made.close()
        raise
    return made


def _build(made: Site, root: Path, packages: Mapping[Path, str]) -> None:
    """Boot the hosts of a site, and start Slurm on them."""
    suite, directory = made.suite, made.directory
    home = directory / "home"
    for user, uid in UIDS.items():
        (home / user).mkdir(parents=True)
        os.chown(home / user, uid, uid)
    key = base64.b64encode(os.urandom(96)).decode()
    names = (SERVICE, LOGIN, *NODES)
    for number, name in enumerate(names, start=1):
        host = Host(name, number, root, directory / name, {**packages, home: "/home"})
        made.hosts[name] = host
        runs = {SERVICE: {"slurmctld", "postgresql", "prometheus"}, LOGIN: set[str]()}
        started = runs.get(name, {"slurmd"})
        idle = [unit for unit in DAEMONS if unit not in started]
        host.mask(*(f"{unit}.service" for unit in (*idle, *KERNEL)))
        lines = "".join(f"{NETWORK}.{n} {each}\n" for n, each in enumerate(names, start=1))
        host.write("/etc/hosts", f"127.0.0.1 localhost\n{lines}")
        host.write("/etc/machine-id", os.urandom(16).hex() + "\n", 0o444)
        host.write("/etc/slurm/slurm.conf", SLURM_CONF)
        host.write("/etc/slurm/cgroup.conf", CGROUP_CONF.get(suite.name, NO_CGROUP))
        host.write("/etc/munge/munge.key.base64", key, 0o600)
        host.write("/etc/apt/apt.conf.d/90answers", 'APT::Get::Assume-Yes "true";\n')
        host.put(WORKLOAD, "/usr/local/bin/strided")
        host.boot(made.network)
        _prepare(host)
    service = made[SERVICE]
    service.run(
        "install -d -o slurm -g slurm /var/lib/slurm/slurmctld\n"
        "version=$(ls /usr/lib/postgresql)\n"
        "pg_createcluster $version main\n"
        "systemctl restart postgresql@$version-main slurmctld\n"
    )
    made.all(NODES, "systemctl restart slurmd")
    until(
        "both nodes to be idle",
        lambda: service.run("sinfo --noheader --format=%T%D || true").count("idle2") or None,
    )


def _prepare(host: Host) -> None:
    """Make users, munge's key, and the program that jobs run."""
    users = "".join(
        f"useradd --uid {uid} --no-create-home --shell /bin/bash {user}\n"
        for user, uid in UIDS.items()
    )
    host.run(
        f"{users}groupadd --gid 1100 {ADMINS}\nusermod --append --groups {ADMINS} {BOB}\n"
        "base64 --decode /etc/munge/munge.key.base64 >/etc/munge/munge.key\n"
        "rm /etc/munge/munge.key.base64\n"
        "chown munge:munge /etc/munge/munge.key\nchmod 0400 /etc/munge/munge.key\n"
        "install -d -o slurm -g slurm /var/log/slurm /var/lib/slurm\n"
        "install -d /var/lib/slurm/slurmd\n"
        "systemctl restart munge\n"
    )

"""What a cluster is made of beyond the plain one: Slurm's word by other ways, memory, preemption.

The plain cluster is the lightest. Everything here is off unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from devcluster.errors import ClusterError

SOURCES = ("jobcomp", "squeue", "sacct")
"""The service's sources of Slurm's word on how a job ended."""

AUTHS = ("munge", "slurm")
"""How Slurm and io-autotune know who asks."""

PARTITIONS = ("low-requeue", "low-cancel", "low-suspend")
"""Partitions of a cluster with ``preemption``, by what becomes of their jobs."""


@dataclass(frozen=True)
class Variant:
    """How a cluster differs from the plain one.

    Raises:
        ClusterError: options that do not go together, or a value that makes no sense.

    """

    jobcomp: bool = False
    """Slurm runs the job-completion script, and the collector delivers what it writes."""
    accounting: bool = False
    """slurmdbd with a database of its own; ``deploy/install-deps accounting`` installs both."""
    memory: bool = False
    """Jobs are held to ``--mem`` by cgroups (``cgroups.memory_problem`` tells whether they can be).
    """
    preemption: bool = False
    """``main`` and ``other`` preempt the jobs of ``PARTITIONS``."""
    auth: str = "munge"
    """``munge``, or ``slurm``: auth/slurm, and nobody runs munged (Slurm 24.11 on)."""
    client_ids: bool = False
    """``AuthInfo=use_client_ids``: credentials of auth/slurm tell the user's name, home and groups.
    """
    configless: bool = False
    """slurmd has its configuration from slurmctld, and no file of its own."""
    run_in_job: bool = False
    """``PrologFlags=RunInJob``, and our script as Prolog= and Epilog= (Slurm 24.11 on)."""
    namespace: str | None = None
    """A plugin that gives each job a mount namespace: ``job_container/tmpfs``,
    ``namespace/tmpfs``, ``namespace/linux``."""
    contain_spank: bool = False
    """``SlurmdParameters=contain_spank``: the hooks of a step run in the job's mount namespace
    (Slurm 24.05 on)."""
    expedited_requeue: bool = False
    """Jobs may ask for ``--requeue=expedite`` (Slurm 25.11 on), and there is an Epilog= to fail."""
    clock: bool = False
    """PostgreSQL and io-autotuned believe a clock that can jump (``clock.py``)."""
    burst_buffer: bool = False
    """Slurm's burst_buffer/lua with our script; the program that it runs is the tests'."""
    slurmd_timeout: int = 60
    """Seconds after which a silent node is down (``SlurmdTimeout``)."""
    min_job_age: int = 300
    """Seconds for which Slurm knows a job after its end (``MinJobAge``)."""
    otherwise: tuple[str, ...] = ()
    """What may take the default accelerator's place (``[accelerators] otherwise``)."""
    sources: tuple[str, ...] | None = None
    """The service's ``[slurm] sources``, () for none. By default what the other options bring:
    ``jobcomp``, ``sacct``, or else ``squeue``."""

    def __post_init__(self) -> None:
        """Check that the options go together."""
        if self.auth not in AUTHS:
            raise ClusterError(f"auth = {self.auth!r}: choose one of {', '.join(AUTHS)}")
        for name in ("slurmd_timeout", "min_job_age"):
            if getattr(self, name) < 1:
                raise ClusterError(f"{name} = {getattr(self, name)}: give whole seconds, 1 or more")
        needs = {"jobcomp": self.jobcomp, "sacct": self.accounting}
        for source in self.sources or ():
            if source not in SOURCES:
                raise ClusterError(
                    f"'{source}' is no source of Slurm's word; the sources are {', '.join(SOURCES)}"
                )
            if not needs.get(source, True):
                option = "jobcomp" if source == "jobcomp" else "accounting"
                raise ClusterError(
                    f"the source '{source}' was asked for, and the cluster has nothing to fill it;"
                    f" ask for '{option}' as well"
                )

    def effective_sources(self) -> tuple[str, ...]:
        """Return the service's sources: those asked for, else what the other options bring."""
        if self.sources is not None:
            return self.sources
        brought = [
            source
            for source, there in (("jobcomp", self.jobcomp), ("sacct", self.accounting))
            if there
        ]
        return tuple(brought) or ("squeue",)


def to_json(variant: Variant) -> dict[str, Any]:
    """Return a variant as JSON's types."""
    return asdict(variant)


def from_json(data: Mapping[str, Any]) -> Variant:
    """Return the variant that ``to_json`` made; what it lacks is as in the plain cluster.

    Raises:
        TypeError: it holds something else.

    """
    sources = data.get("sources")
    return Variant(
        **{
            **data,
            "otherwise": tuple(data.get("otherwise", ())),
            "sources": None if sources is None else tuple(sources),
        }
    )

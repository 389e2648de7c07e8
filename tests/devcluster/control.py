"""What the cluster asks of Slurm: the nodes' states, the end of all jobs, leftovers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from devcluster import command, process
from devcluster.errors import ClusterError, PartFailed
from devcluster.parts.slurm import env
from devcluster.paths import Paths

NODE_SECONDS = 60.0
"""How long the nodes may take to register."""
JOB_SECONDS = 30.0
"""How long jobs may take to end after scancel; KillWait is 5 s."""

_WORKING = frozenset({"idle", "mixed", "allocated", "completing"})


def node_states(paths: Paths) -> dict[str, str]:
    """Return each node's state as sinfo(1) has it in its long form, such as ``idle``."""
    argv = ["sinfo", "--noheader", "--Node", "--partition=main", "--format=%N %T"]
    lines = command.run(argv, env=env(paths)).stdout.splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


def wait_for_nodes(paths: Paths, check: Callable[[], None]) -> list[str]:
    """Wait until every node can run jobs; return the names of drained ones that were resumed.

    ``check`` raises PartFailed when a part has died and it is no use to wait.

    Raises:
        PartFailed: a part died, or a node did not get there in time.

    """
    resumed: list[str] = []

    def probe() -> str | None:
        check()
        states = node_states(paths)
        for node, state in states.items():
            if state.startswith("drain") and node not in resumed:
                argv = ["scontrol", "update", f"NodeName={node}", "State=RESUME"]
                command.run(argv, env=env(paths))
                resumed.append(node)
        bad = [f"{node} is {state}" for node, state in states.items() if state not in _WORKING]
        return ", ".join(bad) or (None if states else "there are no nodes")

    problem = process.wait_until(probe, NODE_SECONDS)
    if problem is not None:
        raise PartFailed("a node", problem, paths.log_of("slurmctld"))
    return resumed


def cancel_jobs(paths: Paths) -> int:
    """Cancel all jobs, wait until they are gone, and return how many there were.

    Raises:
        ClusterError: slurmctld does not answer, or a job did not end in time.

    """
    first = _jobs(paths)
    if not first:
        return 0
    command.run(["scancel", *first], env=env(paths), check=False)

    def probe() -> str | None:
        left = _jobs(paths)
        return f"jobs {' '.join(left)} are still there" if left else None

    problem = process.wait_until(probe, JOB_SECONDS)
    if problem is not None:
        raise ClusterError(f"cancelling all jobs {problem}")
    return len(first)


def _jobs(paths: Paths) -> list[str]:
    argv = ["squeue", "--noheader", "--states=all", "--format=%A %T"]
    ended = {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "TIMEOUT",
    }
    lines = command.run(argv, env=env(paths)).stdout.splitlines()
    return sorted({line.split()[0] for line in lines if line.split()[1] not in ended}, key=int)


def end_leftovers(paths: Paths) -> int:
    """Kill the slurmstepds that outlived their slurmd, with all below them; return how many.

    Only this cluster's: a slurmstepd is known as ours by its environment or its open files (its
    title is written over its environment, so that either may be all there is).
    """
    found = [pid for pid in process.all_pids() if is_our_stepd(paths, pid)]
    doomed = [process.identify(pid) for pid in (*found, *process.descendants(found))]
    for identity in doomed:
        if identity is not None:
            process.kill(identity)
    return len(found)


def is_our_stepd(paths: Paths, pid: int) -> bool:
    """Return whether a process is a slurmstepd of this cluster."""
    entry = Path("/proc") / str(pid)
    ours = f"SLURM_CONF={paths.slurm_conf}".encode()
    try:
        # Debian's is called slurmstepd-wlm.
        if not (entry / "exe").readlink().name.startswith("slurmstepd"):
            return False
        if ours in (entry / "environ").read_bytes().split(b"\0"):
            return True
        links = [link.readlink() for link in (entry / "fd").iterdir()]
    except OSError:
        return False
    return any(link.is_relative_to(paths.root) for link in links)

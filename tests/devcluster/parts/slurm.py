"""slurmctld and the slurmds, all on this host, and what to ask them."""

from __future__ import annotations

import os

from devcluster import accounts, command
from devcluster.parts.part import Part
from devcluster.paths import Paths
from devcluster.ports import HOST
from devcluster.record import Record
from devcluster.users import SLURM_USER


def env(paths: Paths) -> dict[str, str]:
    """Return the environment that points Slurm's programs to this cluster."""
    return {**command.base_env(), "SLURM_CONF": str(paths.slurm_conf)}


def parts(paths: Paths, record: Record) -> list[Part]:
    """Return slurmctld and one slurmd per node."""
    nodes = zip(record.node_names(), record.ports.slurmd, strict=True)
    return [_controller(paths, record), *(_node(paths, record, node, port) for node, port in nodes)]


def _controller(paths: Paths, record: Record) -> Part:
    account = accounts.find(SLURM_USER)

    def prepare() -> None:
        log = paths.log_of("slurmctld")
        log.touch()
        os.chown(log, account.uid, account.gid)

    def probe() -> str | None:
        done = command.run(["scontrol", "ping"], env=env(paths), check=False)
        return None if done.returncode == 0 else (done.stdout + done.stderr).strip()

    return Part(
        name="slurmctld",
        argv=[command.find("slurmctld"), "-D", "-f", str(paths.slurm_conf)],
        env=env(paths),
        log=paths.log_of("slurmctld"),
        output=paths.output_of("slurmctld"),
        account=account,
        inputs=[paths.slurm_conf],
        port=record.ports.slurmctld,
        prepare=prepare,
        probe=probe,
    )


def _configuration(paths: Paths, record: Record) -> list[str]:
    """Return where slurmd has its configuration from."""
    if record.variant.configless:
        return [f"--conf-server={HOST}:{record.ports.slurmctld}"]
    return ["-f", str(paths.slurm_conf)]


def _node(paths: Paths, record: Record, node: str, port: int) -> Part:
    # It learns at its start which hooks the SPANK plugins have. In the foreground it says all on
    # stderr as well; its steps write to its log only.
    return Part(
        name=f"slurmd-{node}",
        argv=[command.find("slurmd"), "-D", "-N", node, *_configuration(paths, record)],
        env=command.base_env() if record.variant.configless else env(paths),
        log=paths.log_of(f"slurmd-{node}"),
        output=paths.output_of(f"slurmd-{node}"),
        inputs=[paths.slurm_conf, paths.plugstack_conf, paths.cgroup_conf, paths.plugin],
        port=port,
    )

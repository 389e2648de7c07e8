"""The collector: delivers what Slurm's job-completion script has written."""

from __future__ import annotations

from devcluster import accounts, command
from devcluster.parts.part import Part
from devcluster.paths import Paths
from devcluster.record import Record
from devcluster.users import COLLECTOR_USER

EVERY_SECONDS = 1
"""How often the spool is read."""


def part(paths: Paths, record: Record) -> Part:
    """Return the part; a user of its own runs it. That it runs is enough: nobody asks it."""
    return Part(
        name="collector",
        argv=[
            str(paths.bin / "io-autotune-collector"),
            "--every",
            str(EVERY_SECONDS),
            "--cluster",
            record.name,
            "--config",
            str(paths.client_toml),
            "--spool-dir",
            str(paths.jobcomp_spool),
            "--state-dir",
            str(paths.collector_spool),
        ],
        env=command.base_env(),
        log=paths.log_of("collector"),
        output=paths.log_of("collector"),
        account=accounts.find(COLLECTOR_USER),
        inputs=[paths.client_toml],
    )

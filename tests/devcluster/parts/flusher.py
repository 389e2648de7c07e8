"""The flusher: delivers the reports that the node helper spooled while the service was away."""

from __future__ import annotations

from devcluster import command
from devcluster.parts.part import Part
from devcluster.paths import Paths

EVERY_SECONDS = 1
"""How often the spool is tried."""


def part(paths: Paths) -> Part:
    """Return the part; root runs it. It has nothing to wait for: that it runs is enough."""
    return Part(
        name="flusher",
        argv=[
            str(paths.bin / "io-autotune-node"),
            "flush",
            "--every",
            str(EVERY_SECONDS),
            "--config",
            str(paths.client_toml),
            "--spool-dir",
            str(paths.plugin_spool),
            "--run-dir",
            str(paths.plugin_run),
        ],
        env=command.base_env(),
        log=paths.log_of("flusher"),
        output=paths.log_of("flusher"),
        inputs=[paths.client_toml],
    )

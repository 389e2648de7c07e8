"""The page cache's settings, as the tests of settings have them changed and see them put back.

The kernel is this host's own. Both nodes of the cluster share it, so jobs here have one node, and
tests on clusters that run side by side take turns.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import Site, await_true

VM = Path("/proc/sys/vm")
LOCK = Path("/run/lock/io-autotune-test-sysctl")
"""Held by the test that has the kernel's settings changed."""
NAMES = (
    "dirty_bytes",
    "dirty_ratio",
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
)
PIN = {"dirty_bytes": "4294967296", "dirty_expire_centisecs": "6000"}
SHOW = f"cd {VM}; cat {' '.join(NAMES)}"
"""What a job has to run to print them."""

NODE_TOML = """
[exclusive]
cpus = 8
partitions = ["main"]

[[settings.allow]]
kind = "sysctl"
name = "vm.dirty_bytes"
min = 1073741824
max = 8589934592

[[settings.allow]]
kind = "sysctl"
name = "vm.dirty_expire_centisecs"
min = 100
max = 12000
"""


def values() -> list[str]:
    """Return what the kernel has now."""
    return [(VM / name).read_text(encoding="utf-8").strip() for name in NAMES]


def pinned_values(before: list[str]) -> list[str]:
    """Return what is in force under ``PIN``: the kernel zeroes a ratio when its bytes are set."""
    return [PIN["dirty_bytes"], "0", *before[2:4], PIN["dirty_expire_centisecs"], before[5]]


@contextmanager
def _held() -> Iterator[None]:
    """Hold this kernel's settings: one test of this host at a time changes them."""
    with LOCK.open("a", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


@contextmanager
def allowed(site: Site) -> Iterator[list[str]]:
    """Let the nodes change settings; in the end all are as they were, and nothing is saved."""
    with _held(), _allowed(site) as found:
        yield found


@contextmanager
def _allowed(site: Site) -> Iterator[list[str]]:
    found = values()
    try:
        with site.nodes_configured(NODE_TOML):
            yield found
            await_true("all settings to be as they were", lambda: values() == found)
    finally:
        for name, value in zip(NAMES, found, strict=True):
            if (VM / name).read_text(encoding="utf-8").strip() != value and value != "0":
                (VM / name).write_text(value, encoding="utf-8")

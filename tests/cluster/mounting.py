"""rclone-vfs on the private cluster: a command of the site's that runs as the job's user."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import Site
from outages import PATIENCE_MS, patient_hooks

RCLONE = "accelerator=rclone-vfs"
OTHERWISE = "/the/storage/itself"
"""What a job finds in RCLONE_VFS_DIR if its mount does not start."""
NODE_TOML = """
[exclusive]
cpus = 8
"""
_RCLONE_MS = PATIENCE_MS // 3


@contextmanager
def fuse_for_users() -> Iterator[None]:
    """Let users open /dev/fuse, as udev does, or skip the test where there is none."""
    device = Path("/dev/fuse")
    for program in ("rclone", "fusermount3"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: deploy/install-deps test")
    if not device.exists():
        pytest.skip("there is no /dev/fuse on this host")
    mode = stat.S_IMODE(device.stat().st_mode)
    device.chmod(0o666)
    try:
        yield
    finally:
        device.chmod(mode)


@contextmanager
def rclone(site: Site, more: str = "") -> Iterator[tuple[Path, Path]]:
    """Let jobs have rclone-vfs; yield what it is in front of, and where jobs' directories are.

    ``more`` is put into node.toml.
    """
    slow, mounts = (site.paths.scratch / name for name in ("slow", "mounts"))
    for path in (slow, mounts):
        path.mkdir()
        path.chmod(0o755)
    script = site.paths.bin / "rclone-vfs"
    argv = [f'["{script}", "{verb}", ":local:{slow}"]' for verb in ("start", "stop")]
    # rclone is a large program: that it starts is tested, not how fast it does on this host.
    command = (
        f'[[commands]]\nname = "rclone-vfs"\nstart = {argv[0]}\nstop = {argv[1]}\n'
        f'start_ms = {_RCLONE_MS}\nstop_ms = {_RCLONE_MS}\ndirectory = "{mounts}"\n'
        'default_runs = { of = ["rclone-vfs"], '
        f'otherwise = {{ RCLONE_VFS_DIR = "{OTHERWISE}" }} }}\n'
    )
    try:
        with site.nodes_configured(NODE_TOML + more + command), patient_hooks(site):
            yield slow, mounts
        assert str(mounts) not in Path("/proc/self/mounts").read_text(encoding="utf-8")
    finally:
        shutil.rmtree(slow)
        # Never through a mount that is still there.
        mounts.rmdir()

"""A slow file system in place of a parallel one: a throttled loop device with an image.

The throttle is set at the root of the blkio controller (cgroup v1), because page cache writeback
belongs to no job's group there.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

BLKIO = Path("/sys/fs/cgroup/blkio")
SIZE = 512 * 2**20
"""Bytes of the image."""
QUEUE = {
    "scheduler": "none",
    "nr_requests": "128",
    "max_sectors_kb": "1280",
    "read_ahead_kb": "128",
}
"""What the device is given: a loop device keeps what an earlier user of it has set. Read-ahead is
what most devices have of their own accord; loop devices have more."""
ALLOW_QUEUE = (
    '[settings]\nblock_devices = ["{device}"]\n'
    + "".join(
        f'[[settings.allow]]\nkind = "block"\nname = "{name}"\nmin = 0\nmax = 8192\n'
        for name in ("read_ahead_kb", "nr_requests", "max_sectors_kb")
    )
    + '[[settings.allow]]\nkind = "block"\nname = "scheduler"\n'
    'values = ["none", "mq-deadline", "kyber", "bfq"]\n'
)
"""What a node.toml says so that the queue of ``{device}`` may be changed."""


@dataclass(frozen=True)
class Throttle:
    """The device's limits; 0 is unlimited."""

    write_bps: int = 0
    """Bytes that are written in a second."""
    read_iops: int = 0
    """Requests that are read in a second."""
    read_bps: int = 0
    write_iops: int = 0

    def files(self) -> dict[str, int]:
        """Return the controller's files and their values."""
        return {f"{name}_device": rate for name, rate in asdict(self).items()}


@dataclass(frozen=True)
class Storage:
    """The file system, mounted."""

    mount: Path
    device: str
    """Its name in /sys/block."""


def problem() -> str | None:
    """Return why this host cannot have one; None if it can."""
    if not (BLKIO / "blkio.throttle.write_bps_device").exists():
        return f"{BLKIO} has no throttle: the blkio controller of cgroup v1 is needed"
    if not Path("/dev/loop-control").exists():
        return "there is no /dev/loop-control: loop devices are needed"
    return None


@contextmanager
def throttled(directory: Path, throttle: Throttle, size: int = SIZE) -> Iterator[Storage]:
    """Make a file system that users can write to; remove it at the end."""
    with mounted(directory, size) as storage:
        number = Path(f"/sys/block/{storage.device}/dev").read_text(encoding="ascii").strip()
        try:
            _throttle(number, throttle)
            yield storage
        finally:
            _throttle(number, Throttle())


@contextmanager
def mounted(directory: Path, size: int = SIZE, *options: str) -> Iterator[Storage]:
    """Make a file system that users can write to on a device of its own; remove it at the end."""
    mount = directory / "mount"
    mount.mkdir(parents=True)
    try:
        with loop_device(directory, size, *options) as device:
            _run("mkfs.ext4", "-q", f"/dev/{device}")
            _run("mount", f"/dev/{device}", str(mount))
            try:
                mount.chmod(0o777)
                yield Storage(mount, device)
            finally:
                _run("umount", str(mount))
    finally:
        mount.rmdir()


@contextmanager
def loop_device(directory: Path, size: int = SIZE, *options: str) -> Iterator[str]:
    """Make a block device with its own queue on an image; yield its name in /sys/block.

    Options are those of losetup.
    """
    image = directory / "image"
    with image.open("wb") as file:
        file.truncate(size)
    loop = _run("losetup", *options, "--find", "--show", str(image)).strip()
    device = Path(loop).name
    try:
        _prepare(device)
        yield device
    finally:
        _prepare(device)
        _run("losetup", "--detach", loop)
        image.unlink()


def _prepare(device: str) -> None:
    for name, value in QUEUE.items():
        Path(f"/sys/block/{device}/queue/{name}").write_text(value, encoding="ascii")


def _throttle(number: str, throttle: Throttle) -> None:
    for name, rate in throttle.files().items():
        (BLKIO / f"blkio.throttle.{name}").write_text(f"{number} {rate}", encoding="ascii")


def _run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

"""A slow file system to work on: an image on a loop device whose rate is throttled.

It plays the parallel file system. The throttle is that of the blkio controller's root (cgroup v1),
because what the page cache writes out is nobody's in particular there.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BLKIO = Path("/sys/fs/cgroup/blkio")
SIZE = 512 * 2**20
"""Bytes of the image."""
READ_AHEAD_KB = 128
"""What most block devices have of their own accord; loop devices have more."""


@dataclass(frozen=True)
class Throttle:
    """How slow the device is; 0 is as fast as it goes."""

    write_bps: int = 0
    """Bytes that are written in a second."""
    read_iops: int = 0
    """Requests that are read in a second."""

    def files(self) -> dict[str, int]:
        """Return the files of the controller, and what they get."""
        return {"write_bps_device": self.write_bps, "read_iops_device": self.read_iops}


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
def throttled(directory: Path, throttle: Throttle) -> Iterator[Storage]:
    """Make the file system, for a user to write in; take it away in the end."""
    image, mount = directory / "image", directory / "mount"
    mount.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(SIZE)
    _run("mkfs.ext4", "-q", "-F", str(image))
    loop = _run("losetup", "--find", "--show", str(image)).strip()
    device = Path(loop).name
    number = Path(f"/sys/block/{device}/dev").read_text(encoding="ascii").strip()
    try:
        read_ahead = Path(f"/sys/block/{device}/queue/read_ahead_kb")
        read_ahead.write_text(str(READ_AHEAD_KB), encoding="ascii")
        _run("mount", loop, str(mount))
        try:
            mount.chmod(0o777)
            _throttle(number, throttle)
            yield Storage(mount, device)
        finally:
            _throttle(number, Throttle())
            _run("umount", str(mount))
    finally:
        _run("losetup", "--detach", loop)
        image.unlink()
        mount.rmdir()


def _throttle(number: str, throttle: Throttle) -> None:
    for name, rate in throttle.files().items():
        (BLKIO / f"blkio.throttle.{name}").write_text(f"{number} {rate}", encoding="ascii")


def _run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

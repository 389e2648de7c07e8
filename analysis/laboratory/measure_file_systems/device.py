"""A loop device with a limit, made, mounted and removed whatever happens; root's, on cgroup v1.

The file behind it lies in memory, so its limit is the kernel's throttle alone. That is set for the
root of the hierarchy blkio, where write-back of cached data is charged.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from measure.plan import Value
from measure.side_by_side import RunFailed

from measure_file_systems.workload import MIB, Workload, prepare, timed

_MEMORY = Path("/dev/shm")
_PREFIX = "measure-file-systems-"
_BLKIO = Path("/sys/fs/cgroup/blkio")


def needs() -> str | None:
    """What this machine lacks, in words; None if it has all."""
    if os.geteuid() != 0:
        return "it needs root: loop devices, mkfs and mount"
    if not (_BLKIO / "blkio.throttle.write_bps_device").exists():
        return f"it needs the throttle of cgroup v1 in {_BLKIO}"
    if ":blkio:/\n" not in Path("/proc/self/cgroup").read_text("utf-8"):
        return "it must run in the root of the hierarchy blkio, whose throttle it sets"
    return None


def clean() -> None:
    """Detaches loop devices of processes that were killed, and removes their files."""
    for folder in _MEMORY.glob(f"{_PREFIX}*"):
        if Path("/proc", folder.name.removeprefix(_PREFIX).split("-")[0]).exists():
            continue
        mount, image = folder / "mount", folder / "image"
        if mount.is_mount():
            _run("umount", str(mount))
        listed = _run("losetup", "--noheadings", "--output", "NAME", "--associated", str(image))
        for device in listed.split():
            _limit(Path(device), 0, 0)
            _run("losetup", "--detach", device)
        image.unlink(missing_ok=True)
        if mount.exists():
            mount.rmdir()
        folder.rmdir()


def run(work: Workload, named: Mapping[str, Value]) -> float:
    """The seconds of the workload on a new file system; RunFailed where mkfs or mount refuses."""
    with tempfile.TemporaryDirectory(dir=_MEMORY, prefix=f"{_PREFIX}{os.getpid()}-") as folder:
        image, mount = Path(folder) / "image", Path(folder) / "mount"
        mount.mkdir()
        with image.open("wb") as file:
            file.truncate(work.device_mib * MIB)
        with _attached(image) as device:
            _run(*make(work, named), str(device))
            with _mounted(device, mount, named):
                prepare(work, mount)
            # Mounted again: nothing of it is in memory.
            with _limited(device, work), _mounted(device, mount, named):
                return timed(work, mount)


def make(work: Workload, named: Mapping[str, Value]) -> list[str]:
    """The command that makes the file system, but for the device."""
    system, block, inode, groups = (
        named[name] for name in ("file_system", "block_size", "inode_size", "groups")
    )
    if system == "btrfs":
        return ["mkfs.btrfs", "--quiet", "--force", "--nodiscard", "--sectorsize", str(block)]
    assert isinstance(block, int)
    assert isinstance(groups, int)
    if system == "xfs":
        sizes = ["-b", f"size={block}", "-i", f"size={inode}", "-d", f"agcount={groups}"]
        return ["mkfs.xfs", "-q", "-f", "-K", *sizes]
    each = work.device_mib * MIB // block // groups
    # Nothing is left to be initialised while the clock runs.
    now = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    sizes = ["-b", str(block), "-I", str(inode), "-g", str(each)]
    return [f"mkfs.{system}", "-q", "-F", *sizes, "-N", "2048", "-E", now]


def options(named: Mapping[str, Value]) -> str:
    """The mount's options."""
    chosen = [str(named["atime"])]
    if named["file_system"] in {"ext3", "ext4"}:
        chosen.append(f"data={named['journal']}")
    if named["special"] == "compress":
        chosen.append("compress=zlib")
    elif named["special"] != "none":
        chosen.append(str(named["special"]))
    return ",".join(chosen)


@contextlib.contextmanager
def _attached(image: Path) -> Iterator[Path]:
    device = _run("losetup", "--find", "--show", str(image)).strip()
    try:
        yield Path(device)
    finally:
        _run("losetup", "--detach", device)


@contextlib.contextmanager
def _mounted(device: Path, mount: Path, named: Mapping[str, Value]) -> Iterator[None]:
    system = str(named["file_system"])
    _run("mount", "-t", system, "-o", options(named), str(device), str(mount))
    try:
        yield
    finally:
        _run("umount", str(mount))


@contextlib.contextmanager
def _limited(device: Path, work: Workload) -> Iterator[None]:
    _limit(device, work.megabytes_a_second * 1_000_000, work.requests_a_second)
    try:
        yield
    finally:
        _limit(device, 0, 0)


def _limit(device: Path, octets: int, requests: int) -> None:
    """Limits reads and writes apart; 0 is no limit."""
    number = Path("/sys/block", device.name, "dev").read_text("utf-8").strip()
    for way in ("read", "write"):
        for unit, limit in (("bps", octets), ("iops", requests)):
            file = _BLKIO / f"blkio.throttle.{way}_{unit}_device"
            file.write_text(f"{number} {limit}", "utf-8")


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = (done.stderr.strip() or f"status {done.returncode}").splitlines()[0]
        raise RunFailed(f"{' '.join(command)}: {words}")
    return done.stdout

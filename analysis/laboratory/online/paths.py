"""The paths that are measured: a loop device's queue, and a FUSE mount."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gains import storage


@dataclass(frozen=True)
class Lever:
    """A kernel setting that an agent moves."""

    file: Path
    least: int
    most: int
    default: int
    statics: tuple[int, ...]
    """What it is set to for the best static."""


@dataclass(frozen=True)
class Work:
    """A workload in the manner of the paper's table 1."""

    name: str
    fio: tuple[str, ...]


@dataclass(frozen=True)
class IoPath:
    """Where fio works, and what moves there."""

    title: str
    text: str
    mount: Path
    levers: tuple[Lever, ...]
    sources: list[dict[str, str]]
    """The agent's statistics: paths and formats."""
    fio: tuple[str, ...]
    works: tuple[Work, ...]

    @property
    def default(self) -> tuple[int, ...]:
        """What the path has of its own accord."""
        return tuple(lever.default for lever in self.levers)


FIVE = "--numjobs=5"


@contextmanager
def loop_device(root: Path) -> Iterator[IoPath]:
    """Make an ext4 file system on a loop device."""
    with storage.mounted(root / "loop") as disk:
        block = Path("/sys/block") / disk.device
        yield IoPath(
            "A loop device",
            "ext4; direct, 16 requests in flight, works of the paper's table 1. Levers:"
            " `max_sectors_kb`, `nr_requests`.",
            disk.mount,
            (
                Lever(block / "queue/max_sectors_kb", 16, 1280, 1280, (16, 128, 1280)),
                Lever(block / "queue/nr_requests", 4, 128, 128, (8, 128)),
            ),
            [
                {"path": str(block / "stat"), "format": "block_stat"},
                {"path": "/proc/vmstat", "format": "vmstat"},
                {"path": "/proc/meminfo", "format": "meminfo"},
            ],
            ("--size=64m", "--ioengine=libaio", "--iodepth=16", "--direct=1"),
            (
                Work("random write, 8 KiB", ("--rw=randwrite", "--bs=8k")),
                Work("random write, 1 MiB", ("--rw=randwrite", "--bs=1m")),
                Work(
                    "five-stream random write, 1 MiB", ("--rw=randwrite", "--bs=1m", "--numjobs=5")
                ),
                Work("sequential write, 1 MiB", ("--rw=write", "--bs=1m")),
                Work("sequential read-write, 1 MiB", ("--rw=rw", "--bs=1m")),
                Work("whole file read-write, 16 MiB", ("--rw=rw", "--bs=16m")),
            ),
        )


FAR = ("--rate=200", "--latency-ms=8", "--streams=16", "--penalty=0.05", "--neighbour=0.1")
"""The slow side: its rate in MB/s, and what each request waits."""
BUFFER = (
    *FAR,
    "--request-ms=0.5",
    "--workers=32",
    "--destagers=16",
    "--cache-mib=16",
    "--page-cache",
)
FILES, FILE = 32, 32 * 2**20
"""How many a stream reads in turn, and the bytes of each: holes. An open file keeps the read-ahead
that it was opened with."""
STREAMS = 5
IN_TURN = (f"--nrfiles={FILES}", "--openfiles=1", "--file_service_type=sequential")
WHOLE = f"--filesize={FILE}"
OPEN, OPEN_FILE = "open", 2 * 2**30
"""One that stays open, and its bytes."""
ONE = (f"--filename={OPEN}", f"--size={OPEN_FILE}")


@contextmanager
def burst_buffer(root: Path, program: Path) -> Iterator[IoPath]:
    """Mount the burst-buffer instrument in front of a slow directory."""
    own = root / "buffer"
    shutil.rmtree(own, ignore_errors=True)
    slow, mount, control, told = (own / name for name in ("slow", "mount", "control", "statistics"))
    for directory in (slow, mount, control):
        directory.mkdir(parents=True)
    names = [f"work.{stream}.{number}" for stream in range(STREAMS) for number in range(FILES)]
    for name, size in [*((name, FILE) for name in names), (OPEN, OPEN_FILE)]:
        with (slow / name).open("wb") as file:
            file.truncate(size)
    argv = [
        str(program),
        *BUFFER,
        f"--slow={slow}",
        f"--mount={mount}",
        f"--statistics={told}",
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as daemon:
        try:
            assert daemon.stdout is not None
            if daemon.stdout.readline() != "ready\n":
                raise RuntimeError("the burst buffer has not come up")
            minor = mount.stat().st_dev & 0xFF
            read_ahead = Path(f"/sys/class/bdi/0:{minor}/read_ahead_kb")
            # Where systemd mounts it as well, but not every host has systemd.
            subprocess.run(["mount", "-t", "fusectl", "none", str(control)], check=True)
            background = control / str(minor) / "max_background"
            yield IoPath(
                "A FUSE mount",
                "The burst-buffer instrument (tests/burst-buffer) before a slow side of 200 MB/s"
                " whose requests wait 8 ms, with a neighbour; through the page cache. Levers:"
                " `read_ahead_kb`, `max_background`.",
                mount,
                (
                    Lever(read_ahead, 64, 4096, 128, (128, 1024, 4096)),
                    Lever(background, 4, 64, 12, (12, 64)),
                ),
                [{"path": str(told), "format": "named"}],
                ("--ioengine=psync", "--direct=0", "--invalidate=1"),
                (
                    Work("files in turn, 1 MiB", ("--rw=read", "--bs=1m", *IN_TURN, WHOLE)),
                    Work("five streams of files", ("--rw=read", "--bs=1m", *IN_TURN, WHOLE, FIVE)),
                    Work("read-write of files, 1 MiB", ("--rw=rw", "--bs=1m", *IN_TURN, WHOLE)),
                    Work("one open file, 1 MiB", ("--rw=read", "--bs=1m", *ONE)),
                    Work("random read, 8 KiB", ("--rw=randread", "--bs=8k", *ONE)),
                ),
            )
        finally:
            subprocess.run(["umount", str(control)], check=False)
            daemon.terminate()
            daemon.wait()

"""The paths that are measured: loop devices on one throttled disk, and FUSE mounts.

Each has five clients, which share what is slow. A client has levers of its own.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from gains import storage

CLIENTS = 5


@dataclass(frozen=True)
class Lever:
    """A kernel setting that an agent moves."""

    name: str
    least: int
    most: int
    default: int
    statics: tuple[int, ...]
    """What it is set to for the best static."""


@dataclass(frozen=True)
class Work:
    """A workload in the manner of the paper's tables."""

    name: str
    fio: tuple[str, ...]


@dataclass(frozen=True)
class Client:
    """Where fio works, and what moves there."""

    directory: Path
    files: tuple[Path, ...]
    """Those of the levers."""
    sources: list[dict[str, str]]
    """The agent's statistics: paths and formats."""


@dataclass(frozen=True)
class IoPath:
    """Clients, and what they do."""

    title: str
    text: str
    levers: tuple[Lever, ...]
    clients: tuple[Client, ...]
    fio: tuple[str, ...]
    works: tuple[Work, ...]
    """Of one client: each alone, and one after the other."""
    together: tuple[Work, ...]
    """Of all clients at once, a work each: the paper's table 2."""

    @property
    def default(self) -> tuple[int, ...]:
        """What the path has of its own accord."""
        return tuple(lever.default for lever in self.levers)


FIVE = "--numjobs=5"

MB = 10**6
DISK = storage.Throttle(write_bps=200 * MB, read_bps=200 * MB, write_iops=800, read_iops=800)
DISK_SIZE = 4 * 2**30


@contextmanager
def loop_devices(root: Path) -> Iterator[IoPath]:
    """Make ext4 file systems on loop devices whose images lie on one throttled disk."""
    with ExitStack() as stack:
        disk = stack.enter_context(storage.throttled(root / "disk", DISK, DISK_SIZE))
        clients = []
        for number in range(CLIENTS):
            # Else the host's page cache would take in what the disk cannot.
            made = storage.mounted(disk.mount / str(number), storage.SIZE, "--direct-io=on")
            client = stack.enter_context(made)
            block = Path("/sys/block") / client.device
            clients.append(
                Client(
                    client.mount,
                    (block / "queue/max_sectors_kb", block / "queue/nr_requests"),
                    [
                        {"path": str(block / "stat"), "format": "block_stat"},
                        {"path": "/proc/vmstat", "format": "vmstat"},
                        {"path": "/proc/meminfo", "format": "meminfo"},
                    ],
                )
            )
        random_8k = Work("random write, 8 KiB", ("--rw=randwrite", "--bs=8k"))
        random_1m = Work("random write, 1 MiB", ("--rw=randwrite", "--bs=1m"))
        streams = Work("five-stream random write, 1 MiB", ("--rw=randwrite", "--bs=1m", FIVE))
        sequential = Work("sequential read-write, 1 MiB", ("--rw=rw", "--bs=1m"))
        whole = Work("whole file read-write, 16 MiB", ("--rw=rw", "--bs=16m"))
        yield IoPath(
            "Loop devices",
            "ext4 on loop devices, whose images lie on one disk that the kernel throttles to"
            " 200 MB/s and 800 requests a second, each way; direct, 16 requests in flight."
            " Levers: `max_sectors_kb`, `nr_requests`.",
            (
                Lever("max_sectors_kb", 16, 1280, 1280, (16, 128, 1280)),
                Lever("nr_requests", 4, 128, 128, (8, 128)),
            ),
            tuple(clients),
            ("--size=64m", "--ioengine=libaio", "--iodepth=16", "--direct=1"),
            (
                random_8k,
                random_1m,
                streams,
                Work("sequential write, 1 MiB", ("--rw=write", "--bs=1m")),
                sequential,
                whole,
            ),
            (
                streams,
                random_1m,
                Work("random read-write, 1 MiB", ("--rw=randrw", "--bs=1m")),
                sequential,
                whole,
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
FILES, FILE = 128, 8 * 2**20
"""How many a stream reads in turn, and the bytes of each: holes. An open file keeps the read-ahead
that it was opened with: these stay open for a turn or two of the agent's."""
STREAMS = 5
WHOLE = (
    f"--nrfiles={FILES}",
    "--openfiles=1",
    "--file_service_type=sequential",
    f"--filesize={FILE}",
)
OPEN, OPEN_FILE = "open", 2 * 2**30
"""One that stays open, and its bytes."""
ONE = (f"--filename={OPEN}", f"--size={OPEN_FILE}")


@contextmanager
def burst_buffer(root: Path, program: Path) -> Iterator[IoPath]:
    """Mount the burst-buffer instrument in front of a slow directory, once for each client."""
    own = root / "buffer"
    shutil.rmtree(own, ignore_errors=True)
    slow, control = own / "slow", own / "control"
    control.mkdir(parents=True)
    mounts = [own / "mounts" / str(number) for number in range(CLIENTS)]
    told = [own / f"statistics.{number}" for number in range(CLIENTS)]
    for mount in mounts:
        mount.mkdir(parents=True)
        _lay_out(slow / mount.name)
    argv = [str(program), *BUFFER, f"--slow={slow}"]
    for mount, statistics in zip(mounts, told, strict=True):
        argv += [f"--mount={mount}", f"--statistics={statistics}"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as daemon:
        try:
            assert daemon.stdout is not None
            if daemon.stdout.readline() != "ready\n":
                raise RuntimeError("the burst buffer has not come up")
            # Where systemd mounts it as well, but not every host has systemd.
            subprocess.run(["mount", "-t", "fusectl", "none", str(control)], check=True)
            clients = []
            for mount, statistics in zip(mounts, told, strict=True):
                minor = mount.stat().st_dev & 0xFF
                read_ahead = Path(f"/sys/class/bdi/0:{minor}/read_ahead_kb")
                background = control / str(minor) / "max_background"
                sources = [{"path": str(statistics), "format": "named"}]
                clients.append(Client(mount / mount.name, (read_ahead, background), sources))
            sequential = Work("read-write of files, 1 MiB", ("--rw=rw", "--bs=1m", *WHOLE))
            whole = Work("whole file read-write, 8 MiB", ("--rw=rw", f"--bs={FILE}", *WHOLE))
            yield IoPath(
                "FUSE mounts",
                "The burst-buffer instrument (tests/burst-buffer) before a slow side of 200 MB/s"
                " whose requests wait 8 ms, with a neighbour; through the page cache. Files of"
                " 8 MiB but for the open one. Levers: `read_ahead_kb`, `max_background`.",
                (
                    Lever("read_ahead_kb", 64, 4096, 128, (128, 1024, 4096)),
                    Lever("max_background", 4, 64, 12, (12, 64)),
                ),
                tuple(clients),
                ("--ioengine=psync", "--direct=0", "--invalidate=1"),
                (
                    Work("files in turn, 1 MiB", ("--rw=read", "--bs=1m", *WHOLE)),
                    Work("five streams of files", ("--rw=read", "--bs=1m", *WHOLE, FIVE)),
                    sequential,
                    whole,
                    Work("one open file, 1 MiB", ("--rw=read", "--bs=1m", *ONE)),
                    Work("random read, 8 KiB", ("--rw=randread", "--bs=8k", *ONE)),
                ),
                (
                    Work(
                        "five-stream random write, 1 MiB",
                        ("--rw=randwrite", "--bs=1m", *WHOLE, FIVE),
                    ),
                    Work("random write, 1 MiB", ("--rw=randwrite", "--bs=1m", *WHOLE)),
                    Work("random read-write, 1 MiB", ("--rw=randrw", "--bs=1m", *WHOLE)),
                    sequential,
                    whole,
                ),
            )
        finally:
            subprocess.run(["umount", str(control)], check=False)
            daemon.terminate()
            daemon.wait()


def _lay_out(directory: Path) -> None:
    directory.mkdir(parents=True)
    names = [f"work.{stream}.{number}" for stream in range(STREAMS) for number in range(FILES)]
    for name, size in [*((name, FILE) for name in names), (OPEN, OPEN_FILE)]:
        with (directory / name).open("wb") as file:
            file.truncate(size)

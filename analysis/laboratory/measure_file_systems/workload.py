"""What is done to a mounted file system, in the manner of Filebench's file and mail servers."""

import ctypes
import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20
KIB = 2**10


@dataclass(frozen=True)
class Workload:
    """The files, what each thread does to them, and the device."""

    device_mib: int
    megabytes_a_second: int
    """The device's limit, reads and writes apart."""
    requests_a_second: int
    folders: int
    files: int
    """Made before the clock starts, each of 4 to 32 KiB."""
    threads: int
    rounds: int
    created_kib: int
    appended_kib: int
    whole_kib: int
    """Written by each thread at its end, as a file server does: without a sync of its own."""

    def __str__(self) -> str:
        """Describes the workload."""
        return (
            f"{self.threads} threads on {self.files} files of 4 to 32 KiB in {self.folders} folders"
            f" that are not in memory, {self.rounds} rounds each: read a file whole, create one of"
            f" {self.created_kib} KiB and sync it, append {self.appended_kib} KiB to another and"
            f" sync it, delete one; then write a file of {self.whole_kib} KiB; at the end all is"
            f" synced. Half of the data can be compressed. A device of {self.device_mib} MiB:"
            f" {self.megabytes_a_second} MB/s and {self.requests_a_second} requests a second"
        )


WORKLOAD = Workload(
    device_mib=512,
    megabytes_a_second=20,
    requests_a_second=400,
    folders=8,
    files=96,
    threads=4,
    rounds=6,
    created_kib=24,
    appended_kib=8,
    whole_kib=512,
)


def prepare(work: Workload, mount: Path) -> None:
    """Makes the files."""
    draw = random.Random(11)
    for folder in range(work.folders):
        (mount / str(folder)).mkdir()
    for number in range(work.files):
        _write(_name(work, mount, number), _data(draw.randint(4, 32) * KIB), sync=False)


def timed(work: Workload, mount: Path) -> float:
    """The seconds from the first request to the end of the last sync."""
    with ThreadPoolExecutor(work.threads) as pool:
        together: Callable[[], object] = threading.Barrier(work.threads).wait
        for one in [pool.submit(together) for _ in range(work.threads)]:
            one.result()
        begin = time.perf_counter()
        list(pool.map(lambda rank: _rank(work, mount, rank), range(work.threads)))
        _sync_all(mount)
        return time.perf_counter() - begin


def _rank(work: Workload, mount: Path, rank: int) -> None:
    own = range(rank, work.files, work.threads)
    created, appended = _data(work.created_kib * KIB), _data(work.appended_kib * KIB)
    for nth in range(work.rounds):
        read, append, delete = (_name(work, mount, own[3 * nth + k]) for k in range(3))
        read.read_bytes()
        _write(mount / str(rank % work.folders) / f"new-{rank}-{nth}", created, sync=True)
        _write(append, appended, sync=True)
        delete.unlink()
    _write(mount / str(rank % work.folders) / f"whole-{rank}", _data(work.whole_kib * KIB), False)


def _name(work: Workload, mount: Path, number: int) -> Path:
    return mount / str(number % work.folders) / f"file-{number}"


def _data(length: int) -> bytes:
    """Half of each 4 KiB is random, the same each time."""
    half = random.Random(length).randbytes(length // 2)
    at = range(0, len(half), 2 * KIB)
    return b"".join(half[begin : begin + 2 * KIB] + bytes(2 * KIB) for begin in at)


def _write(path: Path, data: bytes, sync: bool) -> None:
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        os.write(file, data)
        if sync:
            os.fsync(file)
    finally:
        os.close(file)


def _sync_all(mount: Path) -> None:
    """Syncs this file system alone: Python has no syncfs."""
    folder = os.open(mount, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(folder) != 0:
            raise OSError(ctypes.get_errno(), "syncfs failed", str(mount))
    finally:
        os.close(folder)

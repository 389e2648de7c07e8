"""One run: mounts the instrument, writes checkpoints through it, reads the newest back."""

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from measure.side_by_side import RunFailed

MIB = 2**20
LEFT_SECONDS = 30.0


@dataclass(frozen=True)
class Checkpoints:
    """The job, in the manner of IOR with a file for each process (Robert 2020, section VIII-B)."""

    processes: int
    checkpoints: int
    each_mib: int
    """Written in all by one checkpoint."""
    request_kib: int
    computes: float
    """Seconds between checkpoints."""
    read_mib: int
    """Read back at the end, newest data first."""
    instrument: tuple[str, ...]
    """The daemon's arguments besides the four parameters."""

    def __str__(self) -> str:
        """Describes the job."""
        return (
            f"{self.processes} writers write {self.checkpoints} checkpoints of {self.each_mib} MiB,"
            f" each its own file, by {self.request_kib} KiB, compute {self.computes:g} s after"
            f" each, read the newest {self.read_mib} MiB back and sync;"
            f" burst-buffer {' '.join(self.instrument)}"
        )


def run(job: Checkpoints, daemon: Path, four: Mapping[str, object], seed: int) -> float:
    """Returns the seconds of one run; the slow side is a directory in memory behind the rate."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="burst-buffer-") as place:
        slow, mount = Path(place) / "slow", Path(place) / "mount"
        slow.mkdir()
        mount.mkdir()
        argv = [
            str(daemon),
            f"--slow={slow}",
            f"--mount={mount}",
            f"--workers={four['workers']}",
            f"--destagers={four['destagers']}",
            f"--cache-mib={four['cache_mib']}",
            f"--threshold={four['threshold']}",
            f"--seed={seed}",
            *job.instrument,
        ]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert process.stdout is not None
        try:
            with process.stdout:
                if process.stdout.readline() != b"ready\n":
                    raise RunFailed("the instrument does not start")
            return _timed(job, mount)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LEFT_SECONDS)


def _timed(job: Checkpoints, mount: Path) -> float:
    request = job.request_kib * 1024
    each = job.each_mib * MIB // request // job.processes
    read = job.read_mib * MIB // request // job.processes
    data = [bytes([65 + rank % 26]) * request for rank in range(job.processes)]

    def write(rank: int, number: int) -> None:
        file = os.open(mount / f"{number}.{rank}", os.O_CREAT | os.O_WRONLY, 0o600)
        for at in range(each):
            os.pwrite(file, data[rank], at * request)
        os.close(file)

    def check(rank: int) -> None:
        file = os.open(mount / f"{job.checkpoints - 1}.{rank}", os.O_RDWR)
        for at in reversed(range(each - read, each)):
            if os.pread(file, request, at * request) != data[rank]:
                raise RunFailed(f"{rank}: block {at} is not what was written")
        os.fsync(file)
        os.close(file)

    ranks = range(job.processes)
    with ThreadPoolExecutor(job.processes) as pool:
        _all(pool, job.processes)
        begin = time.perf_counter()
        for number in range(job.checkpoints):
            list(pool.map(write, ranks, [number] * job.processes))
            time.sleep(job.computes)
        list(pool.map(check, ranks))
        return time.perf_counter() - begin


def _all(pool: ThreadPoolExecutor, threads: int) -> None:
    """Starts the pool's threads before the clock."""
    together: Callable[[], object] = threading.Barrier(threads).wait
    for one in [pool.submit(together) for _ in range(threads)]:
        one.result()

"""Plain writes to a file, by elapsed time."""

import mmap
import os
import random
import threading
import time
from pathlib import Path

from measure_local.programs.program import Chosen, Program, RunFailed

_BYTES = 4 * 1024 * 1024
_FLAGS = {"buffered": 0, "dsync": os.O_DSYNC, "direct": os.O_DIRECT}


def _writes(folder: Path, chosen: Chosen) -> float:
    file = folder / "written"
    file.unlink(missing_ok=True)
    block, threads = chosen["block_bytes"], chosen["threads"]
    # Anonymous memory is aligned to pages, as direct writes want.
    memory = memoryview(mmap.mmap(-1, max(block, mmap.PAGESIZE)))[:block]
    offsets = list(range(0, _BYTES, block))
    if chosen["order"] == "backwards":
        offsets.reverse()
    elif chosen["order"] == "random":
        random.Random(5).shuffle(offsets)
    failed: list[OSError] = []

    def write(some: list[int]) -> None:
        try:
            for offset in some:
                os.pwrite(descriptor, memory, offset)
        except OSError as error:
            failed.append(error)

    start = time.perf_counter()
    flags = os.O_CREAT | os.O_WRONLY | _FLAGS[chosen["open"]]
    descriptor = os.open(file, flags, 0o600)
    try:
        if chosen["allocate"] == "first":
            os.posix_fallocate(descriptor, 0, _BYTES)
        workers = [
            threading.Thread(target=write, args=(offsets[one::threads],)) for one in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if failed:
        raise RunFailed(str(failed[0])) from failed[0]
    return time.perf_counter() - start


WRITES = Program(
    "writes",
    "4 MiB are written to a file; direct writes of blocks that are no whole sectors fail",
    {
        "block_bytes": [1000, 3000, 4096, 16384, 65536, 524288],
        "open": list(_FLAGS),
        "threads": [1, 2, 4],
        "order": ["forwards", "backwards", "random"],
        "allocate": ["first", "on demand"],
    },
    frozenset({"open", "order", "allocate"}),
    {
        "block_bytes": 4096,
        "open": "direct",
        "threads": 2,
        "order": "forwards",
        "allocate": "on demand",
    },
    _writes,
)

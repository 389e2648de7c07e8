"""What is measured: the parameters of each program, and one run of it."""

import lzma
import mmap
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Levels = dict[str, list[Any]]


@dataclass(frozen=True)
class Program:
    """A space and a function that measures one point of it."""

    name: str
    domain: str
    levels: Levels
    categories: frozenset[str]
    default: dict[str, Any]
    run: Callable[[Path, dict[str, Any]], float]
    """Elapsed seconds; raises OSError or lzma.LZMAError where the parametrization fails."""


_ROWS = 3200
_ROW = b"x" * 300


def _sqlite(folder: Path, chosen: dict[str, Any]) -> float:
    file = folder / "table.db"
    for suffix in ("", "-journal", "-wal", "-shm"):
        Path(f"{file}{suffix}").unlink(missing_ok=True)
    keys = random.Random(3)
    database = sqlite3.connect(file, isolation_level=None)
    for pragma in ("page_size", "journal_mode", "synchronous"):
        database.execute(f"pragma {pragma}={chosen[pragma]}")
    database.execute(f"pragma cache_size=-{chosen['cache_kib']}")
    start = time.perf_counter()
    database.execute("create table rows(key integer, value blob)")
    database.execute("create index by_key on rows(key)")
    per = chosen["rows_per_transaction"]
    for _ in range(_ROWS // per):
        database.execute("begin")
        rows = [(keys.randrange(1 << 30), _ROW) for _ in range(per)]
        database.executemany("insert into rows values(?, ?)", rows)
        database.execute("commit")
    database.close()
    return time.perf_counter() - start


_MATCH_FINDERS = {
    "hc3": lzma.MF_HC3,
    "hc4": lzma.MF_HC4,
    "bt2": lzma.MF_BT2,
    "bt3": lzma.MF_BT3,
    "bt4": lzma.MF_BT4,
}
_MODES = {"fast": lzma.MODE_FAST, "normal": lzma.MODE_NORMAL}
_LINK = 500_000.0
"""Bytes a second to where the compressed data go."""


def _text() -> bytes:
    draw = random.Random(7)
    letters = "etaoinshrdlu"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(900)]
    lines = (
        f"{number:06d} {' '.join(draw.choices(words, k=9))} {draw.random():.9f}\n"
        for number in range(2000)
    )
    return "".join(lines).encode()[: 128 * 1024]


_TEXT = _text()


def _lzma(_folder: Path, chosen: dict[str, Any]) -> float:
    options = {
        "id": lzma.FILTER_LZMA2,
        "dict_size": 1 << 16,
        "pb": 2,
        "mf": _MATCH_FINDERS[chosen["mf"]],
        "mode": _MODES[chosen["mode"]],
        **{name: chosen[name] for name in ("nice_len", "depth", "lc", "lp")},
    }
    start = time.perf_counter()
    size = len(lzma.compress(_TEXT, format=lzma.FORMAT_RAW, filters=[options]))
    return time.perf_counter() - start + size / _LINK


_BYTES = 4 * 1024 * 1024
_FLAGS = {"buffered": 0, "dsync": os.O_DSYNC, "direct": os.O_DIRECT}


def _writes(folder: Path, chosen: dict[str, Any]) -> float:
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
        raise failed[0]
    return time.perf_counter() - start


PROGRAMS = [
    Program(
        "sqlite",
        "SQLite: 3200 rows are inserted into an indexed table",
        {
            "journal_mode": ["delete", "truncate", "memory", "wal", "off"],
            "synchronous": ["off", "normal", "full"],
            "page_size": [512, 4096, 16384, 65536],
            "cache_kib": [64, 2048],
            "rows_per_transaction": [40, 160, 800],
        },
        frozenset({"journal_mode"}),
        {
            "journal_mode": "delete",
            "synchronous": "full",
            "page_size": 4096,
            "cache_kib": 2048,
            "rows_per_transaction": 160,
        },
        _sqlite,
    ),
    Program(
        "lzma",
        "LZMA: 128 KiB of text are compressed and sent at 500 kB/s; lc + lp above 4 fails",
        {
            "mf": list(_MATCH_FINDERS),
            "mode": list(_MODES),
            "nice_len": [4, 16, 64, 273],
            "depth": [4, 32, 256],
            "lc": [0, 3, 4],
            "lp": [0, 1, 4],
        },
        frozenset({"mf", "mode"}),
        {"mf": "bt4", "mode": "normal", "nice_len": 64, "depth": 32, "lc": 3, "lp": 0},
        _lzma,
    ),
    Program(
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
    ),
]

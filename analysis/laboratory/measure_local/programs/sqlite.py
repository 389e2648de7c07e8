"""SQLite: insertions into an indexed table, by elapsed time."""

import random
import sqlite3
import time
from pathlib import Path

from measure_local.programs.program import Chosen, Program

_ROWS = 3200
_ROW = b"x" * 300


def _sqlite(folder: Path, chosen: Chosen) -> float:
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


SQLITE = Program(
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
)

"""One run of Debian's db_bench, and the space of its ten parameters."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from measure_local.programs.program import RunFailed

SCALE = 32
"""Sizes are so many times smaller than RocksDB's and the slides': a run is short."""
_KEYS = 20_000
_MIXED = 37_600
_DELETED = 2_400
"""Of 40,000 operations: 78 % get, 13 % put, 3 % iterate, mixed; then 6 % delete."""
_OPERATIONS = 0.94
"""The share of the operations that are mixed."""
_MIB = 2**20
_WORKLOAD = [
    "--benchmarks=fillrandom,mixgraph,deleterandom",
    f"--num={_KEYS}",
    f"--reads={_MIXED}",
    f"--deletes={_DELETED}",
    f"--mix_get_ratio={0.78 / _OPERATIONS:.6f}",
    f"--mix_put_ratio={0.13 / _OPERATIONS:.6f}",
    f"--mix_seek_ratio={0.03 / _OPERATIONS:.6f}",
    "--mix_max_scan_len=100",
    "--value_size=400",
    "--seed=1",
    f"--cache_size={2 * _MIB}",
    f"--max_bytes_for_level_base={256 * _MIB // SCALE}",
    f"--target_file_size_base={64 * _MIB // SCALE}",
    "--statistics",
]


def _powers(first: int, last: int, *others: int) -> list[int]:
    return sorted({*(1 << power for power in range(first, last + 1)), *others})


LEVELS: dict[str, list[int]] = {
    "max_background_compactions": _powers(0, 8),
    "max_background_flushes": list(range(1, 11)),
    "write_buffer_size": _powers(16, 22),
    "max_write_buffer_number": _powers(0, 7),
    "min_write_buffer_number_to_merge": _powers(0, 5),
    "max_bytes_for_level_multiplier": list(range(5, 16)),
    "block_size": _powers(6, 19),
    "level0_file_num_compaction_trigger": _powers(0, 8),
    "level0_slowdown_writes_trigger": _powers(0, 10, 20),
    "level0_stop_writes_trigger": _powers(0, 10, 36),
}
"""The slides' ranges, a level for each power of two where they are wide; RocksDB takes no write
buffer below 64 KiB."""
DEFAULT = {
    "max_background_compactions": 1,
    "max_background_flushes": 1,
    "write_buffer_size": 64 * _MIB // SCALE,
    "max_write_buffer_number": 2,
    "min_write_buffer_number_to_merge": 1,
    "max_bytes_for_level_multiplier": 10,
    "block_size": 4096,
    "level0_file_num_compaction_trigger": 4,
    "level0_slowdown_writes_trigger": 20,
    "level0_stop_writes_trigger": 36,
}
"""The slides', but for the slowdown trigger: theirs, 0, db_bench has as 20."""
TICKERS = {
    "compacted_bytes": "rocksdb.compact.write.bytes",
    "flushed_bytes": "rocksdb.flush.write.bytes",
    "missed_blocks": "rocksdb.block.cache.data.miss",
}
"""The measures, as `--statistics` prints them."""


@dataclass(frozen=True)
class Run:
    """What one run took, in seconds without the filling, and its measures."""

    elapsed: float
    measures: dict[str, float]


def space() -> str:
    """The space, as `io-autotune optimize` reads it."""
    parameters = [
        {"name": name, "kind": "ordinal", "values": values} for name, values in LEVELS.items()
    ]
    return json.dumps({"parameters": parameters, "default": DEFAULT})


def run(folder: Path, chosen: Mapping[str, int]) -> Run:
    """Runs it once in a folder of its own; raises RunFailed where it fails."""
    database = folder / "database"
    shutil.rmtree(database, ignore_errors=True)
    options = [f"--{name}={value}" for name, value in chosen.items()]
    try:
        done = subprocess.run(
            ["db_bench", f"--db={database}", *_WORKLOAD, *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except subprocess.TimeoutExpired as error:
        raise RunFailed("db_bench took more than a minute") from error
    finally:
        shutil.rmtree(database, ignore_errors=True)
    if done.returncode != 0:
        raise RunFailed(done.stderr.strip()[-200:])
    return read(done.stdout + done.stderr)


def read(said: str) -> Run:
    """What db_bench says; raises RunFailed where it says nothing of a benchmark."""
    seconds = 0.0
    for name in ("mixgraph", "deleterandom"):
        found = re.search(rf"^{name} .* ([0-9.]+) seconds ", said, re.MULTILINE)
        if found is None:
            raise RunFailed(f"db_bench says nothing of {name}")
        seconds += float(found[1])
    measures = {}
    for name, ticker in TICKERS.items():
        ticked = re.search(rf"^{re.escape(ticker)} COUNT : (\d+)$", said, re.MULTILINE)
        if ticked is None:
            raise RunFailed(f"db_bench says nothing of {ticker}")
        # One more: a measure is a positive number, and nothing may have been compacted.
        measures[name] = float(ticked[1]) + 1.0
    return Run(seconds, measures)


def operations() -> int:
    """The operations that are timed."""
    return _MIXED + _DELETED

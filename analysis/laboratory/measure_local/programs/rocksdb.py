"""RocksDB: Debian's db_bench fills a small database in random order and reads from it."""

import re
import shutil
from pathlib import Path

from measure_local.programs.program import Chosen, Measures, Program, RunFailed
from measure_local.programs.spent import spent

_KEYS = 5_000
_DISK = 50_000_000.0
"""Bytes a second of the disk that its files are written to."""
_KIB = 1024
_WORKLOAD = [
    "--benchmarks=fillrandom,readrandom",
    f"--num={_KEYS}",
    f"--reads={_KEYS}",
    "--value_size=400",
    "--seed=1",
    f"--cache_size={256 * _KIB}",
    f"--max_bytes_for_level_base={1024 * _KIB}",
    f"--target_file_size_base={256 * _KIB}",
]
"""Sizes are a 256th of RocksDB's own, as are those of its parameters."""


def _rocksdb(folder: Path, chosen: Chosen) -> float:
    database = folder / "rocksdb"
    shutil.rmtree(database, ignore_errors=True)
    options = dict(chosen)
    options["write_buffer_size"] = options.pop("write_buffer_kib") * _KIB
    words = [f"--{name}={value}" for name, value in options.items()]
    return spent(["db_bench", f"--db={database}", *_WORKLOAD, *words], folder).seconds(_DISK)


ROCKSDB = Program(
    "rocksdb",
    "RocksDB's db_bench: 5000 values of 400 bytes are written in random order, 5000 read; "
    "processor time, and the bytes written at 50 MB/s; sizes are a 256th of RocksDB's",
    {
        "write_buffer_kib": [64, 256, 1024],
        "max_write_buffer_number": [2, 6],
        "level0_file_num_compaction_trigger": [2, 4, 8],
        "block_size": [1024, 4096, 16384],
        "compression_type": ["none", "snappy", "zstd"],
        "bloom_bits": [0, 10],
    },
    frozenset({"compression_type"}),
    {
        "write_buffer_kib": 256,
        "max_write_buffer_number": 2,
        "level0_file_num_compaction_trigger": 4,
        "block_size": 4096,
        "compression_type": "snappy",
        "bloom_bits": 0,
    },
    _rocksdb,
    needs=("db_bench",),
)

_MIXED = 8_000
_READ = 500_000_000.0
"""Bytes a second of blocks that are not in RocksDB's cache."""
_MIXED_WORKLOAD = [
    "--benchmarks=fillrandom,mixgraph",
    f"--num={_KEYS}",
    f"--reads={_MIXED}",
    "--mix_get_ratio=0.78",
    "--mix_put_ratio=0.19",
    "--mix_seek_ratio=0.03",
    "--mix_max_scan_len=100",
    *_WORKLOAD[3:],
    "--statistics",
]
_TICKERS = {
    "compacted_bytes": "rocksdb.compact.write.bytes",
    "flushed_bytes": "rocksdb.flush.write.bytes",
    "missed_blocks": "rocksdb.block.cache.data.miss",
}
_READ_TICKER = "rocksdb.block.cache.data.bytes.insert"


def _mixed(folder: Path, chosen: Chosen) -> tuple[float, Measures]:
    database, output = folder / "rocksdb", folder / "statistics"
    shutil.rmtree(database, ignore_errors=True)
    options = dict(chosen)
    options["write_buffer_size"] = options.pop("write_buffer_kib") * _KIB
    words = [f"--{name}={value}" for name, value in options.items()]
    took = spent(["db_bench", f"--db={database}", *_MIXED_WORKLOAD, *words], folder, output)
    said = output.read_text("utf-8", "replace")
    read = _ticker(said, _READ_TICKER) / _READ
    return took.seconds(_DISK) + read, {n: _ticker(said, of) for n, of in _TICKERS.items()}


def _ticker(said: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} COUNT : (\d+)$", said, re.MULTILINE)
    if found is None:
        raise RunFailed(f"db_bench says nothing of {name}")
    return float(found[1])


MIXED = Program(
    "rocksdb-measures",
    "RocksDB's db_bench: 5000 values are written in random order, then 8000 operations: 78 % get, "
    "19 % put, 3 % iterate; processor time, bytes written at 50 MB/s and blocks read at 500 MB/s; "
    "sizes are a 256th of RocksDB's",
    {
        "write_buffer_kib": [64, 256, 1024],
        "max_write_buffer_number": [2, 6],
        "min_write_buffer_number_to_merge": [1, 2],
        "max_bytes_for_level_multiplier": [5, 10],
        "block_size": [1024, 4096, 16384, 65536],
        "level0_file_num_compaction_trigger": [2, 4, 8],
    },
    frozenset(),
    {
        "write_buffer_kib": 256,
        "max_write_buffer_number": 2,
        "min_write_buffer_number_to_merge": 1,
        "max_bytes_for_level_multiplier": 10,
        "block_size": 4096,
        "level0_file_num_compaction_trigger": 4,
    },
    _mixed,
    needs=("db_bench",),
    measures=tuple(_TICKERS),
    folder="papers",
)
"""Six of the ten parameters of Alabed and Yoneki 2021; db_bench's mix has no deletes."""

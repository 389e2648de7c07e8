"""RocksDB: Debian's db_bench fills a small database in random order and reads from it."""

import shutil
from pathlib import Path

from measure_local.programs.program import Chosen, Program
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

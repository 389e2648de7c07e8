"""What is measured: a module for each program."""

from measure_local.programs.compiled import COMPILED
from measure_local.programs.lzma_text import LZMA
from measure_local.programs.program import Program, RunFailed
from measure_local.programs.rocksdb import MIXED, ROCKSDB
from measure_local.programs.sort import SORT
from measure_local.programs.sqlite import SQLITE
from measure_local.programs.writes import WRITES

PROGRAMS = [SQLITE, LZMA, WRITES, ROCKSDB, SORT, COMPILED, MIXED]

__all__ = ["PROGRAMS", "Program", "RunFailed"]

"""What is measured: a module for each program."""

from measure_local.programs.compiled import COMPILED
from measure_local.programs.flac import FLAC
from measure_local.programs.git_pack import GIT_PACK
from measure_local.programs.lzma_text import LZMA
from measure_local.programs.nccopy import NCCOPY
from measure_local.programs.postgresql import POSTGRESQL
from measure_local.programs.program import Program, RunFailed
from measure_local.programs.rocksdb import MIXED, ROCKSDB
from measure_local.programs.rsync import RSYNC
from measure_local.programs.sort import SORT
from measure_local.programs.sqlite import SQLITE
from measure_local.programs.writes import WRITES
from measure_local.programs.x264 import X264

PROGRAMS = [
    SQLITE,
    LZMA,
    WRITES,
    ROCKSDB,
    SORT,
    COMPILED,
    MIXED,
    GIT_PACK,
    NCCOPY,
    POSTGRESQL,
    X264,
    RSYNC,
    FLAC,
]

__all__ = ["PROGRAMS", "Program", "RunFailed"]

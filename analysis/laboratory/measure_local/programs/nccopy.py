"""NetCDF: `nccopy` stores a field in chunks, and reads it back for a model."""

import math
import random
from pathlib import Path

from measure_local.programs.program import Chosen, Program
from measure_local.programs.spent import spent

_TIMES, _LATITUDES, _LONGITUDES = 48, 60, 96
_LINK = 10_000_000.0
"""Bytes a second to the archive and back."""
_CHUNKS = {
    "library": "",
    "map": "t/1,y/60,x/96",
    "tile": "t/4,y/20,x/32",
    "block": "t/16,y/30,x/48",
    "series": "t/48,y/6,x/8",
}
_KIB = 1024


def _field(folder: Path) -> Path:
    """Waves that travel, with noise, at the precision of an instrument."""
    file = folder / "field.nc"
    if not file.exists():
        draw = random.Random(13)
        values = (
            20 * math.sin(0.2 * y + 0.11 * x - 0.3 * t)
            + 8 * math.cos(0.05 * y * x / 9 + 0.1 * t)
            + draw.gauss(0.0, 0.3)
            for t in range(_TIMES)
            for y in range(_LATITUDES)
            for x in range(_LONGITUDES)
        )
        text = ",".join(f"{value:.1f}" for value in values)
        cdl = folder / "field.cdl"
        cdl.write_text(
            f"netcdf field {{ dimensions: t={_TIMES}; y={_LATITUDES}; x={_LONGITUDES};"
            f" variables: float f(t,y,x); data: f={text}; }}\n",
            "utf-8",
        )
        spent(["ncgen", "-k", "classic", "-o", str(file), str(cdl)], folder)
    return file


def _nccopy(folder: Path, chosen: Chosen) -> float:
    field, stored, back = _field(folder), folder / "stored.nc", folder / "back.nc"
    buffers = [
        "-h", str(chosen["chunk_cache_kib"] * _KIB),
        "-m", str(chosen["copy_buffer_kib"] * _KIB),
    ]  # fmt: skip
    options = ["-k", "nc4", "-d", str(chosen["deflate"])]
    if chosen["shuffle"] == "on":
        options.append("-s")
    if _CHUNKS[chosen["chunks"]]:
        options += ["-c", _CHUNKS[chosen["chunks"]]]
    there = spent(["nccopy", *options, *buffers, str(field), str(stored)], folder)
    and_back = spent(["nccopy", "-k", "classic", *buffers, str(stored), str(back)], folder)
    return there.processor + and_back.processor + 2 * stored.stat().st_size / _LINK


NCCOPY = Program(
    "nccopy",
    "NetCDF: nccopy stores a field of 48 x 60 x 96 numbers in chunks, and reads it back; processor "
    "time, and twice the file's bytes at 10 MB/s",
    {
        "chunks": list(_CHUNKS),
        "deflate": [0, 1, 3, 6, 9],
        "shuffle": ["off", "on"],
        "chunk_cache_kib": [16, 256, 4096],
        "copy_buffer_kib": [24, 512, 4883],
    },
    frozenset({"chunks", "shuffle"}),
    {
        "chunks": "library",
        "deflate": 0,
        "shuffle": "off",
        "chunk_cache_kib": 4096,
        "copy_buffer_kib": 4883,
    },
    _nccopy,
    needs=("nccopy", "ncgen"),
    integers=frozenset({"deflate"}),
)

"""GNU sort: a text that is many times its buffer, by way of temporary files."""

import random
from pathlib import Path

from measure_local.programs.program import Chosen, Program
from measure_local.programs.spent import spent

_LINES = 30_000
_DISK = 20_000_000.0
"""Bytes a second of the disk that temporary files are written to."""


def _text(file: Path) -> Path:
    if not file.exists():
        draw = random.Random(7)
        words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(900)]
        lines = (
            f"{draw.randrange(10**6):06d} {' '.join(draw.choices(words, k=9))} {draw.random():.9f}"
            for _ in range(_LINES)
        )
        file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


def _sort(folder: Path, chosen: Chosen) -> float:
    words = [
        f"--buffer-size={chosen['buffer_kib']}K",
        f"--batch-size={chosen['batch_size']}",
        f"--parallel={chosen['parallel']}",
        f"--temporary-directory={folder}",
    ]
    if chosen["compress_program"] != "none":
        words.append(f"--compress-program={chosen['compress_program']}")
    if chosen["last_resort"] == "off":
        words.append("--stable")
    text = _text(folder / "text")
    command = ["sort", *words, "--key=3,3", "--key=1,1n", "--output=/dev/null", str(text)]
    return spent(command, folder).seconds(_DISK)


SORT = Program(
    "sort",
    "GNU sort of 2.3 MB of text in a small buffer; processor time, compressors' included, and the "
    "temporary files' bytes at 20 MB/s",
    {
        "buffer_kib": [64, 128, 256, 512, 1024, 2048],
        "batch_size": [2, 4, 8, 16, 32],
        "parallel": [1, 2],
        "compress_program": ["none", "gzip", "lz4", "zstd"],
        "last_resort": ["on", "off"],
    },
    frozenset({"compress_program", "last_resort"}),
    {
        "buffer_kib": 256,
        "batch_size": 16,
        "parallel": 2,
        "compress_program": "none",
        "last_resort": "on",
    },
    _sort,
    needs=("sort", "gzip", "lz4", "zstd"),
)

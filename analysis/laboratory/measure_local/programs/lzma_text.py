"""LZMA: compression of a text and its way over a link, by elapsed time."""

import lzma
import random
import time
from pathlib import Path

from measure_local.programs.program import Chosen, Program, RunFailed

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


def _lzma(_folder: Path, chosen: Chosen) -> float:
    options = {
        "id": lzma.FILTER_LZMA2,
        "dict_size": 1 << 16,
        "pb": 2,
        "mf": _MATCH_FINDERS[chosen["mf"]],
        "mode": _MODES[chosen["mode"]],
        **{name: chosen[name] for name in ("nice_len", "depth", "lc", "lp")},
    }
    start = time.perf_counter()
    try:
        size = len(lzma.compress(_TEXT, format=lzma.FORMAT_RAW, filters=[options]))
    except lzma.LZMAError as error:
        raise RunFailed(str(error)) from error
    return time.perf_counter() - start + size / _LINK


LZMA = Program(
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
)

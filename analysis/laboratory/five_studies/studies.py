"""Five studies such as users have: four functions whose truth is known, and a real command."""

from __future__ import annotations

import math
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import io_autotune as it

Params = dict[str, Any]


@dataclass(frozen=True)
class Studied:
    """A study: what is measured, its noise as a share, and what the values are in truth."""

    name: str
    about: str
    space: dict[str, it.Parameter]
    truth: Callable[[Params], float]
    noise: float

    def measure(self, params: Params, rng: random.Random) -> float:
        """Return one noisy value."""
        return self.truth(params) * math.exp(rng.gauss(0, self.noise) if self.noise else 0)


def _octaves(low: int, high: int) -> list[int]:
    return [2**power for power in range(low, high + 1)]


def _dd(params: Params) -> float:
    """Return seconds of a copy: small blocks cost calls, large ones miss the cache."""
    block, sync = (
        math.log2(params["block"]),
        {"none": 1.0, "dsync": 1.6, "direct": 0.8}[params["flag"]],
    )
    return sync * (1 + 0.06 * (block - 19) ** 2 / 4 + 0.3 * abs(math.log2(params["streams"]) - 2))


def _sort(params: Params) -> float:
    """Return seconds of an external sort: merges cost passes, threads contend, compression pays."""
    passes = math.ceil(math.log(max(2**14 / params["buffer"], 2)) / math.log(params["batch"]))
    threads = 1 / params["threads"] + 0.03 * params["threads"]
    squeezed = 0.7 if params["compress"] == "lz4" else 1.25 if params["compress"] == "gzip" else 1.0
    return 4 * threads + passes * squeezed + 0.0004 * params["buffer"]


def _cached(params: Params) -> float:
    """Return seconds of reads through a cache that has settings of its own, if it is on."""
    if params["cache"] == "off":
        return 5 + 0.5 * abs(math.log2(params["ahead"]) - 7)
    page = math.log2(params["page"])
    return 3 + 0.4 * abs(math.log2(params["ahead"]) - 4) + 0.25 * (page - 16) ** 2 / 2


def _branin(params: Params) -> float:
    """Return Branin's function, plus one so that its best is no zero."""
    x, y = params["x"], params["y"]
    bowl = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return bowl**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 11


def zstd(data: Path) -> Callable[[Params], float]:
    """Return the seconds of the real zstd, with those of sending what it writes at 20 MB/s."""

    def run(params: Params) -> float:
        words = ["zstd", "-c", f"-{params['level']}", f"--zstd=wlog={params['window']}"]
        words += [f"-T{params['threads']}", "--no-progress", str(data)]
        started = time.perf_counter()
        written = subprocess.run(words, capture_output=True, check=True).stdout
        return time.perf_counter() - started + len(written) / 20e6

    return run


def make_data(directory: Path) -> Path:
    """Write 1 MB that compresses as logs do."""
    rng = random.Random(1)
    words = [f"{rng.getrandbits(40):x}" for _ in range(3000)]
    path = directory / "log"
    with path.open("w") as file:
        while file.tell() < 1_000_000:
            file.write(f"{rng.randrange(10**9)} {' '.join(rng.choices(words, k=9))}\n")
    return path


def studies(data: Path) -> list[Studied]:
    """Return the five."""
    octaves = it.Ordered(_octaves(0, 4), default=1)
    return [
        Studied(
            "zstd",
            "a real command: level, window and threads",
            {
                "level": it.Int(1, 19, default=3),
                "window": it.Int(10, 27, default=21),
                "threads": it.Int(1, 4, default=1),
            },
            zstd(data),
            0.0,
        ),
        Studied(
            "dd",
            "block size, flag and streams of a copy, 15 % noise",
            {
                "block": it.Ordered(_octaves(9, 27), default=512),
                "flag": it.Categorical(["none", "dsync", "direct"]),
                "streams": octaves,
            },
            _dd,
            0.15,
        ),
        Studied(
            "sort",
            "buffer, batch, threads and compression of a sort, 10 % noise",
            {
                "buffer": it.Ordered(_octaves(4, 13), default=64),
                "batch": it.Int(2, 32, 2, default=16),
                "threads": it.Int(1, 16, default=1),
                "compress": it.Categorical(["none", "gzip", "lz4"]),
            },
            _sort,
            0.10,
        ),
        Studied(
            "cache",
            "read-ahead, and a cache that has a page size if it is on, 10 % noise",
            {
                "ahead": it.Ordered(_octaves(0, 12), default=32),
                "cache": it.Categorical(["off", "on"]),
                "page": it.Ordered(_octaves(12, 22), when={"cache": "on"}),
            },
            _cached,
            0.10,
        ),
        Studied(
            "branin",
            "a smooth function of two numbers, 5 % noise",
            {"x": it.Float(-5, 10, levels=101), "y": it.Float(0, 15, levels=101)},
            _branin,
            0.05,
        ),
    ]


def with_data() -> tuple[tempfile.TemporaryDirectory[str], list[Studied]]:
    """Return the five, and the directory with the data of one: keep it."""
    directory = tempfile.TemporaryDirectory()
    return directory, studies(make_data(Path(directory.name)))

"""x264: a short film is encoded at a constant quantizer, and sent."""

import math
import random
from pathlib import Path

from measure_local.programs.program import Chosen, Program
from measure_local.programs.spent import spent

_WIDTH, _HEIGHT, _FRAMES = 176, 144, 12
_LINK = 250_000.0
"""Bytes a second to who looks at it."""


def _film(folder: Path) -> Path:
    """A texture that moves, a disc that moves otherwise before it, and a camera's noise."""
    file = folder / "film.y4m"
    if not file.exists():
        draw = random.Random(17)
        side = 256
        waves = [(draw.randint(1, 14), draw.randint(1, 14), draw.random()) for _ in range(7)]
        texture = [
            [
                sum(math.sin(math.tau * (a * x / side + b * y / side + c)) for a, b, c in waves)
                for x in range(side)
            ]
            for y in range(side)
        ]
        with file.open("wb") as out:
            out.write(f"YUV4MPEG2 W{_WIDTH} H{_HEIGHT} F25:1 Ip A1:1 C420\n".encode())
            for frame in range(_FRAMES):
                out.write(b"FRAME\n")
                out.write(_picture(texture, frame, draw))
                out.write(bytes([128]) * (_WIDTH * _HEIGHT // 2))
    return file


def _picture(texture: list[list[float]], frame: int, draw: random.Random) -> bytes:
    side, radius = len(texture), 30
    left, top = 40 + 5 * frame, 60 + 2 * frame
    pixels = bytearray()
    for y in range(_HEIGHT):
        for x in range(_WIDTH):
            disc = (x - left) ** 2 + (y - top) ** 2 < radius**2
            across, down = (x - 5 * frame, y - 2 * frame) if disc else (x + 3 * frame, y + frame)
            value = 128 + 22 * texture[down % side][across % side] + draw.gauss(0.0, 2.0)
            pixels.append(max(16, min(235, round(value))))
    return bytes(pixels)


def _x264(folder: Path, chosen: Chosen) -> float:
    film, encoded = _film(folder), folder / "film.264"
    options = [f"--{name}={chosen[name]}" for name in ("me", "subme", "ref", "bframes", "trellis")]
    if chosen["entropy"] == "cavlc":
        options.append("--no-cabac")
    command = ["x264", "--quiet", "--threads=1", "--qp=24", *options, "-o", str(encoded), str(film)]
    return spent(command, folder).processor + encoded.stat().st_size / _LINK


X264 = Program(
    "x264",
    "x264: 12 frames of 176 x 144 are encoded at a constant quantizer; processor time, and the "
    "bytes at 250 kB/s",
    {
        "me": ["dia", "hex", "umh", "esa"],
        "subme": [1, 4, 7, 9],
        "ref": [1, 3, 8],
        "bframes": [0, 3, 8],
        "trellis": [0, 1],
        "entropy": ["cabac", "cavlc"],
    },
    frozenset({"me", "entropy"}),
    {"me": "hex", "subme": 7, "ref": 3, "bframes": 3, "trellis": 1, "entropy": "cabac"},
    _x264,
    needs=("x264",),
    integers=frozenset({"subme", "ref", "bframes", "trellis"}),
)

"""FLAC: a recording is encoded without loss, and sent."""

import math
import random
import struct
import wave
from pathlib import Path

from measure_local.programs.program import Chosen, Program
from measure_local.programs.spent import spent

_RATE = 44_100
_SECONDS = 12
_LINK = 20_000_000.0
"""Bytes a second to who listens."""
_SEARCH = {"estimate": [], "models": ["-e"], "models and precisions": ["-e", "-p"]}
_STEREO = {"adaptive": "-M", "always both": "-m", "off": "--no-mid-side"}


def _recording(folder: Path) -> Path:
    """Decaying tones of two channels, louder in one, with a room's noise."""
    file = folder / "recording.wav"
    if not file.exists():
        draw = random.Random(23)
        beat = _RATE // 2
        samples = []
        for _ in range(_SECONDS * 2):
            tones = [
                (math.tau * 110 * 2 ** (draw.randrange(36) / 12) / _RATE, draw.random())
                for _ in range(3)
            ]
            for at in range(beat):
                fade = math.exp(-3.0 * at / beat)
                tone = sum(math.sin(pitch * at) * pan for pitch, pan in tones)
                other = sum(math.sin(pitch * at) * (1 - pan) for pitch, pan in tones)
                samples.append(round(6000 * fade * tone + draw.gauss(0.0, 40.0)))
                samples.append(round(6000 * fade * other + draw.gauss(0.0, 40.0)))
        with wave.open(str(file), "wb") as out:
            out.setnchannels(2)
            out.setsampwidth(2)
            out.setframerate(_RATE)
            out.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return file


def _flac(folder: Path, chosen: Chosen) -> float:
    recording, encoded = _recording(folder), folder / "recording.flac"
    options = [
        f"--blocksize={chosen['block_size']}",
        f"--max-lpc-order={chosen['lpc_order']}",
        f"--rice-partition-order={chosen['partition_order']}",
        f"--apodization={chosen['apodization']}",
        _STEREO[chosen["stereo"]],
        *_SEARCH[chosen["search"]],
    ]
    command = ["flac", "--silent", "--force", "-o", str(encoded), *options, str(recording)]
    return spent(command, folder).processor + encoded.stat().st_size / _LINK


FLAC = Program(
    "flac",
    "FLAC: 12 s of two channels are encoded; processor time, and the bytes at 20 MB/s",
    {
        "block_size": [1152, 4096],
        "lpc_order": [2, 8, 12],
        "partition_order": [2, 5, 8],
        "apodization": ["tukey(0.5)", "rectangle", "subdivide_tukey(3)"],
        "stereo": list(_STEREO),
        "search": list(_SEARCH),
    },
    frozenset({"apodization", "stereo", "search"}),
    {
        "block_size": 4096,
        "lpc_order": 8,
        "partition_order": 5,
        "apodization": "tukey(0.5)",
        "stereo": "always both",
        "search": "estimate",
    },
    _flac,
    needs=("flac",),
    integers=frozenset({"lpc_order", "partition_order"}),
)

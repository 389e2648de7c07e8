"""rsync: an older copy of a folder is brought up to date through a remote shell."""

import random
import re
import shutil
from pathlib import Path

from measure_local.programs.program import Chosen, Program, RunFailed
from measure_local.programs.spent import spent

_FILES = 8
_LINES = 4_000
_CHANGES = 40
_LINK = 8_000_000.0
"""Bytes a second, both ways."""
_BYTES = re.compile(r"^Total bytes (?:sent|received): (\d+)$", re.MULTILINE)


def _trees(folder: Path) -> tuple[Path, Path, Path]:
    """The newer folder, the older one, and a remote shell that goes nowhere."""
    newer, older, shell = folder / "newer", folder / "older", folder / "shell"
    if not shell.exists():
        draw = random.Random(19)
        words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(900)]

        def line() -> str:
            return f"{' '.join(draw.choices(words, k=9))} {draw.random():.9f}\n"

        for tree in (newer, older):
            tree.mkdir()
        for number in range(_FILES):
            lines = [line() for _ in range(_LINES)]
            (older / f"{number}").write_text("".join(lines), "utf-8")
            for _ in range(_CHANGES):
                lines[draw.randrange(len(lines))] = line()
            (newer / f"{number}").write_text("".join(lines), "utf-8")
        shell.write_text('#!/bin/sh\nshift\nexec "$@"\n', "utf-8")
        shell.chmod(0o700)
    return newer, older, shell


def _rsync(folder: Path, chosen: Chosen) -> float:
    newer, older, shell = _trees(folder)
    target, said = folder / "target", folder / "statistics"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(older, target)
    options = [
        f"--block-size={chosen['block_size']}",
        f"--checksum-choice={chosen['checksum']}",
        f"--rsh={shell}",
        "--archive",
        "--ignore-times",
        "--stats",
        "--no-human-readable",
    ]
    if chosen["compress"] != "none":
        options.append(f"--compress-choice={chosen['compress']}")
        options.append(f"--compress-level={chosen['level']}")
    if chosen["whole_file"] == "on":
        options.append("--whole-file")
    took = spent(["rsync", *options, f"{newer}/", f"there:{target}/"], folder, said)
    sent = [int(count) for count in _BYTES.findall(said.read_text("utf-8"))]
    if len(sent) != 2:  # noqa: PLR2004
        raise RunFailed(f"rsync says nothing of its bytes: {said.read_text('utf-8')}")
    return took.processor + sum(sent) / _LINK


RSYNC = Program(
    "rsync",
    "rsync: eight files of 270 kB, in which 1 % of the lines changed, are brought up to date "
    "through a remote shell; processor time of both sides, and the bytes at 8 MB/s",
    {
        "block_size": [32, 128, 700, 4096, 32768],
        "checksum": ["xxh128", "md5", "sha1"],
        "compress": ["none", "zlib", "lz4", "zstd"],
        "level": [1, 6, 9],
        "whole_file": ["off", "on"],
    },
    frozenset({"checksum", "compress", "whole_file"}),
    {
        "block_size": 700,
        "checksum": "xxh128",
        "compress": "none",
        "level": 6,
        "whole_file": "off",
    },
    _rsync,
    needs=("rsync",),
    integers=frozenset({"level"}),
)

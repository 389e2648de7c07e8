"""Git: what a server does for a clone, which packs a history anew and sends it."""

import random
import subprocess
import time
from pathlib import Path

from measure_local.programs.program import Chosen, Program
from measure_local.programs.spent import spent

_FILES = 20
_COMMITS = 160
_LINES = 160
_LINK = 2_000_000.0
"""Bytes a second to the one who clones."""


def _history() -> bytes:
    """Sources that grow and change, as a stream for `git fast-import`; one of them is a log."""
    draw = random.Random(11)
    words = ["".join(draw.choices("etaoinshrdlu_", k=draw.randint(3, 10))) for _ in range(700)]

    def line() -> str:
        return f"    {' '.join(draw.choices(words, k=draw.randint(2, 8)))};\n"

    files = [[line() for _ in range(_LINES)] for _ in range(_FILES)]
    stream = []
    for commit in range(_COMMITS):
        changes = []
        for number in {0, draw.randrange(_FILES), draw.randrange(_FILES)}:
            lines = files[number]
            for _ in range(draw.randint(1, 6)):
                lines[draw.randrange(len(lines))] = line()
            if draw.random() < 0.4:  # noqa: PLR2004
                lines.insert(draw.randrange(len(lines)), line())
            if number == 0:
                lines += [line() for _ in range(12)]
            text = "".join(lines)
            changes.append(f"M 100644 inline src/{number:02}.c\ndata {len(text)}\n{text}\n")
        stream.append(
            f"commit refs/heads/main\ncommitter A <a@example.org> {1_700_000_000 + commit} +0000\n"
            f"data 6\nchange\n{''.join(changes)}"
        )
    return "".join(stream).encode()


def _repository(folder: Path) -> Path:
    repository = folder / "history.git"
    if not repository.exists():
        made = folder / "making.git"
        git = ["git", f"--git-dir={made}"]
        subprocess.run(["git", "init", "--quiet", "--bare", str(made)], check=True)
        subprocess.run([*git, "fast-import", "--quiet"], input=_history(), check=True)
        made.rename(repository)
    return repository


def _git_pack(folder: Path, chosen: Chosen) -> float:
    repository, pack = _repository(folder), folder / "sent.pack"
    settings = {
        "core.bigFileThreshold": f"{chosen['big_file_kib']}k",
        "pack.deltaCacheLimit": chosen["delta_cache_limit"],
    }
    git = ["git", f"--git-dir={repository}"]
    told = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    options = [f"--{name}={chosen[name]}" for name in ("window", "depth", "compression", "threads")]
    command = [*git, *told, "pack-objects", "--quiet", "--all", "--no-reuse-object", "--stdout"]
    start = time.perf_counter()
    spent([*command, *options], folder, pack)
    spent([*git, "index-pack", "-o", str(folder / "sent.idx"), str(pack)], folder)
    took = time.perf_counter() - start
    (folder / "sent.idx").unlink()
    return took + pack.stat().st_size / _LINK


GIT_PACK = Program(
    "git-pack",
    "Git: a history of 160 commits is packed without reuse of deltas, sent at 2 MB/s and indexed; "
    "elapsed time, and that of the bytes",
    {
        "window": [2, 5, 10, 20, 50],
        "depth": [4, 50, 250],
        "compression": [0, 1, 6],
        "threads": [1, 2],
        "delta_cache_limit": [0, 1000],
        "big_file_kib": [32, 524288],
    },
    frozenset(),
    {
        "window": 10,
        "depth": 50,
        "compression": 6,
        "threads": 2,
        "delta_cache_limit": 1000,
        "big_file_kib": 524288,
    },
    _git_pack,
    needs=("git",),
    integers=frozenset({"window", "depth", "compression", "threads"}),
)

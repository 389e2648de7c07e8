"""A pattern, and one run of it: ``strided`` by mpiexec, with ROMIO's hints in a file."""

import json
import os
import resource
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from measure.side_by_side import RunFailed

LIMIT_SECONDS = 120.0
"""A run that hangs ends the measurement."""

Measures = dict[str, float]


@dataclass(frozen=True)
class Pattern:
    """How ranks of one host share one file (tests/workloads/README.md)."""

    name: str
    ranks: int
    block_size: int
    """Bytes."""
    blocks: int
    """Of each rank; with one they are segments."""
    nested: int = 0
    """Blocks in a stretch of a pair of ranks; 0 where all ranks' blocks interleave."""
    reads: int = 1
    """How often each rank reads a part; 0 for none."""
    collective: bool = True

    def options(self) -> list[str]:
        """What ``strided`` is told."""
        nested = [f"--nested={self.nested}"] if self.nested else []
        return [
            f"--block-size={self.block_size}",
            f"--blocks={self.blocks}",
            *nested,
            f"--reads={self.reads}" if self.reads else "--write-only",
            "--collective" if self.collective else "--independent",
        ]

    def __str__(self) -> str:
        """Describes the job."""
        return f"{self.ranks} ranks on one node: strided {' '.join(self.options())}"


def run(
    program: Path, pattern: Pattern, hints: Mapping[str, object], folder: Path
) -> tuple[float, Measures]:
    """Seconds that the file was open in, and the whole job's measures; RunFailed without them."""
    written = folder / "hints"
    written.write_text("".join(f"{name} {value}\n" for name, value in hints.items()), "utf-8")
    argv = ["mpiexec.mpich", "-n", str(pattern.ranks), str(program), "--no-slurm"]
    argv += [f"--file={folder / 'shared'}", *pattern.options()]
    # Nobody but ROMIO is to be asked: the machine may have hints of its own.
    environment = {name: value for name, value in os.environ.items() if "ROMIO" not in name}
    environment["ROMIO_HINTS"] = str(written)
    before = _measures()
    try:
        done = subprocess.run(
            argv,
            env=environment,
            text=True,
            capture_output=True,
            timeout=LIMIT_SECONDS,
            check=True,
        )
        told = json.loads(done.stdout)
        elapsed = told["write_seconds"] + (told["read_seconds"] or 0.0)
    except (subprocess.SubprocessError, ValueError, KeyError) as error:
        said = getattr(error, "stderr", "") or ""
        raise RunFailed(f"{' '.join(argv)} with {dict(hints)}: {error}: {said}") from error
    return elapsed, {name: value - before[name] for name, value in _measures().items()}


def _measures() -> Measures:
    """What this process and all that it has waited for have done, by the service's names."""
    text = Path("/proc/self/io").read_text("utf-8")
    moved = {name: float(number) for name, number in (row.split(": ") for row in text.splitlines())}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "asked_read_bytes": moved["rchar"],
        "asked_written_bytes": moved["wchar"],
        "read_calls": moved["syscr"],
        "write_calls": moved["syscw"],
        "user_seconds": used.ru_utime,
        "system_seconds": used.ru_stime,
    }

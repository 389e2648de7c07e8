"""What a program spends, whatever else the machine does: processor time and written bytes."""

import os
from dataclasses import dataclass
from pathlib import Path

from measure_local.programs.program import RunFailed

_SECTOR = 512
"""The kernel counts written bytes in these."""


@dataclass(frozen=True)
class Spent:
    """What one process and the children that it waited for spent."""

    processor: float
    """Seconds, user and system."""
    written: float
    """Bytes of files on a disk, as they become dirty."""

    def seconds(self, bandwidth: float) -> float:
        """The processor time, and that of the bytes at so many a second."""
        return self.processor + self.written / bandwidth


def spent(command: list[str], folder: Path, output: Path = Path(os.devnull)) -> Spent:
    """Runs a command, its output into a file; raises RunFailed where it fails."""
    words = folder / "stderr"
    process = os.posix_spawnp(
        command[0],
        command,
        {**os.environ, "LC_ALL": "C"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, str(words), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ],
    )
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        raise RunFailed(f"{' '.join(command)}: {words.read_text('utf-8', 'replace').strip()}")
    return Spent(usage.ru_utime + usage.ru_stime, usage.ru_oublock * _SECTOR)

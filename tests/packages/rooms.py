"""Clean roots, and what is run in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from series import roots

TREE = Path(__file__).resolve().parents[2]
DIRECTORY = Path("/var/lib/io-autotune-packages")
"""Where roots, fetched sources and built programs are kept."""
ROOTS = DIRECTORY / "roots"


@dataclass(frozen=True)
class Room:
    """A root of a suite with some packages: what is written in it ends with the command."""

    suite: str
    name: str
    packages: tuple[str, ...] = ()
    """On top of the essential ones."""
    binds: Mapping[Path, str] = field(default_factory=dict)
    """Directories of the host, and where the command sees them."""
    network: bool = False

    def root(self) -> Path:
        """Return its root; make it where there is none."""
        return roots.made(f"{self.suite}.{self.name}", self.suite, self.packages, ROOTS)

    def run(
        self,
        command: Sequence[str],
        check: bool = True,
        capture: bool = False,
        binds: Mapping[Path, str] | None = None,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as root in a layer above the root, with nothing of the host but binds.

        Raises:
            subprocess.CalledProcessError: it failed, and ``check`` asks that it does not.

        """
        root = self.root()
        scratch = Path(tempfile.mkdtemp(prefix=f"{root.name}.", dir=ROOTS))
        argv = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
        argv += [] if self.network else ["--net"]
        argv += [sys.executable, "-m", "series.inside", f"--root={root}"]
        argv += [f"--scratch={scratch}/layer"]
        bound = {**self.binds, **(binds or {})}
        argv += [f"--bind={source}:{place}" for source, place in bound.items()]
        assigned = [f"{name}={value}" for name, value in variables.items()]
        argv += ["--", "env", *assigned, *command]
        environment = os.environ | {"PYTHONPATH": str(TREE / "tests")}
        try:
            return subprocess.run(
                argv,
                env=environment,
                check=check,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if capture else None,
                stderr=subprocess.STDOUT if capture else None,
            )
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

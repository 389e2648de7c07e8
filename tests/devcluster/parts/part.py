"""What a part of the cluster is: a process in the foreground, and how to know that it is ready."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devcluster import files
from devcluster.accounts import Account


def _always_ready() -> str | None:
    return None


def _nothing() -> None:
    return


@dataclass(frozen=True)
class Part:
    """A part of the cluster."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    log: Path
    """The log to look at."""
    output: Path
    """Where its standard output and error go; often the same file."""
    account: Account | None = None
    """Who runs it; None is root."""
    inputs: Sequence[Path] = ()
    """Files and directories that it reads at its start: when one changes it is restarted."""
    port: int | None = None
    """The TCP port to show, if it has one."""
    prepare: Callable[[], None] = _nothing
    """Makes what it needs before it starts, idempotently."""
    probe: Callable[[], str | None] = _always_ready
    """Returns None when it is ready, else what is missing."""
    complete: Callable[[], None] = _nothing
    """Makes what needs it running, idempotently."""
    ready_seconds: float = 30.0
    """How long to wait for ``probe``."""
    stop: signal.Signals = signal.SIGTERM
    """The signal that ends it in good order."""
    stop_seconds: float = 10.0
    """How long to wait for its end before it is killed."""

    @property
    def program(self) -> Path:
        """The program's file."""
        return Path(self.argv[0])

    def fingerprint(self) -> str:
        """Return a digest of everything that its running process depends on."""
        inputs = [files.digest_of(path) for path in (self.program, *self.inputs)]
        state = [list(self.argv), dict(self.env), inputs]
        return files.digest(json.dumps(state, sort_keys=True).encode())

"""A clock that jumps, for what believes one: libfaketime's, with its offset in a file."""

from __future__ import annotations

from pathlib import Path

from devcluster import command
from devcluster.errors import ClusterError
from devcluster.paths import Paths
from devcluster.record import Record

_LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


def clock_file(paths: Paths) -> Path:
    """Return the file that holds the clock's offset in seconds, such as ``+3600`` or ``-60``."""
    return paths.etc / "clock"


def env(paths: Paths, record: Record) -> dict[str, str]:
    """Return the environment of a part whose clock can jump while it runs.

    Only the time of day jumps: what measures intervals goes on as ever.

    Raises:
        ClusterError: it was asked for and libfaketime is not installed.

    """
    if not record.variant.clock:
        return command.base_env()
    if not _LIBRARIES:
        raise ClusterError(
            "a clock that jumps was asked for, and there is no libfaketime;"
            " run 'deploy/install-deps test', which installs it"
        )
    return {
        **command.base_env(),
        "LD_PRELOAD": str(_LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(clock_file(paths)),
        # Whole seconds, and one more: it is read again as soon as another second has begun.
        "FAKETIME_CACHE_DURATION": "0",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }

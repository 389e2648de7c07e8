"""munged: the cluster's own, with its own key and socket."""

from __future__ import annotations

import secrets
from pathlib import Path

from devcluster import command, files
from devcluster.parts.part import Part
from devcluster.paths import Paths
from devcluster.ports import HOST

KEY_BYTES = 128
"""Size of the key; munged accepts 32 to 1024 bytes (munged(8))."""


def argv(paths: Paths, name: str, socket: Path, origin: str = HOST) -> list[str]:
    """Return the command of a munged that knows the cluster's key.

    Each has a name of its own, and an ``origin``, the address that its credentials carry.
    """
    return [
        command.find("munged"),
        "--foreground",
        f"--key-file={paths.munge_key}",
        f"--socket={socket}",
        f"--pid-file={paths.run}/{name}.pid",
        f"--log-file={paths.log_of(name)}",
        f"--seed-file={paths.munge_spool}/{name}-seed",
        f"--origin={origin}",
    ]


def part(paths: Paths) -> Part:
    """Return the part; munged runs as root."""

    def prepare() -> None:
        if not paths.munge_key.exists():
            files.write(paths.munge_key, secrets.token_bytes(KEY_BYTES), mode=0o400)

    def probe() -> str | None:
        once = ["munge", f"--socket={paths.munge_socket}", "--no-input", "--output=/dev/null"]
        done = command.run(once, check=False, timeout=5.0)
        return None if done.returncode == 0 else done.stderr.strip()

    return Part(
        name="munged",
        argv=argv(paths, "munged", paths.munge_socket),
        env=command.base_env(),
        log=paths.log_of("munged"),
        output=paths.log_of("munged"),
        inputs=[paths.munge_key],
        prepare=prepare,
        probe=probe,
    )

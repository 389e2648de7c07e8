"""Programs at a terminal: a pseudo-terminal of some width, and a person who types."""

from __future__ import annotations

import errno
import os
import re
import select
import subprocess
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass

from devcluster import accounts

from command.service import Service

SECONDS = 30.0
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Shown:
    """What a terminal was sent."""

    status: int
    text: str

    def plain(self) -> str:
        """Return the text without colours."""
        return COLOUR.sub("", self.text)


def run_at_terminal(
    served: Service, user: str, argv: Sequence[str], columns: int = 80, types: str = ""
) -> Shown:
    """Run a program as a user at a terminal, where this has been typed already."""
    master, slave = os.openpty()
    try:
        termios.tcsetwinsize(slave, (40, columns))
        account = accounts.find(user)
        with subprocess.Popen(
            argv,
            env={**served.env, "TERM": "xterm-256color"},
            cwd="/",
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            user=account.uid,
            group=account.gid,
            extra_groups=account.groups,
        ) as running:
            os.close(slave)
            slave = -1
            os.write(master, types.encode())
            text = _read(master, running)
        return Shown(running.returncode, text.replace("\r\n", "\n"))
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)


def at_terminal(
    served: Service, user: str, argv: Sequence[str], columns: int = 80, types: str = ""
) -> Shown:
    """Run ``io-autotune`` so."""
    return run_at_terminal(served, user, ["io-autotune", *argv], columns, types)


def _read(master: int, running: subprocess.Popen[bytes]) -> str:
    """Return all that comes until nobody has the terminal any more."""
    data = b""
    until = time.monotonic() + SECONDS
    while True:
        ready, _, _ = select.select([master], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            running.kill()
            raise AssertionError(f"{running.args!r} still runs after {SECONDS:g} s: {data!r}")
        try:
            piece = os.read(master, 65536)
        except OSError as error:
            # So Linux says that the other side is closed.
            if error.errno != errno.EIO:
                raise
            piece = b""
        if not piece:
            return data.decode("utf-8", "replace")
        data += piece

"""Programs at a terminal: a pseudo-terminal of some width, and a person who types."""

from __future__ import annotations

import errno
import os
import re
import select
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


@contextmanager
def started(
    served: Service, user: str, argv: Sequence[str], columns: int = 80
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Start a program as a user at a terminal; yield the other side of it, and the program."""
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
            try:
                yield master, running
            finally:
                running.kill()
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)


def run_at_terminal(
    served: Service, user: str, argv: Sequence[str], columns: int = 80, types: str = ""
) -> Shown:
    """Run a program as a user at a terminal, where this has been typed already."""
    with started(served, user, argv, columns) as (master, running):
        os.write(master, types.encode())
        text = read(master, running)
        running.wait(SECONDS)
    return Shown(running.returncode, text.replace("\r\n", "\n"))


def at_terminal(
    served: Service, user: str, argv: Sequence[str], columns: int = 80, types: str = ""
) -> Shown:
    """Run ``io-autotune`` so."""
    return run_at_terminal(served, user, ["io-autotune", *argv], columns, types)


def read(master: int, running: subprocess.Popen[bytes], until: str | None = None) -> str:
    """Return what comes until this text has come, or until nobody has the terminal any more."""
    data = b""
    deadline = time.monotonic() + SECONDS
    while until is None or until.encode() not in data:
        ready, _, _ = select.select([master], [], [], max(0.0, deadline - time.monotonic()))
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
            break
        data += piece
    return data.decode("utf-8", "replace")

"""A progress bar on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TextIO

WIDTH = 30
EVERY = 0.1
"""Seconds between two drawings."""


class Bar:
    """Drawn on stderr if that is a terminal."""

    def __init__(self, what: str, unit: str, stream: TextIO | None = None) -> None:
        """``what`` is being done, counted in ``unit``."""
        self._what = what
        self._unit = unit
        # None where stderr is closed.
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream is not None and self._stream.isatty()
        self._drawn = float("-inf")

    def __call__(self, done: int, total: int) -> None:
        """Draw it; at the end a line ends."""
        now = time.monotonic()
        if not self._shown or (done < total and now - self._drawn < EVERY):
            return
        self._drawn = now
        share = done / total if total else 1.0
        bar = "#" * round(share * WIDTH)
        end = "\n" if done >= total else ""
        line = f"\r{self._what:11} [{bar:{WIDTH}}] {share:4.0%} of {total:,} {self._unit}"
        # A terminal that has gone takes no report with it.
        with contextlib.suppress(OSError):
            self._stream.write(line + end)
            self._stream.flush()

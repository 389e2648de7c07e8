"""A stand-in for a Lustre client: its files in the forms of 2.12, 2.15 and 2.16, which move.

Programs write into a pipe. What is taken from it goes to the targets in RPCs, as many at once and
as long as the client's settings say; the counters grow with that, and with nothing else.
"""

from __future__ import annotations

import fcntl
import os
import select
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

VERSIONS = ("2.12", "2.15", "2.16")
INSTANCE = "ffff9a3b1c2d4000"
TARGETS = tuple(f"scratch-OST{number:04x}-osc-{INSTANCE}" for number in range(2))
DEFAULT = {"max_pages_per_rpc": 256, "max_rpcs_in_flight": 8, "max_dirty_mb": 256}

PAGE = 4096
SCALE = 256
"""So many bytes stand for each one that a program writes: a pipe is slower than Lustre."""
LATENCY = 0.02
"""Seconds from the client to a target and back."""
DISKS = 4e9
"""What all targets take in, bytes a second."""
QUEUE = 512 * 2**20
"""Bytes in flight at which they have become half as quick."""
TICK = 0.005
PIPE = 2**20
"""Bytes that it takes in while this program has to wait."""
LCTL = """#!/bin/sh
cd {sysfs} || exit 1
case "$1 $2" in
'get_param -N') for file in $(echo "$3" | tr . /); do
    [ -e "$file" ] && echo "$file" | tr / .
done ;;
'get_param -n') cat "$(echo "$3" | tr . /)" ;;
'set_param -n') name=${{3%%=*}}; echo "${{3#*=}}" >"$(echo "$name" | tr . /)" ;;
*) exit 2 ;;
esac
"""


def bandwidth(pages: int, rpcs: int, dirty: int) -> float:
    """Return what the client moves with these settings, bytes a second: a knee, then a queue.

    What is in flight is dirty still, so that no more than `dirty` MiB of it go to a target.
    """
    in_flight = len(TARGETS) * min(rpcs * pages * PAGE, dirty * 2**20)
    disks = DISKS / (1 + (in_flight / QUEUE) ** 2)
    return float((((in_flight / LATENCY) ** -4) + disks**-4) ** -0.25)


def best() -> float:
    """Return the most that it moves with any settings."""
    most = DEFAULT["max_dirty_mb"]
    return max(bandwidth(1 << pages, 1 << rpcs, most) for pages in range(11) for rpcs in range(9))


@dataclass
class _Sent:
    """What went to one target."""

    sizes: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Of the RPCs: the smallest, the largest, the sum, in bytes."""
    squares: int = 0
    pages: Counter[int] = field(default_factory=Counter)
    """RPCs by their pages."""
    in_flight: Counter[int] = field(default_factory=Counter)
    """RPCs by how many were on their way."""

    def add(self, rpcs: int, size: int, in_flight: int) -> None:
        least, most, total = self.sizes
        self.sizes = [min(least or size, size), max(most, size), total + rpcs * size]
        self.squares += rpcs * size * size
        self.pages[size // PAGE] += rpcs
        self.in_flight[in_flight] += rpcs


class LustreClient:
    """The files of one client, below a directory in place of / ."""

    def __init__(self, root: Path, version: str) -> None:
        """Lay out the files of this version; nothing has moved yet."""
        self.sys, self.proc = root / "sys", root / "proc"
        self.lctl, self.pipe = root / "lctl", root / "mount"
        self._version = version
        # 2.12 still has its statistics in /proc.
        older = version == "2.12"
        self._told = self.proc / "fs/lustre" if older else self.sys / "kernel/debug/lustre"
        self._began = time.time()
        self._sent = {target: _Sent() for target in TARGETS}
        self._given = _Sent()
        self._owed = 0.0
        root.mkdir()
        root.chmod(0o755)
        os.mkfifo(self.pipe)
        self.pipe.chmod(0o666)
        for target in TARGETS:
            (self._told / "osc" / target).mkdir(parents=True)
            self._sysfs(target).mkdir(parents=True)
            for name, value in DEFAULT.items():
                (self._sysfs(target) / name).write_text(f"{value}\n", encoding="ascii")
        (self._told / "llite" / f"scratch-{INSTANCE}").mkdir(parents=True)
        sysfs = self._sysfs(TARGETS[0]).parent.parent
        self.lctl.write_text(LCTL.format(sysfs=sysfs), encoding="ascii")
        self.lctl.chmod(0o755)
        self._tell()

    def _sysfs(self, target: str) -> Path:
        return self.sys / "fs/lustre/osc" / target

    def settings(self, target: str = TARGETS[0]) -> dict[str, int]:
        """Return what a target has in force, of the settings that decide."""
        return {name: self._setting(target, name) for name in DEFAULT}

    def set(self, name: str, value: int) -> None:
        """Set what all targets have, as an admin would before any job."""
        for target in TARGETS:
            (self._sysfs(target) / name).write_text(f"{value}\n", encoding="ascii")

    def _setting(self, target: str, name: str) -> int:
        # While somebody writes it a file is empty, or has a rest of its last text after the first
        # line: the kernel's never have.
        words = (self._sysfs(target) / name).read_text("ascii").split()
        return int(words[0]) if words else DEFAULT[name]

    def rpcs_by_pages(self) -> dict[int, int]:
        """Return what `rpc_stats` tells of the first target's writes."""
        text = (self._told / "osc" / TARGETS[0] / "rpc_stats").read_text("ascii")
        histogram = text.split("pages per rpc")[1].split("\n\n")[0].splitlines()[1:]
        rows = (line.split("|") for line in histogram)
        return {int(left.split(":")[0]): int(right.split()[0]) for left, right in rows}

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Let programs write, until the end."""
        # Open for writing too: it does not end with each program.
        pipe = os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK)
        over = threading.Event()
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)
        thread = threading.Thread(target=self._serve, args=(pipe, over))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            os.close(pipe)

    def _serve(self, pipe: int, over: threading.Event) -> None:
        last = time.monotonic()
        while not over.wait(TICK):
            now = time.monotonic()
            waits, _, _ = select.select([pipe], [], [], 0)
            if waits:
                self._take(pipe, now - last)
            last = now

    def _take(self, pipe: int, seconds: float) -> None:
        """Take what the path can in a time from programs, and send it on."""
        settings = self.settings()
        pages, rpcs = settings["max_pages_per_rpc"], settings["max_rpcs_in_flight"]
        can = int(bandwidth(pages, rpcs, settings["max_dirty_mb"]) * seconds / SCALE)
        taken = 0
        while taken < can:
            try:
                data = os.read(pipe, min(can - taken, 2**16))
            except BlockingIOError:
                break
            self._given.add(1, SCALE * len(data), 0)
            taken += len(data)
        self._owed += SCALE * taken
        size = pages * PAGE
        for sent in self._sent.values():
            whole = int(self._owed / len(TARGETS) / size)
            if whole:
                sent.add(whole, size, rpcs)
        self._owed %= len(TARGETS) * size
        self._tell()

    def _tell(self) -> None:
        for target, sent in self._sent.items():
            place = self._told / "osc" / target
            _write(place / "stats", self._header("") + self._stats(sent, "ost_write"))
            _write(place / "rpc_stats", self._header(":") + _rpc_stats(sent))
            _write(self._sysfs(target) / "cur_dirty_bytes", f"{int(self._owed) // len(TARGETS)}\n")
        place = self._told / "llite" / f"scratch-{INSTANCE}"
        _write(place / "stats", self._header("") + self._stats(self._given, "write"))

    def _header(self, colon: str) -> str:
        now = time.time()
        times = {"snapshot_time": now}
        if self._version != "2.12":
            times |= {"start_time": self._began, "elapsed_time": now - self._began}
        lines = (f"{name + colon:<25} {moment:.9f} secs.nsecs\n" for name, moment in times.items())
        return "".join(lines)

    def _stats(self, sent: _Sent, call: str) -> str:
        """As lprocfs_stats_seq_show of Lustre writes it: what never happened has no line."""
        count = sum(sent.pages.values())
        if not count:
            return ""
        least, most, total = sent.sizes
        squares = "" if self._version == "2.12" else f" {sent.squares}"
        wait = int(LATENCY * 1e6)
        return (
            f"{'req_waittime':<25} {count} samples [usecs] {wait} {wait} {count * wait}"
            f" {count * wait**2}\n"
            f"{'write_bytes':<25} {count} samples [bytes] {least} {most} {total}{squares}\n"
            f"{call:<25} {count} samples [usecs] {wait} {wait} {count * wait} {count * wait**2}\n"
        )


def _rpc_stats(sent: _Sent) -> str:
    parts = ["read RPCs in flight:  0\nwrite RPCs in flight: 0\n"]
    for title, histogram in (("pages per rpc", sent.pages), ("rpcs in flight", sent.in_flight)):
        parts.append(f"\n\t\t\tread\t\t\twrite\n{title:<22}rpcs   % cum % |       rpcs   % cum %\n")
        total, seen = sum(histogram.values()), 0
        for place, count in sorted(histogram.items()):
            seen += count
            shares = f"{100 * count // total:3} {100 * seen // total:3}"
            parts.append(f"{place}:\t\t{0:10} {0:3} {0:3}   | {count:10} {shares}\n")
    return "".join(parts)


def _write(path: Path, text: str) -> None:
    """Replace a file's text at once: who has it open reads on, and never a part."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(text.encode("ascii"))
        file.truncate()

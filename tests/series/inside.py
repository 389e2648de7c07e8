"""Runs a command inside a suite's root, in namespaces of its own: ``python3 -m series.inside``.

Call it by ``unshare --mount --pid --net --uts --ipc --fork --kill-child``: it is then the first
process of a PID namespace, and all that runs below it, every mount and the network end with it.
The root itself stays as it is: an overlay takes what is written. It is entered by pivot_root(2),
because chroot(2) is undone by slurmstepd, which joins a job's namespaces (setns(2)).
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_MNT_DETACH = 2
_SYS_PIVOT_ROOT = 155
"""x86-64's."""
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
"""netdevice(7)."""
DEVICES = ("/dev", "/sys")
"""The host's, with all that is mounted below."""
FRESH = {"/run": "755", "/tmp": "1777"}
"""Empty, in memory, and their modes."""


def main() -> int:
    """Enter the root, run the command, and return its exit status."""
    parser = argparse.ArgumentParser(prog="series.inside")
    parser.add_argument("--root", type=Path, required=True, help="the suite's root")
    parser.add_argument("--scratch", type=Path, required=True, help="where the overlay writes")
    parser.add_argument("--bind", action="append", default=[], help="DIRECTORY or FROM:TO")
    parser.add_argument("--chdir", default="/")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if os.getpid() != 1:
        parser.error("this is no PID namespace of its own: call it by unshare --pid --fork")
    # Its namespaces were made on one processor (processors.py); what runs in them may use all.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    enter(options.root, options.scratch, options.bind)
    os.chdir(options.chdir)
    return run(options.command)


def mount(*arguments: str) -> None:
    """Mount something."""
    subprocess.run(["mount", *arguments], check=True)


def enter(root: Path, scratch: Path, binds: list[str]) -> None:
    """Make the overlay of the root this process's root directory."""
    merged = overlay(root, scratch)
    mount("-t", "proc", "proc", f"{merged}/proc")
    for device in DEVICES:
        mount("--rbind", device, f"{merged}{device}")
    fill(merged)
    # The host's: tests that change the kernel's settings take turns, in whatever root.
    Path(f"{merged}/run/lock").mkdir()
    mount("--bind", "/run/lock", f"{merged}/run/lock")
    bind_all(binds, merged)
    pivot(merged)
    socket.sethostname("localhost")
    up("lo")


def overlay(root: Path, scratch: Path) -> Path:
    """Mount an overlay of the root, which takes what is written, and return where."""
    upper, work, merged = (scratch / name for name in ("upper", "work", "merged"))
    for directory in (work, merged):
        shutil.rmtree(directory, ignore_errors=True)
    for directory in (upper, work, merged):
        directory.mkdir(parents=True, exist_ok=True)
    mount("--make-rprivate", "/")
    layers = f"lowerdir={root},upperdir={upper},workdir={work}"
    mount("-t", "overlay", "overlay", "-o", layers, str(merged))
    return merged


def fill(merged: Path) -> None:
    """Mount what is fresh in each root."""
    for fresh, mode in FRESH.items():
        mount("-t", "tmpfs", "-o", f"mode={mode}", "tmpfs", f"{merged}{fresh}")


def bind_all(binds: list[str], merged: Path) -> None:
    """Mount directories of the host, each DIRECTORY or FROM:TO."""
    for bind in binds:
        source, _, target = bind.partition(":")
        place = Path(f"{merged}{target or source}")
        place.mkdir(parents=True, exist_ok=True)
        mount("--bind", source, str(place))


def pivot(merged: Path) -> None:
    """Make a mounted root this process's root directory.

    Raises:
        OSError: the kernel refuses it.

    """
    old = merged / "mnt"
    if _libc.syscall(_SYS_PIVOT_ROOT, str(merged).encode(), str(old).encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"pivot_root: {os.strerror(number)}")
    os.chdir("/")
    subprocess.run(["umount", "--lazy", "/mnt"], check=True)


def up(interface: str) -> None:
    """Bring an interface up, without a program that a root may lack."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        name = interface.encode()
        found = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sh14x", name, 0))
        flags = struct.unpack("16sh14x", found)[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", name, flags | _IFF_UP))


def run(command: list[str]) -> int:
    """Run a command, reap what it leaves, and return its exit status."""
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        **{name: value for name, value in os.environ.items() if name.startswith("IO_AUTOTUNE_")},
    }
    child = subprocess.Popen(command, env=environment)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: child.send_signal(number))
    while True:
        # As the first process it inherits every orphan.
        pid, status = os.wait()
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())

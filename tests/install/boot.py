"""Boots a suite's root: systemd is then the first process of namespaces of its own.

Call it as ``unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child python3 -m
install.boot``: when unshare ends, everything on the host ends.
"""

from __future__ import annotations

import argparse
import os
import socket
from pathlib import Path

from series.inside import bind_all, fill, mount, overlay, pivot, up

NODES = ("null", "zero", "full", "random", "urandom", "tty", "fuse")
"""Devices that a host has; those of the machine that it runs on."""
LINKS = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "fd/0",
    "stdout": "fd/1",
    "stderr": "fd/2",
}


def main() -> None:
    """Enter the root and become its systemd."""
    parser = argparse.ArgumentParser(prog="install.boot")
    parser.add_argument("--root", type=Path, required=True, help="the suite's root")
    parser.add_argument("--scratch", type=Path, required=True, help="where the overlay writes")
    parser.add_argument("--name", required=True, help="the host's")
    parser.add_argument("--bind", action="append", default=[], help="FROM:TO")
    options = parser.parse_args()
    if os.getpid() != 1:
        parser.error("this is no PID namespace of its own: call it by unshare --pid --fork")
    merged = overlay(options.root, options.scratch)
    mount("-t", "proc", "proc", f"{merged}/proc")
    mount("-t", "sysfs", "sysfs", f"{merged}/sys")
    mount("-t", "cgroup2", "cgroup2", f"{merged}/sys/fs/cgroup")
    fill(merged)
    devices(merged / "dev")
    bind_all(options.bind, merged)
    pivot(merged)
    socket.sethostname(options.name)
    up("lo")
    environment = {"container": "io-autotune", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    arguments = ["/sbin/init", "--log-target=console", "--show-status=false"]
    os.execve(arguments[0], arguments, environment)


def devices(place: Path) -> None:
    """Fill a host's /dev."""
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(place))
    for directory in ("pts", "shm"):
        (place / directory).mkdir()
    own = "newinstance,ptmxmode=0666,mode=620,gid=5"
    mount("-t", "devpts", "-o", own, "devpts", str(place / "pts"))
    mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(place / "shm"))
    for name, target in LINKS.items():
        (place / name).symlink_to(target)
    for name in NODES:
        if Path("/dev", name).exists():
            (place / name).touch()
            mount("--bind", f"/dev/{name}", str(place / name))


if __name__ == "__main__":
    main()

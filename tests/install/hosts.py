"""Whole hosts on one machine: each a suite's root that systemd has booted, on one network."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from packages.rooms import TREE

NETWORK = "10.77.0"
BOOT_SECONDS = 90.0
_NAMESPACES = ("--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
T = TypeVar("T")


def until(what: str, ask: Callable[[], T | None], seconds: float = 60.0) -> T:
    """Ask again and again until there is an answer, and return it.

    Raises:
        AssertionError: there was none in time.

    """
    deadline = time.monotonic() + seconds
    while True:
        found = ask()
        if found is not None and found is not False:
            return found
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.2)


class Network:
    """A bridge in a network namespace of its own: nothing of it is the machine's."""

    def __init__(self, name: str) -> None:
        """Make it."""
        self.name = name
        _ip("netns", "add", name)
        self._inside("link", "add", "bridge", "type", "bridge")
        self._inside("link", "set", "bridge", "up")

    def _inside(self, *arguments: str) -> None:
        _ip("-n", self.name, *arguments)

    def join(self, pid: int, number: int) -> None:
        """Give the host whose first process this is an address."""
        port = f"host{number}"
        peer = ("peer", "name", "eth0", "netns", str(pid))
        self._inside("link", "add", port, "type", "veth", *peer)
        self._inside("link", "set", port, "master", "bridge", "up")
        enter = ["nsenter", f"--target={pid}", "--net", "ip"]
        for said in (f"address add {NETWORK}.{number}/24 dev eth0", "link set eth0 up"):
            subprocess.run([*enter, *said.split()], check=True)

    def close(self) -> None:
        """Remove it."""
        _ip("netns", "delete", self.name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _control_groups() -> Path:
    """Return where version 2 of control groups is mounted on this machine.

    Raises:
        AssertionError: nowhere.

    """
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(place)
    raise AssertionError("no control groups of version 2 are mounted: systemd cannot be booted")


@dataclass
class Host:
    """A host of the site."""

    name: str
    number: int
    root: Path
    scratch: Path
    binds: Mapping[Path, str] = field(default_factory=dict)
    """Directories of the machine, and where the host sees them."""
    _unshare: subprocess.Popen[bytes] | None = None
    _pid: int = 0

    @property
    def address(self) -> str:
        """Its address in the site's network."""
        return f"{NETWORK}.{self.number}"

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file before the host is booted."""
        file = self.scratch / "upper" / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)

    def put(self, source: Path, path: str) -> None:
        """Copy a program to it before it is booted."""
        file = self.scratch / "upper" / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, file)

    def mask(self, *units: str) -> None:
        """Keep units from being started, before the host is booted."""
        directory = self.scratch / "upper/etc/systemd/system"
        directory.mkdir(parents=True, exist_ok=True)
        for unit in units:
            (directory / unit).symlink_to("/dev/null")

    def boot(self, network: Network) -> None:
        """Boot it, and wait until systemd has started what is enabled."""
        self.write("/etc/hostname", f"{self.name}\n")
        group = self._group
        group.mkdir(exist_ok=True)
        argv = ["unshare", *_NAMESPACES, "--fork", "--kill-child"]
        argv += [sys.executable, "-m", "install.boot", f"--root={self.root}"]
        argv += [f"--scratch={self.scratch}", f"--name={self.name}"]
        argv += [f"--bind={source}:{place}" for source, place in self.binds.items()]
        # It ends with this process, however that ends.
        argv = ["setpriv", "--pdeathsig=KILL", *argv]
        joining = f"echo $$ >{shlex.quote(str(group))}/cgroup.procs; exec {shlex.join(argv)}"
        with (self.scratch / "console").open("wb") as console:
            self._unshare = subprocess.Popen(
                ["sh", "-c", joining],
                env=os.environ | {"PYTHONPATH": str(TREE / "tests")},
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
            )
        self._pid = until(f"{self.name}'s first process", self._first, BOOT_SECONDS)
        network.join(self._pid, self.number)
        until(f"systemd of {self.name}", self._up, BOOT_SECONDS)

    @property
    def _group(self) -> Path:
        return _control_groups() / f"io-autotune-{self.scratch.parent.name}-{self.name}"

    def _first(self) -> int | None:
        """Return systemd's pid as the machine knows it."""
        assert self._unshare is not None
        console = self.scratch / "console"
        assert self._unshare.poll() is None, console.read_text(encoding="utf-8")
        pid = self._unshare.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        for child in children:
            with contextlib.suppress(OSError):
                if Path(f"/proc/{child}/comm").read_text(encoding="utf-8").strip() == "systemd":
                    return int(child)
        return None

    def _up(self) -> bool:
        said = self.run("systemctl is-system-running || true")
        return said.strip() in ("running", "degraded")

    def run(self, script: str, user: str = "root", check: bool = True) -> str:
        """Run a script of bash in a user's home, and return what it prints on both streams.

        Raises:
            AssertionError: it failed; with what it printed.

        """
        home = "/root" if user == "root" else f"/home/{user}"
        argv = ["nsenter", f"--target={self._pid}", *_NAMESPACES, "--wd"]
        argv += ["env", "--ignore-environment", f"PATH={_PATH}", "LANG=C.UTF-8", "TERM=dumb"]
        argv += ["DEBIAN_FRONTEND=noninteractive", f"HOME={home}", f"USER={user}"]
        script = f"cd {home}\n{script}"
        if user == "root":
            argv += ["bash", "-euc", script]
        else:
            # As after a login: with what /etc/profile.d has.
            argv += ["runuser", f"--user={user}", "--", "bash", "-elc", script]
        done = subprocess.run(
            argv,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=600.0,
        )
        assert not check or done.returncode == 0, f"{self.name}: {script}\n{done.stdout}"
        return done.stdout

    def halt(self) -> None:
        """End everything on it."""
        if self._unshare is not None:
            self._unshare.send_signal(signal.SIGKILL)
            self._unshare.wait()
            until(f"the end of {self.name}", self._gone, 20.0)

    def _gone(self) -> bool:
        for directory, _names, _files in os.walk(self._group, topdown=False):
            try:
                Path(directory).rmdir()
            except OSError:
                return False
        return True

    def forget(self) -> None:
        """Remove what it has written."""
        shutil.rmtree(self.scratch, ignore_errors=True)

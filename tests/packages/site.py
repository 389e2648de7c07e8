"""A clean root of a suite, and packages to install there: of this tree, and of a later version."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from packages.rooms import DIRECTORY, Room
from packages.suites import Suite

PACKAGES = (
    "io-autotune-common",
    "io-autotune-service",
    "io-autotune",
    "io-autotune-node",
    "io-autotune-collector",
    "slurm-spank-io-autotune",
    "slurm-spank-io-autotune-stub",
    "io-autotune-report",
)
SMALL = PACKAGES[:-1]
"""Without the report, which takes longer than all others."""
LATER = "+later"
"""On the end of a version: the next one's."""
HEAD = """
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
# The root is thrown away: nothing waits for the disk.
echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/unsafe-io
install() {
    apt-get install -o DPkg::Path="$PATH" --yes --no-install-recommends "$@" >/tmp/apt.log 2>&1 || {
        cat /tmp/apt.log; return 1
    }
}
# systemd does not run here: what it is asked is written down.
systemd_seems_to_run() {
    mkdir -p /run/systemd/system
    printf '#!/bin/sh\\necho "$@" >>/tmp/asked\\n' >/usr/local/bin/systemctl
    chmod 755 /usr/local/bin/systemctl
    : >/tmp/asked
}
"""


@dataclass(frozen=True)
class Site:
    """Packages, and clean roots to try them in."""

    suite: Suite
    now: Path
    """Directory of the packages of this tree."""
    later: Path
    """Directory of the same packages with a later version, and another comment in client.toml."""

    def run(self, script: str) -> str:
        """Run a script as root in a clean root, and return what it prints.

        Raises:
            AssertionError: it failed; with what it printed.

        """
        cache = DIRECTORY / "apt" / self.suite.name
        for part in ("archives/partial", "lists/partial"):
            (cache / part).mkdir(parents=True, exist_ok=True)
        binds = {
            self.now: "/now",
            self.later: "/later",
            cache / "archives": "/var/cache/apt/archives",
            cache / "lists": "/var/lib/apt/lists",
        }
        room = Room(self.suite.name, "clean", network=True)
        said = room.run(
            ["/bin/bash", "-euc", HEAD + script], check=False, capture=True, binds=binds
        )
        assert said.returncode == 0, said.stdout
        return said.stdout


def prepared(suite: Suite, built: Path, directory: Path) -> Site:
    """Return a site of the packages that were built into a directory."""
    now, later = directory / "now", directory / "later"
    for each in (now, later):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir(parents=True)
    for name in PACKAGES:
        (deb,) = built.glob(f"{name}_*.deb")
        shutil.copy2(deb, now / f"{name}.deb")
        _renumbered(now / f"{name}.deb", later / f"{name}.deb", _version(deb))
    site = Site(suite, now, later)
    site.run("apt-get update --quiet=2 -o Acquire::Check-Valid-Until=false")
    return site


def names(where: str, packages: Iterable[str] = PACKAGES) -> str:
    """Return packages as apt takes files."""
    return " ".join(f"/{where}/{name}.deb" for name in packages)


def _version(deb: Path) -> str:
    command = ["dpkg-deb", "--field", str(deb), "Version"]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return said.stdout.strip()


def _renumbered(deb: Path, later: Path, version: str) -> None:
    """Pack a package anew with a later version, as the next build would make it."""
    with tempfile.TemporaryDirectory(dir=DIRECTORY) as scratch:
        subprocess.run(["dpkg-deb", "--raw-extract", str(deb), scratch], check=True)
        for control in (Path(scratch) / "DEBIAN").iterdir():
            text = control.read_text(encoding="utf-8")
            control.write_text(text.replace(version, version + LATER), encoding="utf-8")
        client = Path(scratch) / "etc/io-autotune/client.toml"
        if client.exists():
            client.write_text(client.read_text(encoding="utf-8") + "# later\n", encoding="utf-8")
        command = [
            "dpkg-deb",
            "-Zzstd",
            "-z1",
            "--root-owner-group",
            "--build",
            scratch,
            str(later),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def build(arguments: Iterable[str]) -> None:
    """Run the command that `make packages` runs."""
    root = Path(__file__).resolve().parents[1]
    environment = os.environ | {"PYTHONPATH": str(root)}
    subprocess.run([sys.executable, "-m", "packages", *arguments], check=True, env=environment)

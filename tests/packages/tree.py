"""The tree that packages are made of: its files as git knows them, its version, its time."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from io import BytesIO
from pathlib import Path

from packages.rooms import TREE
from packages.suites import Suite

RUST = (
    "Cargo.toml",
    "Cargo.lock",
    "tuner-service",
    "migrations",
    "deploy/etc",
)
"""What the programs in Rust are compiled from."""


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(TREE), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@dataclass(frozen=True)
class Source:
    """One state of the tree."""

    commit: str
    """It has tracked files as they are now, committed or not."""
    version: str
    """``0.3.0`` at the tag of that name, else ``0.3.0+gitN.HASH`` after N commits."""
    time: int
    """Of the last commit, in seconds since 1970: the only time that packages have."""

    def debian(self, suite: Suite) -> str:
        """Return the version of a suite's packages."""
        return f"{self.version}-1~deb{suite.release}"

    def rpm(self) -> str:
        """Return the version of RPMs: after a release's, as in Debian."""
        return self.version.replace("+", "^")

    def rust(self) -> str:
        """Return a digest of what the programs are compiled from, and by what."""
        listed = _git("ls-tree", "-r", self.commit, *RUST)
        compiler = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True)
        return hashlib.sha256((listed + compiler.stdout).encode()).hexdigest()[:16]

    def lock(self, path: str) -> str:
        """Return a digest of a file."""
        return _git("rev-parse", f"{self.commit}:{path}")[:16]

    def write(self, directory: Path) -> None:
        """Write its files into a directory that gets nothing else.

        Raises:
            subprocess.CalledProcessError: git failed.

        """
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        command = ["git", "-C", str(TREE), "archive", "--format=tar", self.commit]
        packed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(directory, filter="fully_trusted")

    def changelog(self, suite: Suite, maintainer: str) -> str:
        """Return debian/changelog: one entry, because CHANGELOG.md comes along."""
        return (
            f"io-autotune ({self.debian(suite)}) {suite.name}; urgency=medium\n\n"
            "  * What changed: CHANGELOG.md, installed as changelog.gz.\n\n"
            f" -- {maintainer}  {format_datetime(datetime.fromtimestamp(self.time, UTC))}\n"
        )


def at(commit: str) -> Source:
    """Return the tree of a commit."""
    whole = _git("rev-parse", f"{commit}^{{commit}}")
    return _committed(whole, released(_git("show", f"{whole}:Cargo.toml")))


def released(cargo: str) -> str:
    """Return the version that a tree's Cargo.toml names."""
    version: str = tomllib.loads(cargo)["workspace"]["package"]["version"]
    return version


def current() -> Source:
    """Return the tree as it is: tracked files, with changes that are not committed yet."""
    head = _git("rev-parse", "HEAD")
    version = released((TREE / "Cargo.toml").read_text(encoding="utf-8"))
    changed = _git("stash", "create")
    if not changed:
        return _committed(head, version)
    return Source(changed, f"{_untagged(head, version)}.changed", _time(head))


def _committed(commit: str, version: str) -> Source:
    tagged = version in _git("tag", "--points-at", commit).splitlines()
    return Source(commit, version if tagged else _untagged(commit, version), _time(commit))


def _untagged(commit: str, version: str) -> str:
    count = _git("rev-list", "--count", commit)
    return f"{version}+git{count}.{commit[:7]}"


def _time(commit: str) -> int:
    return int(_git("show", "--no-patch", "--format=%ct", commit))

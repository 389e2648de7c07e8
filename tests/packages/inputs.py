"""What is fetched before a clean root is entered, by lock files: it has no network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from packages.rooms import DIRECTORY, TREE
from packages.suites import Suite
from packages.tree import Source

TOOLS = TREE / "build/venv-packages"
"""setuptools and the tool for Python's bill of materials, from tests/packages/requirements.txt."""


def toolchain() -> Path:
    """Return the directory of the Rust compiler in use: no suite of Debian has a new enough one."""
    command = ["rustc", "--print", "sysroot"]
    said = subprocess.run(command, cwd=TREE, check=True, stdout=subprocess.PIPE, text=True)
    return Path(said.stdout.strip())


def crates(source: Source, tree: Path) -> Path:
    """Return a directory with the sources of every crate in Cargo.lock of a written tree."""
    place = DIRECTORY / "crates" / source.lock("Cargo.lock")
    if not place.exists():
        new = place.with_name(f"{place.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        command = ["cargo", "vendor", "--quiet", "--locked", "--versioned-dirs", str(new)]
        subprocess.run(command, cwd=tree, check=True, stdout=subprocess.DEVNULL)
        new.rename(place)
    return place


def wheels(source: Source, tree: Path, suite: Suite) -> Path:
    """Return a directory with the report's wheels, by the hashes of requirements.txt."""
    report = tree / "analysis/report"
    pinned = source.lock("analysis/report/requirements.txt")
    place = DIRECTORY / "wheels" / f"{pinned}-{suite.python}"
    if not place.exists():
        new = place.with_name(f"{place.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--require-hashes", "--only-binary=:all:", f"--python-version={suite.python}"]
        command += [f"--dest={new}", f"--requirement={report / 'requirements.txt'}"]
        subprocess.run(command, check=True)
        new.rename(place)
    return place


def product(source: Source, tree: Path, into: Path) -> None:
    """Build the report itself as a wheel."""
    command = [str(TOOLS / "bin/python"), "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", f"--wheel-dir={into}", str(tree / "analysis/report")]
    subprocess.run(command, check=True, env={"SOURCE_DATE_EPOCH": str(source.time)})

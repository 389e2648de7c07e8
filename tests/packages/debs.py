"""Debian packages: built in a clean root of each suite, for whose Slurm the plugin is compiled."""

from __future__ import annotations

import shutil
from pathlib import Path

from packages import inputs
from packages.rooms import Room
from packages.suites import Suite
from packages.tree import Source

TOOLS = ("build-essential", "debhelper", "help2man", "libslurm-dev", "lintian", "python3-pip")
"""What control's Build-Depends names, and lintian."""
BUILD = """
cd /build/source
dpkg-buildpackage --build=binary --no-sign --no-pre-clean
chown --recursive --reference=/build/source /build
"""


def room(suite: Suite) -> Room:
    """Return the room in which a suite's packages are built."""
    return Room(suite.name, "build", TOOLS)


def assemble(source: Source, suite: Suite, programs: Path, notices: Path, work: Path) -> Path:
    """Write the tree with all that a build without a network needs, and return where it is."""
    tree = work / "source"
    source.write(tree)
    shutil.copytree(programs, tree / "programs")
    shutil.copytree(notices, tree / "licences")
    shutil.copytree(inputs.wheels(source, tree, suite), tree / "wheels")
    inputs.product(source, tree, tree / "wheels")
    return tree


def build(
    source: Source, suite: Suite, programs: Path, notices: Path, work: Path, out: Path
) -> list[Path]:
    """Build a suite's packages below a work directory, and put them into another.

    Raises:
        subprocess.CalledProcessError: dpkg-buildpackage failed.

    """
    tree = assemble(source, suite, programs, notices, work)
    shutil.copytree(tree / "deploy/packages/debian", tree / "debian")
    control = (tree / "debian/control").read_text(encoding="utf-8")
    maintainer = next(line for line in control.splitlines() if line.startswith("Maintainer: "))
    text = source.changelog(suite, maintainer.removeprefix("Maintainer: "))
    (tree / "debian/changelog").write_text(text, encoding="utf-8")
    room(suite).run(
        ["/bin/bash", "-euc", BUILD],
        binds={work: "/build"},
        SOURCE_DATE_EPOCH=str(source.time),
        DEB_BUILD_OPTIONS="nocheck",
        TZ="UTC",
    )
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    made = sorted([*work.glob("*.deb"), *work.glob("*.buildinfo"), *work.glob("*.changes")])
    for file in made:
        shutil.copy2(file, out / file.name)
    return [out / file.name for file in made]

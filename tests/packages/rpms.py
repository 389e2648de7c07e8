"""RPMs for EL 9: rpmbuild of Debian, in a clean root whose Slurm has the series that EPEL 9 has."""

from __future__ import annotations

import shutil
import tarfile
from datetime import UTC, datetime
from pathlib import Path

from packages.debs import assemble
from packages.rooms import Room
from packages.suites import OLDEST
from packages.tree import Source

TOOLS = (
    "cpio",
    "file",
    "gcc",
    "help2man",
    "libc6-dev",
    "libpq5",
    "libslurm-dev",
    "make",
    "python3-pip",
    "rpm",
    "rpmlint",
)
NAME = "el9"
"""Of the directory that gets them, as a suite's."""
ROOM = Room(OLDEST.name, "rpm", TOOLS)
BUILD = """
library=$(dpkg-query -W -f '${Depends}' libslurm-dev | grep -oE 'libslurm[0-9]+' | tr -dc 0-9)
rpmbuild -bb --quiet --nodeps --target x86_64 \\
    --define "_topdir /build/rpm" --define "_sourcedir /build" --define "_rpmdir /build/rpms" \\
    --define "io_version $VERSION" --define "io_date $DATE" \\
    --define "slurm_library libslurm.so.$library()(64bit)" \\
    --define "_buildhost localhost" --define "use_source_date_epoch_as_buildtime 1" \\
    --define "clamp_mtime_to_source_date_epoch 1" --define "_binary_payload w9.zstdio" \\
    /build/source/deploy/packages/rpm/io-autotune.spec
chown --recursive --reference=/build/source /build
"""


def build(source: Source, programs: Path, notices: Path, work: Path, out: Path) -> list[Path]:
    """Build the packages below a work directory, and put them into another.

    Raises:
        subprocess.CalledProcessError: rpmbuild failed.

    """
    tree = assemble(source, OLDEST, programs, notices, work)
    with tarfile.open(work / "io-autotune-source.tar", "w") as archive:
        archive.add(tree, arcname=".")
    epoch = str(source.time)
    ROOM.run(
        ["/bin/bash", "-euc", BUILD],
        binds={work: "/build"},
        SOURCE_DATE_EPOCH=epoch,
        VERSION=source.rpm(),
        DATE=datetime.fromtimestamp(source.time, UTC).strftime("%a %b %d %Y"),
        TZ="UTC",
    )
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    made = sorted((work / "rpms").rglob("*.rpm"))
    for file in made:
        shutil.copy2(file, out / file.name)
    return [out / file.name for file in made]

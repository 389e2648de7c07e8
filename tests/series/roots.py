"""Roots of Debian's suites: made by mmdebstrap, kept, and left as they are by what runs inside."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from series.suites import EVERY, GROUPS, Suite

TREE = Path(__file__).resolve().parents[2]
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SKIPPED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
"""What no test reads."""
STAMP = "io-autotune-packages"
"""In a root: which packages it was made with."""


def packages(suite: Suite) -> list[str]:
    """Return the packages of a suite's root."""
    argv = [str(TREE / "deploy/install-deps"), "--list", *GROUPS]
    listed = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return sorted({*listed, *EVERY, *suite.more} - {*suite.without})


def ensure(suite: Suite, directory: Path) -> Path:
    """Return a suite's root below a directory; make it where there is none with these packages."""
    return made(suite.name, suite.name, packages(suite), directory, SKIPPED)


def made(
    name: str, suite: str, wanted: Sequence[str], directory: Path, skipped: Sequence[str] = ()
) -> Path:
    """Return the root of this name below a directory; make it where none has these packages.

    Raises:
        subprocess.CalledProcessError: mmdebstrap failed.

    """
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
    root = directory / name
    stamp = root / STAMP
    if stamp.exists() and stamp.read_text(encoding="ascii").strip() == digest:
        return root
    shutil.rmtree(root, ignore_errors=True)
    new = directory / f"{name}.new"
    shutil.rmtree(new, ignore_errors=True)
    directory.mkdir(parents=True, exist_ok=True)
    options = [
        'APT::Install-Recommends "false"',
        # The index of testing is renewed several times a day, and may be older than it allows.
        'Acquire::Check-Valid-Until "false"',
    ]
    argv = ["mmdebstrap", "--mode=root", "--variant=minbase", f"--keyring={KEYRING}"]
    argv += [f"--aptopt={option}" for option in options]
    argv += [f"--dpkgopt=path-exclude={path}" for path in skipped]
    # No service is started, and no database is made.
    settings = "$1/etc/postgresql-common/createcluster.d"
    line = "create_main_cluster = false"
    argv += [f"--essential-hook=mkdir -p {settings}; echo {line} > {settings}/none.conf"]
    if wanted:
        argv += [f"--include={','.join(wanted)}"]
    subprocess.run([*argv, suite, str(new)], check=True)
    (new / STAMP).write_text(f"{digest}\n", encoding="ascii")
    new.rename(root)
    return root

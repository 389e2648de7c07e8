"""Checksums of what was built, signed with the releaser's key."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

NAME = "SHA256SUMS"
SIGNATURE = f"{NAME}.asc"


def files(directory: Path) -> list[Path]:
    """Return all that is below a directory but directories, the checksums and their signature."""
    found = sorted(file for file in directory.rglob("*") if file.is_symlink() or not file.is_dir())
    own = (directory / NAME, directory / SIGNATURE)
    return [file for file in found if file not in own]


def digest(file: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write(directory: Path) -> Path:
    """Write the checksums of all files below a directory, as sha256sum --check reads them."""
    lines = [f"{digest(file)}  {file.relative_to(directory)}\n" for file in files(directory)]
    sums = directory / NAME
    sums.write_text("".join(lines), encoding="ascii")
    return sums


def read(directory: Path) -> dict[str, str]:
    """Return each file's checksum, by its path below the directory.

    Raises:
        ValueError: a line is not as sha256sum writes it, or a file stands there twice.
        OSError: there are no checksums, or they cannot be read.

    """
    found: dict[str, str] = {}
    for line in (directory / NAME).read_bytes().decode("ascii").removesuffix("\n").split("\n"):
        value, separator, name = line.partition("  ")
        if not separator or len(value) != hashlib.sha256().digest_size * 2 or name in found:
            raise ValueError(f"{NAME} has a line that sha256sum did not write: {line!r}")
        found[name] = value
    return found


def sign(sums: Path, key: str) -> Path:
    """Sign checksums with a secret key of gpg's, named as gpg names keys.

    Raises:
        subprocess.CalledProcessError: gpg has no such secret key, or nobody unlocked it.

    """
    signature = sums.with_name(SIGNATURE)
    command = ["gpg", "--batch", "--yes", "--armor", "--detach-sign", "--local-user", key]
    subprocess.run([*command, "--output", str(signature), str(sums)], check=True)
    return signature

"""Checksums of what was built, signed with the releaser's key."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

NAME = "SHA256SUMS"


def write(directory: Path) -> Path:
    """Write the checksums of all files below a directory, as sha256sum --check reads them."""
    sums = directory / NAME
    files = [file for file in sorted(directory.rglob("*")) if file.is_file()]
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(directory)}\n"
        for file in files
        if not file.name.startswith(NAME)
    ]
    sums.write_text("".join(lines), encoding="ascii")
    return sums


def sign(sums: Path, key: str) -> Path:
    """Sign checksums with a secret key of gpg's, named as gpg names keys.

    Raises:
        subprocess.CalledProcessError: gpg has no such secret key, or nobody unlocked it.

    """
    signature = sums.with_name(f"{NAME}.asc")
    command = ["gpg", "--batch", "--yes", "--armor", "--detach-sign", "--local-user", key]
    subprocess.run([*command, "--output", str(signature), str(sums)], check=True)
    return signature

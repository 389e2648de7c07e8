"""Writing files so that a reader sees the old content or the new, and nobody else's."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from functools import lru_cache
from pathlib import Path


def write(path: Path, content: str | bytes, mode: int, uid: int = 0, gid: int = 0) -> bool:
    """Write a file by write-and-rename unless it has this content already.

    A program or library in use keeps its old file, so that a process that has mapped it goes on
    undisturbed. Mode and owner are set in either case. Returns True if the content is new.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        same = not path.is_symlink() and path.read_bytes() == data
    except FileNotFoundError:
        same = False
    if same:
        own(path, mode, uid, gid)
        return False
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchown(file.fileno(), uid, gid)
            os.fchmod(file.fileno(), mode)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return True


def link(source: Path, path: Path, mode: int) -> bool:
    """Give root's file of this mode another name, and return whether that can be done here.

    Programs are large: a copy for each cluster takes seconds, and gigabytes.
    """
    found = source.stat()
    if (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) != (0, 0, mode):
        return False
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    try:
        temporary.hardlink_to(source)
    except OSError:
        return False
    temporary.rename(path)
    return True


def directory(path: Path, mode: int, uid: int = 0, gid: int = 0) -> None:
    """Make a directory if it is missing, and set its mode and owner."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    own(path, mode, uid, gid)


def own(path: Path, mode: int, uid: int = 0, gid: int = 0) -> None:
    """Set a file's or a directory's mode and owner."""
    os.chown(path, uid, gid)
    path.chmod(mode)


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_of(path: Path) -> str:
    """Return a digest of a file's content, or of all files below a directory; "" if missing."""
    if path.is_dir():
        below = sorted(item for item in path.rglob("*") if item.is_file())
        listing = "".join(f"{item.relative_to(path)} {digest_of(item)}\n" for item in below)
        return digest(listing.encode())
    try:
        found = path.stat()
        # Programs are large, and looked at whenever a part is brought back.
        version = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        return _digest_of_version(path, version)
    except FileNotFoundError:
        return ""


@lru_cache(maxsize=1024)
def _digest_of_version(path: Path, _version: tuple[int, ...]) -> str:
    """Return the digest of a file, read once for each time that it was changed."""
    return digest(path.read_bytes())

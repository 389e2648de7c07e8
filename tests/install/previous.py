"""What a site upgrades from: the last packages with another schema of the database."""

from __future__ import annotations

import subprocess
from pathlib import Path

from packages import site
from packages.rooms import DIRECTORY, TREE
from packages.suites import Suite

PACKAGING = "deploy/packages/debian/control"


def commit() -> str:
    """Return the newest release that has packages, else the newest commit with an older schema.

    Raises:
        AssertionError: no commit is like that, as in a clone without history.

    """
    tags = _git("tag", "--list", "--merged", "HEAD", "--sort=-version:refname").split()
    for tag in tags:
        if _tree(tag, PACKAGING) and _tree(tag, "migrations") != _tree("HEAD", "migrations"):
            return tag
    for each in _git("rev-list", "HEAD", "--", "migrations", "deploy/packages").split():
        if _tree(each, PACKAGING) and _tree(each, "migrations") != _tree("HEAD", "migrations"):
            return each
    raise AssertionError("no older commit with packages is in this clone: fetch its history")


def built(suite: Suite) -> Path:
    """Return the directory of its packages for a suite; build them where they are not there."""
    older = commit()
    place = DIRECTORY / "previous" / _git("rev-parse", f"{older}^{{commit}}")[:16]
    if not list((place / suite.name).glob("*.deb")):
        site.build([f"--out={place}", f"--suite={suite.name}", f"--commit={older}"])
    return place / suite.name


def _tree(commit: str, path: str) -> str:
    """Return what identifies a path's content in a commit; nothing where there is no such path."""
    return _git("ls-tree", commit, path)


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(TREE), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

"""Checks that the tree can be released under a version: ``python3 tests/release_check.py 1.2.3``.

`make release-check VERSION=1.2.3` renews what is generated first, so that a stale file shows as an
unclean tree. docs/releasing.md says what to do then.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
RELEASED = re.compile(rf"({VERSION.pattern}) - \d{{4}}-\d{{2}}-\d{{2}}")


@dataclass
class Tree:
    """What a release is judged by."""

    cargo: str
    """Cargo.toml."""
    lock: str
    """Cargo.lock."""
    packages: dict[str, str]
    """Each pyproject.toml that names a version, by its path."""
    changelog: str
    status: list[str] = field(default_factory=list)
    """Lines of `git status --porcelain`."""
    tags: dict[str, str] = field(default_factory=dict)
    """Each tag's commit."""
    head: str = ""
    migrations: list[str] = field(default_factory=list)
    """Lines of `git diff --name-status` for migrations, since the release before."""


def parsed(version: str) -> tuple[int, ...]:
    """Return a version's numbers."""
    return tuple(int(part) for part in version.split("."))


def problems(version: str, tree: Tree) -> list[str]:
    """Return what keeps this tree from being released, each with what to do."""
    if not VERSION.fullmatch(version):
        return [f"VERSION={version} is no version: give three numbers, as in VERSION=1.2.3"]
    return [
        *_versions(version, tree),
        *_changelog(version, tree.changelog),
        *[f"the tree is not clean: commit, or revert: {line}" for line in tree.status],
        *_history(version, tree),
    ]


def _versions(version: str, tree: Tree) -> list[str]:
    workspace = tomllib.loads(tree.cargo)["workspace"]["package"]["version"]
    members = {
        package["version"]
        for package in tomllib.loads(tree.lock)["package"]
        if "source" not in package
    }
    found = {"Cargo.toml": {workspace}, "Cargo.lock": members} | {
        path: {tomllib.loads(text)["project"]["version"]} for path, text in tree.packages.items()
    }
    return [
        f"{path} says {', '.join(sorted(versions))} and not {version}"
        for path, versions in found.items()
        if versions != {version}
    ]


def _changelog(version: str, changelog: str) -> list[str]:
    headings = HEADING.findall(changelog)
    if headings[:1] != ["Unreleased"]:
        return ["CHANGELOG.md does not begin with `## Unreleased`"]
    if HEADING.split(changelog)[2].strip():
        return [f"CHANGELOG.md: move what is under Unreleased to `## {version} - DATE`"]
    wrong = [heading for heading in headings[1:] if not RELEASED.fullmatch(heading)]
    if wrong:
        return [f"CHANGELOG.md: a heading is no `VERSION - DATE`: {wrong[0]}"]
    versions = [heading.split()[0] for heading in headings[1:]]
    if versions[:1] != [version]:
        return [f"CHANGELOG.md: the latest release is {(versions or ['none'])[0]}, not {version}"]
    if sorted(versions, key=parsed, reverse=True) != versions:
        return ["CHANGELOG.md: releases are not in order, the latest first"]
    return []


def _history(version: str, tree: Tree) -> list[str]:
    later = [tag for tag in releases(tree.tags) if parsed(tag) > parsed(version)]
    edited = [line for line in tree.migrations if not line.startswith("A")]
    return [
        *[f"{tag} was released already" for tag in later],
        *[f"a released migration was changed: {line.split()[-1]}" for line in edited],
        *[
            f"the tag {version} is at another commit: {commit}"
            for tag, commit in tree.tags.items()
            if tag == version and commit != tree.head
        ],
    ]


def releases(tags: dict[str, str]) -> list[str]:
    """Return the tags that are releases, the earliest first."""
    return sorted((tag for tag in tags if VERSION.fullmatch(tag)), key=parsed)


def _git(*arguments: str) -> list[str]:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def read(version: str) -> Tree:
    """Read the tree that this file is in."""
    tags = {tag: _git("rev-list", "-n", "1", tag)[0] for tag in _git("tag")}
    before = [tag for tag in releases(tags) if tag != version]
    files = [ROOT / name for name in _git("ls-files", "pyproject.toml", "*/pyproject.toml")]
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}
    return Tree(
        cargo=(ROOT / "Cargo.toml").read_text(encoding="utf-8"),
        lock=(ROOT / "Cargo.lock").read_text(encoding="utf-8"),
        packages={path: text for path, text in texts.items() if "project" in tomllib.loads(text)},
        changelog=(ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        status=_git("status", "--porcelain"),
        tags=tags,
        head=_git("rev-parse", "HEAD")[0],
        migrations=_git("diff", "--name-status", before[-1], "--", "migrations") if before else [],
    )


def main() -> int:
    """Print what is wrong; return 0 if nothing is."""
    version = sys.argv[1] if len(sys.argv) > 1 else ""
    found = problems(version, read(version))
    for problem in found:
        print(f"release-check: {problem}", file=sys.stderr)
    if not found:
        print(f"release-check: {version} can be tagged")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

"""Copies what was built into the root directory, where every user can reach it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from devcluster import files
from devcluster.errors import ClusterError
from devcluster.paths import Paths


def plan(build: Path, paths: Paths) -> dict[Path, Path]:
    """Return which built files go where: destination -> source.

    What an admin installs is in ``build/stage``, what the tests run in ``build/workloads``.

    Raises:
        ClusterError: two files have the same destination.

    """
    stage = build / "stage"
    destinations = {
        stage / "bin": paths.bin,
        build / "workloads": paths.bin,
        stage / "lib" / "slurm": paths.slurm_lib,
        stage / "share" / "accelerators.d": paths.accelerators,
    }
    planned: dict[Path, Path] = {}
    for source, destination in destinations.items():
        for item in sorted(source.iterdir()) if source.is_dir() else []:
            target = destination / item.name
            if not item.is_file():
                continue
            if target in planned:
                raise ClusterError(
                    f"the built files {planned[target]} and {item} would both become {target};"
                    " rename one of them"
                )
            planned[target] = item
    return planned


def install(build: Path, paths: Paths, known: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """Copy the built files that are new or changed, and drop those built no longer.

    ``known`` are the files installed before (path in the root -> SHA-256); only they are ever
    removed. Returns the files installed now, and how many changed.
    """
    installed: dict[str, str] = {}
    changed = 0
    for target, source in plan(build, paths).items():
        mode = 0o644 if target.parent == paths.accelerators else 0o755
        built = files.digest_of(source)
        if target.is_symlink() or files.digest_of(target) != built:
            # What is in bin is replaced, not written to: the build keeps what it has made.
            if target.parent != paths.bin or not files.link(source, target, mode):
                files.write(target, source.read_bytes(), mode)
            changed += 1
        else:
            files.own(target, mode)
        installed[str(target.relative_to(paths.root))] = built
    for name in sorted(set(known) - set(installed)):
        (paths.root / name).unlink(missing_ok=True)
        changed += 1
    return installed, changed

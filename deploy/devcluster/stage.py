"""Copies what the build has staged into the root directory, where every user can reach it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from devcluster import files
from devcluster.errors import ClusterError
from devcluster.paths import Paths


def plan(stage: Path, paths: Paths) -> dict[Path, Path]:
    """Return which staged files go where: destination -> source.

    Raises:
        ClusterError: two staged files have the same destination.

    """
    destinations = {
        stage / "bin": paths.bin,
        stage / "workloads": paths.bin,
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
                    f"the staged files {planned[target]} and {item} would both become {target};"
                    " rename one of them"
                )
            planned[target] = item
    return planned


def install(stage: Path, paths: Paths, known: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """Copy the staged files that are new or changed, and drop those staged no longer.

    ``known`` are the files installed before (path in the root -> SHA-256); only they are ever
    removed. Returns the files installed now, and how many changed.
    """
    installed: dict[str, str] = {}
    changed = 0
    for target, source in plan(stage, paths).items():
        data = source.read_bytes()
        executable = target.parent != paths.accelerators
        changed += files.write(target, data, mode=0o755 if executable else 0o644)
        installed[str(target.relative_to(paths.root))] = files.digest(data)
    for name in sorted(set(known) - set(installed)):
        (paths.root / name).unlink(missing_ok=True)
        changed += 1
    return installed, changed

"""What clusters on one host share: which roots there are, and which Linux users were made for them.

The users outlive a single cluster: they are removed with the last one, and only those that did not
exist before the first.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from devcluster import files
from devcluster.errors import ClusterError
from devcluster.paths import Paths

REGISTRY = Path("/var/lib/io-autotune-devclusters.json")
"""The registry's file; it exists as long as a cluster does."""

_LOCK = Path("/run/io-autotune-devclusters.lock")


@dataclass
class Registry:
    """The registry's content while its lock is held."""

    roots: set[Path] = field(default_factory=set)
    users: set[str] = field(default_factory=set)


@contextmanager
def opened(path: Path = REGISTRY, lock: Path = _LOCK) -> Iterator[Registry]:
    """Hold the registry's lock, give its content, and write it back at the end.

    Roots whose record is gone (removed by hand) are forgotten. The file is removed when neither
    roots nor users are left.
    """
    with lock.open("a", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        registry = _load(path)
        try:
            yield registry
        finally:
            _save(path, registry)


def _load(path: Path) -> Registry:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        roots = {Path(root) for root in data["roots"]}
        users = {str(user) for user in data["users"]}
    except FileNotFoundError:
        return Registry()
    except (KeyError, TypeError, ValueError) as error:
        raise ClusterError(
            f"{path}, the list of this host's development clusters, cannot be read: {error!r};"
            " remove it and start again"
        ) from error
    return Registry({root for root in roots if Paths(root).record.exists()}, users)


def _save(path: Path, registry: Registry) -> None:
    if not registry.roots and not registry.users:
        path.unlink(missing_ok=True)
        return
    data = {"roots": sorted(map(str, registry.roots)), "users": sorted(registry.users)}
    files.write(path, json.dumps(data, indent=2) + "\n", mode=0o644)

"""The storages of the list, each with an application's input on it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from devcluster import command, storage
from gains import storage as slow

from field_trial import cable
from field_trial.listing import Storage

BUCKET = "field"
UPLOAD_SECONDS = 600.0
"""Most that the upload of an input may take."""


@dataclass(frozen=True)
class Surroundings:
    """What a storage is made of and for."""

    directory: Path
    """For what servers keep; it is empty."""
    inputs: Path
    names: tuple[str, ...]
    """The names of those that are wanted on the storage."""
    client: str
    """The network namespace of the cluster."""
    programs: Path
    """Where the cable's program is."""
    python: Path
    """The bin directory of the trial's Python environment."""


@dataclass(frozen=True)
class Place:
    """Where jobs of one application find their storage."""

    work: Path
    environment: dict[str, str] = field(default_factory=dict)
    node_toml: str = ""
    """What the nodes allow."""


def leave(root: Path, mounts: Path = Path("/proc/mounts")) -> None:
    """Unmount what a trial that was killed has left mounted below the cluster's directory."""
    words = [line.split(" ") for line in mounts.read_text(encoding="utf-8").splitlines()]
    for target in reversed([Path(word[1]) for word in words]):
        if target.is_relative_to(root):
            cable.command("umount", "--lazy", str(target))


def made(listed: Storage, of: Surroundings) -> AbstractContextManager[Place]:
    """Return the storage as a context: it is there, with its inputs, until the context ends."""
    kinds: dict[str, Callable[[Storage, Surroundings], AbstractContextManager[Place]]] = {
        "s3": _s3,
        "glusterfs": _glusterfs,
        "throttled": _throttled,
    }
    return kinds[listed.name](listed, of)


@contextmanager
def _s3(listed: Storage, of: Surroundings) -> Iterator[Place]:
    assert listed.cable is not None
    work = of.directory / "work"
    work.mkdir()
    with (
        cable.laid(of.programs / "wire", of.client, listed.cable) as server,
        storage.s3(
            of.python / "juicefs", of.directory, server.address, BUCKET, server.argv()
        ) as endpoint,
    ):
        rclone = storage.rclone_environment("field", endpoint)
        for path in _paths(of):
            target = f"field:{BUCKET}/{path.name}" if path.is_dir() else f"field:{BUCKET}"
            command.run(
                server.argv("rclone", "copy", str(path), target),
                env={**command.base_env(), **rclone},
                timeout=UPLOAD_SECONDS,
            )
        aws = {
            "AWS_ACCESS_KEY_ID": storage.KEY,
            "AWS_SECRET_ACCESS_KEY": storage.SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint,
        }
        yield Place(work, {**rclone, **aws})


@contextmanager
def _glusterfs(listed: Storage, of: Surroundings) -> Iterator[Place]:
    assert listed.cable is not None
    mount = of.directory / "mount"
    mount.mkdir()
    with (
        cable.laid(of.programs / "wire", of.client, listed.cable) as server,
        storage.glusterfs(of.directory, server.address, server.argv()) as target,
    ):
        mounts = ["mount", "-t", "glusterfs", target, str(mount)]
        cable.command(*cable.inside(of.client, mounts))
        try:
            _copy(of, mount)
            yield Place(mount)
        finally:
            cable.command("umount", "--lazy", str(mount))


@contextmanager
def _throttled(listed: Storage, of: Surroundings) -> Iterator[Place]:
    problem = slow.problem()
    if problem is not None:
        raise RuntimeError(problem)
    throttle = slow.Throttle(read_iops=listed.read_iops)
    with slow.throttled(of.directory, throttle) as disk:
        _copy(of, disk.mount)
        # What is written later goes through memory: only reads are to be slow.
        cable.command("sync", "--file-system", str(disk.mount))
        allowed = slow.ALLOW_QUEUE.replace("{device}", disk.device)
        yield Place(disk.mount, node_toml=f"[exclusive]\ncpus = 8\n{allowed}")


def _copy(of: Surroundings, to: Path) -> None:
    for path in _paths(of):
        if path.is_dir():
            shutil.copytree(path, to / path.name)
        else:
            shutil.copy(path, to)


def _paths(of: Surroundings) -> list[Path]:
    return [path for path in sorted(of.inputs.iterdir()) if path.name.split(".")[0] in of.names]

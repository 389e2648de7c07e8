"""Storage that each job on the private cluster finds by a mount of its own: ``job-mount``."""

from __future__ import annotations

import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from devcluster import command, files, storage
from devcluster.network import Namespace
from harness import ALICE, Site, command_lines
from outages import PATIENCE_MS, patient_hooks

RCLONE = "accelerator=rclone-vfs"
OTHERWISE = "/the/storage/itself"
"""Where a job finds its storage if its mount does not start."""
NODE_TOML = """
[exclusive]
cpus = 8
"""
_COMMAND_MS = PATIENCE_MS // 3
_BUCKET = "bucket"
_ADDRESS = "10.77.0.9"
"""Of the cluster's, for GlusterFS, which takes none of the loopback network."""


@dataclass(frozen=True, eq=False)
class Kind:
    """An accelerator that is a mount, and a pin of it."""

    accelerator: str
    variable: str
    pin: dict[str, str]
    daemon: str
    """What the command line of the program that serves the mount has in it."""
    programs: tuple[str, ...]
    is_read_only: bool = True

    @property
    def option(self) -> str:
        """What a job asks for."""
        return f"accelerator={self.accelerator}"


RCLONE_VFS = Kind(
    "rclone-vfs",
    "RCLONE_VFS_DIR",
    {"cache_mode": "full", "read_ahead": "4M"},
    "rclone mount",
    ("rclone", "fusermount3"),
)
S3FS_FUSE = Kind(
    "s3fs-fuse",
    "S3FS_DIR",
    {"cache": "on", "multipart_size": "16", "parallel_count": "20"},
    "s3fs bucket",
    ("s3fs", "rclone", "fusermount3"),
)
GLUSTERFS_MOUNT = Kind(
    "glusterfs-mount@risk",
    "GLUSTERFS_DIR",
    {"read_ahead_kb": "2048", "entry_timeout": "600", "writeback": "on"},
    "glusterfs --process-name=fuse",
    ("glusterfs", "glusterd"),
    is_read_only=False,
)
KINDS = (RCLONE_VFS, S3FS_FUSE, GLUSTERFS_MOUNT)


@dataclass(frozen=True)
class Mounted:
    """Storage behind the mounts of jobs."""

    mounts: Path
    """Where jobs' directories are."""
    put: Callable[[str, str], None]
    """Puts a file of this name and text into the storage."""
    kept: Callable[[str], str]
    """The text of a file there, without any mount."""

    def daemons(self, kind: Kind) -> list[int]:
        """Return the programs that serve mounts of jobs."""
        found = command_lines()
        return [pid for pid, line in found if kind.daemon in line and f"{self.mounts}/" in line]


@contextmanager
def fuse_for_users(*programs: str) -> Iterator[None]:
    """Let users open /dev/fuse, as udev does, or skip the test where there is none."""
    device = Path("/dev/fuse")
    for program in programs or RCLONE_VFS.programs:
        if shutil.which(program, path=command.PATH) is None:
            pytest.skip(f"{program} is not installed: deploy/install-deps test file-systems")
    if not device.exists():
        pytest.skip("there is no /dev/fuse on this host")
    mode = stat.S_IMODE(device.stat().st_mode)
    device.chmod(0o666)
    try:
        yield
    finally:
        device.chmod(mode)


@contextmanager
def mounted(site: Site, kind: Kind) -> Iterator[Mounted]:
    """Let jobs have a mount of this kind."""
    serve = {RCLONE_VFS: _directory, S3FS_FUSE: _s3, GLUSTERFS_MOUNT: _glusterfs}[kind]
    with serve(site) as (arguments, put, kept), _configured(site, kind, arguments) as mounts:
        yield Mounted(mounts, put, kept)


@contextmanager
def rclone(site: Site) -> Iterator[Path]:
    """Let jobs have rclone-vfs; yield where their directories are."""
    with mounted(site, RCLONE_VFS) as there:
        yield there.mounts


_Served = tuple[list[str], Callable[[str, str], None], Callable[[str], str]]
"""What the command is told of a storage, and how a file is put there and read."""


@contextmanager
def _configured(site: Site, kind: Kind, arguments: list[str]) -> Iterator[Path]:
    mounts = site.paths.scratch / "mounts"
    mounts.mkdir()
    mounts.chmod(0o755)
    name = kind.accelerator.removesuffix("@risk")
    # As 0.3.0 had it: there was one storage, and no job-mount.
    called = ["rclone-vfs"] if kind is RCLONE_VFS else ["job-mount", name]
    if kind is GLUSTERFS_MOUNT:
        arguments = [*arguments, str(mounts)]
    program = str(site.paths.bin / called[0])
    argv = {verb: [program, *called[1:], verb, *arguments] for verb in ("start", "stop")}
    otherwise = f'{{ {kind.variable} = "{OTHERWISE}" }}'
    # They are large programs: that they start is tested, not how fast they do on this host.
    config = (
        f'[[commands]]\nname = "{name}"\nstart = {argv["start"]}\nstop = {argv["stop"]}\n'
        f"start_ms = {_COMMAND_MS}\nstop_ms = {_COMMAND_MS}\n"
        + ('run_as = "root"\n' if kind is GLUSTERFS_MOUNT else f'directory = "{mounts}"\n')
        + f'default_runs = {{ of = ["{name}"], otherwise = {otherwise} }}\n'
    )
    try:
        with site.nodes_configured(NODE_TOML + config), patient_hooks(site):
            yield mounts
        assert str(mounts) not in Path("/proc/self/mounts").read_text(encoding="utf-8")
    finally:
        # Never through a mount that is still there.
        mounts.rmdir()


@contextmanager
def _place(site: Site) -> Iterator[Path]:
    place = site.paths.scratch / "storage"
    place.mkdir()
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place)


@contextmanager
def _directory(site: Site) -> Iterator[_Served]:
    with _place(site) as place:

        def put(name: str, text: str) -> None:
            files.write(place / name, text, mode=0o666)

        yield [f":local:{place}"], put, lambda name: (place / name).read_text(encoding="utf-8")


@contextmanager
def _s3(site: Site) -> Iterator[_Served]:
    juicefs = Path(sys.executable).parent / "juicefs"
    within = _within(site)
    # s3fs looks for keys in the home directory of the passwd file, and these users have none there.
    keys = site.paths.home(ALICE) / ".passwd-s3fs"
    files.write(keys, f"{storage.KEY}:{storage.SECRET}\n", mode=0o600)
    shutil.chown(keys, ALICE)
    with (
        _place(site) as place,
        storage.s3(juicefs, place, "127.0.0.1", _BUCKET, within) as endpoint,
    ):
        environment = {**command.base_env(), **storage.rclone_environment("s3", endpoint)}

        def rclone_does(verb: str, name: str, text: str = "") -> str:
            argv = [*within, "rclone", verb, f"s3:{_BUCKET}/{name}"]
            return command.run(argv, env=environment, stdin=text).stdout

        def put(name: str, text: str) -> None:
            rclone_does("rcat", name, text)

        yield (
            [_BUCKET, f"url={endpoint},use_path_request_style,passwd_file={keys}"],
            put,
            lambda name: rclone_does("cat", name),
        )
    keys.unlink()


@contextmanager
def _glusterfs(site: Site) -> Iterator[_Served]:
    within = _within(site)
    command.run([*within, "ip", "address", "replace", f"{_ADDRESS}/32", "dev", "lo"])
    with _place(site) as place, storage.glusterfs(place, _ADDRESS, within) as target:
        bricks = (place / "brick-1", place / "brick-2")
        for brick in bricks:
            brick.chmod(0o1777)

        def put(name: str, text: str) -> None:
            # Only by a mount: which brick a file is on is the client's to know.
            mount = place / "mount"
            mount.mkdir()
            command.run([*within, "mount", "-t", "glusterfs", target, str(mount)])
            files.write(mount / name, text, mode=0o666)
            command.run(["umount", str(mount)])
            mount.rmdir()

        def kept(name: str) -> str:
            found = [brick / name for brick in bricks if (brick / name).exists()]
            # Beside the file there may be a pointer to it, which is empty.
            return "".join(path.read_text(encoding="utf-8") for path in found)

        yield [target], put, kept
    command.run([*within, "ip", "address", "delete", f"{_ADDRESS}/32", "dev", "lo"])


def _within(site: Site) -> list[str]:
    """Return the words that have a program run in the cluster's network."""
    return ["nsenter", f"--net=/run/netns/{Namespace(site.cluster.root).name}"]

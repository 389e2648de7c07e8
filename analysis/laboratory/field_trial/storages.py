"""The storages of the list, each with an application's input on it."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gains import storage as slow

from field_trial import cable
from field_trial.listing import Storage

PATIENCE = 60.0
"""Seconds that a server may take until it answers."""
LOOK = 0.2
KEY, SECRET, BUCKET = "field-trial", "field-trial-secret", "field"
VOLUME = "field"

GLUSTERD = """\
volume management
    type mgmt/glusterd
    option working-directory {directory}/glusterd
    option glusterd-sockfile {directory}/glusterd.socket
    option transport-type socket
end-volume
"""


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


def made(storage: Storage, of: Surroundings) -> AbstractContextManager[Place]:
    """Return the storage as a context: it is there, with its inputs, until the context ends."""
    kinds: dict[str, Callable[[Storage, Surroundings], AbstractContextManager[Place]]] = {
        "s3": _s3,
        "glusterfs": _glusterfs,
        "throttled": _throttled,
    }
    return kinds[storage.name](storage, of)


@contextmanager
def _s3(storage: Storage, of: Surroundings) -> Iterator[Place]:
    assert storage.cable is not None
    work = of.directory / "work"
    work.mkdir()
    with cable.laid(of.programs / "wire", of.client, storage.cable) as server:
        endpoint = f"http://{server.address}:9000"
        environment = {
            "RCLONE_CONFIG": "/dev/null",
            "RCLONE_CONFIG_FIELD_TYPE": "s3",
            "RCLONE_CONFIG_FIELD_PROVIDER": "Minio",
            "RCLONE_CONFIG_FIELD_FORCE_PATH_STYLE": "true",
            "RCLONE_CONFIG_FIELD_ENDPOINT": endpoint,
            "RCLONE_CONFIG_FIELD_ACCESS_KEY_ID": KEY,
            "RCLONE_CONFIG_FIELD_SECRET_ACCESS_KEY": SECRET,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint,
        }
        with _gateway(server, of):
            uploads = {"PATH": "/usr/bin:/bin", **environment}
            _until_it_answers(
                "the S3 gateway",
                lambda: server.run(
                    "env", "-i", *_words(uploads), "rclone", "mkdir", f"field:{BUCKET}"
                ),
            )
            for path in _paths(of):
                target = f"field:{BUCKET}/{path.name}" if path.is_dir() else f"field:{BUCKET}"
                server.run("env", "-i", *_words(uploads), "rclone", "copy", str(path), target)
            yield Place(work, environment)


@contextmanager
def _gateway(server: cable.Server, of: Surroundings) -> Iterator[None]:
    """Serve a directory by S3, with juicefs's gateway."""
    juicefs = str(of.python / "juicefs")
    database = f"sqlite3://{of.directory}/juicefs.db"
    data = f"{of.directory}/objects/"
    server.run(juicefs, "format", "--storage", "file", "--bucket", data, database, "field")
    argv = server.argv(
        *(juicefs, "gateway", database, f"{server.address}:9000"),
        *("--multi-buckets", "--no-banner", "--no-usage-report", "--no-bgjob"),
        *("--backup-meta", "0", "--cache-dir", f"{of.directory}/cache"),
        *("--log", f"{of.directory}/gateway.log"),
    )
    root = {"MINIO_ROOT_USER": KEY, "MINIO_ROOT_PASSWORD": SECRET, "HOME": str(of.directory)}
    log = of.directory / "gateway.out"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            argv, env={"PATH": "/usr/bin:/bin", **root}, stdout=output, stderr=output
        ) as gateway,
    ):
        try:
            yield
        finally:
            gateway.terminate()


@contextmanager
def _glusterfs(storage: Storage, of: Surroundings) -> Iterator[Place]:
    assert storage.cable is not None
    mount = of.directory / "mount"
    mount.mkdir()
    volfile = of.directory / "glusterd.vol"
    volfile.write_text(GLUSTERD.format(directory=of.directory), encoding="utf-8")
    (of.directory / "glusterd").mkdir()
    socket = f"--glusterd-sock={of.directory}/glusterd.socket"
    with cable.laid(of.programs / "wire", of.client, storage.cable) as server:
        gluster = ("gluster", "--mode=script", socket, "volume")
        argv = server.argv(
            *("glusterd", "--no-daemon", f"--volfile={volfile}"),
            *(f"--log-file={of.directory}/glusterd.log", f"--pid-file={of.directory}/glusterd.pid"),
        )
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as daemon:
            try:
                _until_it_answers("glusterd", lambda: server.run(*gluster, "info"))
                bricks = [f"{server.address}:{of.directory}/brick-{number}" for number in (1, 2)]
                server.run(*gluster, "create", VOLUME, *bricks, "force")
                server.run(*gluster, "start", VOLUME)
                target = f"{server.address}:/{VOLUME}"
                mounts = ["mount", "-t", "glusterfs", target, str(mount)]
                cable.command(*cable.inside(of.client, mounts))
                try:
                    _copy(of, mount)
                    yield Place(mount)
                finally:
                    cable.command("umount", "--lazy", str(mount))
                    server.run(*gluster, "stop", VOLUME, "force")
            finally:
                daemon.terminate()


@contextmanager
def _throttled(storage: Storage, of: Surroundings) -> Iterator[Place]:
    problem = slow.problem()
    if problem is not None:
        raise RuntimeError(problem)
    throttle = slow.Throttle(read_iops=storage.read_iops)
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


def _words(environment: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in environment.items()]


def _until_it_answers(what: str, ask: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            ask()
        except RuntimeError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what} did not answer in {PATIENCE:.0f} s: {error}") from error
            time.sleep(LOOK)
        else:
            return

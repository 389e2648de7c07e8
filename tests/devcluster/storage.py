"""Servers of storage behind which jobs can be put: S3 by juicefs's gateway, and GlusterFS.

Each keeps all that it has in a directory of its own, and runs where the words ``within`` before a
command put it, such as those of nsenter(1). (``ip netns exec`` would hide FUSE's mounts.)
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from devcluster import command
from devcluster.errors import ClusterError

KEY, SECRET = "user-of-tests", "secret-of-tests"
"""Of the only user that the S3 server knows."""
_PORT = 9000
_VOLUME = "jobs"
_PATIENCE = 60.0
"""Seconds that a server may take until it answers."""
_LOOK = 0.1

_GLUSTERD = """\
volume management
    type mgmt/glusterd
    option working-directory {directory}/glusterd
    option glusterd-sockfile {directory}/glusterd.socket
    option transport-type socket
end-volume
"""


def rclone_environment(remote: str, endpoint: str) -> dict[str, str]:
    """Return the variables by which rclone knows an S3 server as ``remote``."""
    options = {
        "TYPE": "s3",
        "PROVIDER": "Minio",
        "FORCE_PATH_STYLE": "true",
        "ENDPOINT": endpoint,
        "ACCESS_KEY_ID": KEY,
        "SECRET_ACCESS_KEY": SECRET,
    }
    named = {f"RCLONE_CONFIG_{remote.upper()}_{name}": value for name, value in options.items()}
    return {"RCLONE_CONFIG": "/dev/null", **named}


@contextmanager
def s3(
    juicefs: Path, directory: Path, address: str, bucket: str, within: Sequence[str] = ()
) -> Iterator[str]:
    """Serve S3 with an empty bucket, and yield the endpoint."""
    database = f"sqlite3://{directory}/juicefs.db"
    made = (str(juicefs), "format", "--storage", "file", "--bucket", f"{directory}/objects/")
    command.run([*within, *made, database, "storage"])
    argv = [
        *within,
        *(str(juicefs), "gateway", database, f"{address}:{_PORT}"),
        *("--multi-buckets", "--no-banner", "--no-usage-report", "--no-bgjob"),
        *("--backup-meta", "0", "--cache-dir", f"{directory}/cache"),
        *("--log", f"{directory}/gateway.log"),
    ]
    root = {"MINIO_ROOT_USER": KEY, "MINIO_ROOT_PASSWORD": SECRET, "HOME": str(directory)}
    environment = {**command.base_env(), **root}
    log = directory / "gateway.out"
    with (
        log.open("wb") as output,
        subprocess.Popen(argv, env=environment, stdout=output, stderr=output) as gateway,
    ):
        try:
            endpoint = f"http://{address}:{_PORT}"
            asker = {**command.base_env(), **rclone_environment("s3", endpoint)}
            mkdir = [*within, "rclone", "mkdir", f"s3:{bucket}"]
            _until_it_answers("the S3 gateway", lambda: command.run(mkdir, env=asker))
            yield endpoint
        finally:
            gateway.terminate()


@contextmanager
def glusterfs(directory: Path, address: str, within: Sequence[str] = ()) -> Iterator[str]:
    """Serve a volume of two bricks, ``brick-1`` and ``brick-2``, and yield ``SERVER:/VOLUME``.

    GlusterFS takes no address of the loopback network.
    """
    volfile = directory / "glusterd.vol"
    volfile.write_text(_GLUSTERD.format(directory=directory), encoding="utf-8")
    (directory / "glusterd").mkdir()
    socket = f"--glusterd-sock={directory}/glusterd.socket"
    gluster = [*within, "gluster", "--mode=script", socket, "volume"]
    argv = [
        *within,
        *("glusterd", "--no-daemon", f"--volfile={volfile}"),
        *(f"--log-file={directory}/glusterd.log", f"--pid-file={directory}/glusterd.pid"),
    ]
    with subprocess.Popen(argv, env=command.base_env(), stdin=subprocess.DEVNULL) as daemon:
        try:
            _until_it_answers("glusterd", lambda: command.run([*gluster, "info"]))
            bricks = [f"{address}:{directory}/brick-{number}" for number in (1, 2)]
            command.run([*gluster, "create", _VOLUME, *bricks, "force"])
            command.run([*gluster, "start", _VOLUME])
            try:
                yield f"{address}:/{_VOLUME}"
            finally:
                command.run([*gluster, "stop", _VOLUME, "force"])
        finally:
            daemon.terminate()


def _until_it_answers(what: str, ask: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            ask()
        except ClusterError as error:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{what} did not answer in {_PATIENCE:.0f} s: {error}"
                ) from error
            time.sleep(_LOOK)
        else:
            return

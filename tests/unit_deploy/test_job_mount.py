"""What the command that mounts storage for a job refuses, before any program is started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

COMMAND = Path(__file__).resolve().parents[2] / "deploy/commands/job-mount"
S3 = ("s3fs-fuse", "start", "bucket", "url=http://127.0.0.1:1")
GLUSTER = ("glusterfs-mount", "start", "server:/volume")

STAND_IN = '#!/bin/sh\necho "$0 $*" >> "$(dirname "$0")/calls"\n'


@pytest.mark.parametrize(
    ("argv", "given", "why"),
    [
        (S3, {"S3FS_PARALLEL_COUNT": "5,allow_other"}, "S3FS_PARALLEL_COUNT is 5,allow_other"),
        (S3, {"S3FS_MULTIPART_SIZE": ""}, "S3FS_MULTIPART_SIZE is , and has to be a number"),
        (GLUSTER, {"GLUSTERFS_ENTRY_TIMEOUT": "1 --acl"}, "GLUSTERFS_ENTRY_TIMEOUT is 1 --acl"),
        (GLUSTER, {"GLUSTERFS_READ_AHEAD_KB": "1234567890"}, "at most nine digits"),
        (GLUSTER, {"IO_AUTOTUNE_NODE": "../../etc"}, "no fit name"),
    ],
)
def test_values_that_are_none_are_refused(
    tmp_path: Path, argv: tuple[str, ...], given: dict[str, str], why: str
) -> None:
    """Attack (environment): Who has taken over the service gives a mount's command values that are
    none, such as further options.
    Outcome: They are refused, and nothing is mounted.
    """
    programs, place = tmp_path / "programs", tmp_path / "place"
    for directory in (programs, place):
        directory.mkdir()
    for name in ("s3fs", "glusterfs", "mount"):
        (programs / name).write_text(STAND_IN, encoding="utf-8")
        (programs / name).chmod(0o755)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "IO_AUTOTUNE_DIRECTORY": str(place),
        "IO_AUTOTUNE_NODE": "n1",
        "IO_AUTOTUNE_JOB_ID": "7",
        **given,
    }
    whole = [str(COMMAND), *argv, *([str(place)] if argv is GLUSTER else [])]
    done = subprocess.run(
        whole, env=environment, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert why in done.stderr
    assert done.stdout == ""
    assert not (programs / "calls").exists()


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("s3fs-fuse", "restart", "bucket"),
        ("nfs", "start", "server:/volume"),
        ("glusterfs-mount", "start", "server", "/run/mounts"),
        ("glusterfs-mount", "start", "server:/volume", "run/mounts"),
    ],
)
def test_another_use_is_told_the_right_one(argv: tuple[str, ...]) -> None:
    done = subprocess.run(
        [str(COMMAND), *argv],
        env={"PATH": os.environ["PATH"], "IO_AUTOTUNE_DIRECTORY": "/nonexistent"},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: job-mount ")

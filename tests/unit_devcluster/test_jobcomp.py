"""The job-completion script: whatever its spool is, it ends at once and well."""

from __future__ import annotations

import os
import subprocess
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "jobcomp" / "io-autotune-jobcomp"


def run(spool: Path, **more: str) -> None:
    done = subprocess.run(
        [SCRIPT, spool],
        env={"JOBID": "7", "JOBSTATE": "FAILED", **more},
        timeout=10,
        check=True,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.fixture
def today(tmp_path: Path) -> Path:
    return tmp_path / f"outcomes-{datetime.now(UTC):%Y%m%d}"


def test_it_appends(tmp_path: Path, today: Path) -> None:
    run(tmp_path)
    run(tmp_path)
    assert today.read_text(encoding="utf-8") == "3 7 FAILED - - - - - - -\n" * 2
    assert today.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("account", "written"),
    [("physics", "physics"), ("a b", "-"), ("x\n2 9 COMPLETED", "-"), ("größe", "-"), ("", "-")],
)
def test_an_account_that_is_no_plain_name_is_left_out(
    tmp_path: Path, today: Path, account: str, written: str
) -> None:
    run(tmp_path, ACCOUNT=account)
    assert today.read_text(encoding="utf-8") == f"3 7 FAILED - - - - - {written} -\n"


@pytest.mark.parametrize(
    ("nodes", "written"),
    [("n[1-2],m-3.site", "n[1-2],m-3.site"), ("n1 n2", "-"), ("(null)", "-"), ("n" * 3073, "-")],
)
def test_nodes_that_are_no_hostlist_or_too_many_are_left_out(
    tmp_path: Path, today: Path, nodes: str, written: str
) -> None:
    run(tmp_path, NODES=nodes)
    assert today.read_text(encoding="utf-8") == f"3 7 FAILED - - - - - - {written}\n"


def test_a_spool_that_is_missing_is_no_failure(tmp_path: Path) -> None:
    run(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_in_its_place_does_not_hold_it_up(tmp_path: Path, today: Path) -> None:
    os.mkfifo(today)
    run(tmp_path)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, today: Path) -> None:
    other = tmp_path / "other"
    other.write_text("", encoding="utf-8")
    today.symlink_to(other)
    run(tmp_path)
    assert other.read_text(encoding="utf-8") == ""


def test_a_link_that_is_swapped_in_is_never_followed(tmp_path: Path, today: Path) -> None:
    """Attack (units): A link is swapped in where the job-completion script writes.
    Outcome: The script never follows it.
    """
    # Whoever may write the spool's directory puts a file there to be looked at, and a link to be
    # written to: to look first and then append follows it within a few of these runs.
    spool, aside = tmp_path / "spool", tmp_path / "spool" / "aside"
    spool.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("", encoding="utf-8")
    swapped = spool / today.name
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            aside.symlink_to(victim)
            aside.rename(swapped)
            aside.write_text("", encoding="utf-8")
            aside.rename(swapped)

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        for _ in range(300):
            run(spool)
            if victim.stat().st_size > 0:
                break
    finally:
        over.set()
        attacker.join()
    assert victim.read_text(encoding="utf-8") == ""


def test_a_full_disk_is_no_failure(tmp_path: Path) -> None:
    # No file may grow: the write fails, as on a full disk.
    limited = ["bash", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$@"', "bash", str(SCRIPT)]
    done = subprocess.run([*limited, tmp_path], timeout=10, check=True, capture_output=True)
    assert done.stderr == b""

"""Processes: recognised beyond doubt, ended, and nobody else's touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from devcluster import command, process
from devcluster.errors import ClusterError
from devcluster.process import Identity


def start(tmp_path: Path, script: str) -> Identity:
    """Start a shell script and wait until it has said that it runs."""
    output = tmp_path / "output"
    # A shell cannot trap what it was told to ignore, as what a script starts in its background is.
    argv = ["/usr/bin/env", "--default-signal=INT", "/bin/sh", "-c", script]
    identity = process.spawn(argv, env=command.base_env(), output=output)
    said = process.wait_until(
        lambda: None if "up" in output.read_text(encoding="utf-8") else "silent", 10, identity
    )
    assert said is None
    return identity


@pytest.fixture
def stubborn(tmp_path: Path) -> Iterator[Identity]:
    identity = start(tmp_path, "trap '' TERM; echo up; while :; do sleep 0.05; done")
    yield identity
    process.kill(identity)


def test_start_time_is_found_behind_any_name() -> None:
    fields = " ".join(str(number) for number in range(4, 53))
    assert process.parse_stat(f"7 (a) S (b) R {fields}") == ("R", 22)


def test_identity_of_this_process() -> None:
    identity = process.identify(os.getpid())
    assert identity is not None
    assert identity.pid == os.getpid()
    assert process.is_alive(identity)


def test_ends_by_the_signal_asked_for(tmp_path: Path) -> None:
    identity = start(tmp_path, "trap 'echo bye; exit' INT; echo up; while :; do sleep 0.05; done")
    assert process.end(identity, signal.SIGINT, 10)
    assert (tmp_path / "output").read_text(encoding="utf-8") == "up\nbye\n"
    assert not process.is_alive(identity)


def test_kills_what_does_not_end(stubborn: Identity) -> None:
    assert not process.end(stubborn, signal.SIGTERM, 0.2)
    assert not process.is_alive(stubborn)


@pytest.mark.parametrize("change", [{"start_ticks": 1}, {"boot": "another"}])
def test_a_reused_process_id_is_left_alone(
    stubborn: Identity, change: dict[str, int | str]
) -> None:
    other = replace(stubborn, **change)  # type: ignore[arg-type]
    assert not process.is_alive(other)
    assert process.end(other, signal.SIGKILL, 1)
    assert process.is_alive(stubborn)


def test_a_zombie_is_not_alive() -> None:
    with subprocess.Popen(["/bin/true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process.identify(child.pid) is None


def test_runs_in_a_session_of_its_own(stubborn: Identity) -> None:
    assert os.getsid(stubborn.pid) == stubborn.pid


def test_a_program_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="cannot be started"):
        process.spawn(["/nonexistent"], env={}, output=tmp_path / "output")


def test_waiting_gives_up_after_the_deadline() -> None:
    assert process.wait_until(lambda: "no", 0.1) == "is not ready after 0.1 s: no"


def test_waiting_ends_with_the_process(tmp_path: Path) -> None:
    identity = start(tmp_path, "echo up; sleep 0.2")
    begin = time.monotonic()
    assert process.wait_until(lambda: "no", 30, identity) == "ended before it was ready"
    assert time.monotonic() - begin < 10


def test_descendants(tmp_path: Path) -> None:
    identity = start(tmp_path, f"{sys.executable} -c 'import time; time.sleep(60)' & echo up; wait")
    try:
        (child,) = process.descendants([identity.pid])
        child_identity = process.identify(child)
        assert child_identity is not None
    finally:
        process.kill(identity)
    process.kill(child_identity)
    assert process.identify(child) is None

"""Output that goes nowhere: full disks, closed descriptors, limits, a directory that is gone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from command.service import ALICE, Service

STAGE = Path(__file__).resolve().parents[2] / "build" / "stage" / "bin"

PRINTING = (
    "status",
    "history --csv",
    "history --json",
    "history -P",
    "history --helpformat",
    "show printed",
    "audit",
    "audit orders --csv",
    "accelerators list",
    "accelerators show romio",
    "rules check a-name --json",
    "transfer export printed",
    "report --mine",
    "pin printed cb_nodes=2 --why x --dry-run",
    "admin completion bash",
    "doctor --json",
    "--help",
    "history --help",
    "--version",
)
"""Each prints, and changes nothing."""

IN_JOBS = (
    "mark begin",
    "mark end",
    "mark sideways",
    "mark",
    "mark begin end",
    "mark begin --loudly",
    "objective rate=5",
    "objective rate=5 cost=7",
    "objective rate=none",
    "objective rate",
    "objective",
    "objective rate=5 --loudly",
)
"""What a job says of itself, rightly and wrongly."""

OWN = (
    "io-autotuned --print-openapi",
    "io-autotuned --print-config --config {service_toml}",
    "io-autotuned --help",
    "io-autotuned --version",
    "io-autotune-node --print-config --config {client_toml}",
    "io-autotune-node --help",
    "io-autotune-node start --help",
    "io-autotune-node --version",
    "io-autotune-collector --cluster c --print-config --config {client_toml}",
    "io-autotune-collector --help",
    "io-autotune-collector --version",
)
"""What the other programs print."""

HARMLESS = {
    "stderr is full": "{line} 2>/dev/full",
    "stderr is closed": "{line} 2>&-",
    "stdout is closed": "{line} >&-",
    "a directory is gone": 'cd "$(mktemp -d)" && rmdir "$PWD" && {line}',
}
"""A program's end is as ever."""
LIMITED = {
    "no file may grow": "ulimit -f 0; {line}",
    "few descriptors": "ulimit -n 4; {line}",
}


def in_shell(
    served: Service, line: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Let a user's shell do a line, in which what a program leaves of its core is none."""
    return served.run_as(ALICE, ["bash", "-c", f"ulimit -c 0; {line}"], env=env)


def asked(served: Service) -> None:
    """See to it that there is something to print."""
    if not served.ask(ALICE, "status", "printed"):
        served.run(ALICE, "printed")
        served.publish("2026-11-20", {ALICE: "<!doctype html>\n"})


@pytest.mark.parametrize("command", PRINTING)
def test_what_is_asked_for_is_written_or_its_loss_is_said(served: Service, command: str) -> None:
    """Attack (units): A command prints to a full file system, or to an error output that is full or
    closed.
    Outcome: A lost answer is said, and ends the command with 1.
    """
    asked(served)
    line = f"io-autotune {command}"
    usual = in_shell(served, line)
    assert usual.returncode in (0, 1), usual
    for way, told in (
        (f"{line} >/dev/full", "No space left on device"),
        (f'out=$(mktemp); ulimit -f 0; {line} >"$out"', "File too large"),
    ):
        lost = in_shell(served, way)
        assert (lost.returncode, told in lost.stderr) == (1, True), (way, lost)
        assert "panicked" not in lost.stderr
    closed = in_shell(served, f"set -o pipefail; {line} | true")
    assert closed.returncode == usual.returncode, closed
    # What an export has written is said, unless its reader has gone.
    assert closed.stderr in (usual.stderr, ""), closed
    for name, way in HARMLESS.items():
        done = in_shell(served, way.format(line=line))
        assert done.returncode == usual.returncode, (name, done)
    # What cannot be asked is said; nothing ends by a signal or a panic.
    few = in_shell(served, LIMITED["few descriptors"].format(line=line))
    assert few.returncode in (usual.returncode, 1, 3), few
    assert "panicked" not in few.stderr


@pytest.mark.parametrize("command", IN_JOBS)
def test_what_a_job_says_of_itself_never_changes_its_end(
    served: Service, shared: Path, command: str
) -> None:
    """Attack (units): A job under `set -e` marks or reports while files or descriptors are used up.
    Outcome: The command ends with 0, and the job goes on.

    Promise: a job fails
    """
    place = shared / "in-force" / "c.n1.7"
    place.mkdir(parents=True)
    marks = place / "marks"
    marks.touch()
    for path in (place, marks):
        path.chmod(0o777)
    line = f"io-autotune {command}"
    ways = {
        **HARMLESS,
        **LIMITED,
        "as ever": "{line}",
        "stdout is full": "{line} >/dev/full",
        "both are full": "{line} >/dev/full 2>&1",
        "all is closed": "{line} <&- >&- 2>&-",
        "a reader has gone": "{line} 2>&1 | true",
        "stderr may not grow": 'err=$(mktemp); ulimit -f 0; {line} 2>"$err"',
    }
    in_job = {"SLURM_JOB_ID": "7"}
    tuned = {**in_job, "IO_MARKS_FILE": str(marks)}
    gone = {**in_job, "IO_MARKS_FILE": str(shared / "gone" / "c.n1.7" / "marks")}
    for env in (in_job, tuned, gone):
        for name, way in ways.items():
            body = f"set -e -o pipefail; {way.format(line=line)}; echo goes on"
            if ">&-" in way or ">/dev/full" in way:
                # The shell's own words are not lost with the command's.
                body = f"set -e; {way.format(line=line)}\necho goes on"
            done = in_shell(served, body, env)
            assert (done.returncode, done.stdout) == (0, "goes on\n"), (name, env, done)
            assert "panicked" not in done.stderr


@pytest.mark.parametrize("command", OWN)
def test_the_other_programs_say_too_what_they_could_not_print(
    served: Service, command: str
) -> None:
    program, *words = command.format(
        service_toml=served.place.paths.etc / "served.toml", client_toml=served.client_toml
    ).split()

    def run(way: str) -> subprocess.CompletedProcess[str]:
        line = " ".join([str(STAGE / program), *words])
        body = f"ulimit -c 0; {way.format(line=line)}"
        return subprocess.run(
            ["bash", "-c", body], capture_output=True, text=True, check=False, timeout=60
        )

    assert run("{line}").returncode == 0
    for way, told in (
        ("{line} >/dev/full", "No space left on device"),
        ('out=$(mktemp); ulimit -f 0; {line} >"$out"', "File too large"),
    ):
        lost = run(way)
        assert (lost.returncode, told in lost.stderr) == (1, True), (way, lost)
        assert "panicked" not in lost.stderr
    closed = run("set -o pipefail; {line} | true")
    assert (closed.returncode, closed.stderr) == (0, ""), closed
    for name, way in HARMLESS.items():
        done = run(way)
        assert done.returncode == 0, (name, done)


@pytest.mark.parametrize(
    "command",
    [
        "io-autotuned --config /nonexistent",
        "io-autotuned --check --config /nonexistent",
        "io-autotuned --migrate postgres:///nowhere?host=/nonexistent",
        "io-autotuned --loudly",
        "io-autotune-node flush --config /nonexistent",
        "io-autotune-node start --config /nonexistent",
        "io-autotune-node finish --config /nonexistent",
        "io-autotune-node hook --config /nonexistent",
        "io-autotune-node --loudly",
        "io-autotune-collector --cluster c --config /nonexistent",
        "io-autotune-collector --loudly",
    ],
)
def test_a_failure_ends_alike_where_nobody_can_be_told(command: str) -> None:
    program, *words = command.split()
    line = " ".join([str(STAGE / program), *words])
    ends = {}
    for way in ("", "2>/dev/full", "2>&-", ">&- 2>&-", "2>&1 | true"):
        body = f"ulimit -c 0; set -o pipefail; {line} {way}"
        done = subprocess.run(
            ["bash", "-c", body], capture_output=True, check=False, timeout=60, cwd="/"
        )
        ends[way] = done.returncode
    assert set(ends.values()) == {ends[""]}, ends
    assert ends[""] in (1, 2), ends

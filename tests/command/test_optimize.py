"""`optimize` runs a command: its runs, their limits and ends, what is kept, and what is told."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "build/stage/bin/io-autotune"
SPACE = """
[[parameters]]
name = "level"
kind = "integer"
min = 1
max = 9
default = 6

[[parameters]]
name = "cache"
kind = "categories"
values = ["off", "on"]
default = "off"

[[parameters]]
name = "page"
kind = "ordered"
values = ["4K", "64K"]
default = "4K"
when = { parameter = "cache", is = ["on"] }
"""
# Best at level 2 with a cache; some runs fail, and one number has no digits.
WORK = """#!/bin/sh
echo "$0 $* slot=$IO_AUTOTUNE_SLOT cache=$TUNED_cache page=${TUNED_page-none}" >> ran
case $1 in
  8) echo "no level 8" >&2; exit 3;;
  9) echo "rate: many";;
  *) echo "rate: $((100 - ($1 - 2) * ($1 - 2)))";;
esac
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Make a directory with a space and a program."""
    (tmp_path / "space.toml").write_text(SPACE)
    program = tmp_path / "work"
    program.write_text(WORK)
    program.chmod(0o755)
    return tmp_path


@pytest.fixture
def optimize(work: Path) -> Run:
    """Run `optimize` in it."""

    def run(*options: str, command: tuple[str, ...] = ("./work", "{level}")) -> Any:  # noqa: ANN401
        words = [str(PROGRAM), "optimize", "--space=space.toml", *options, "--", *command]
        return subprocess.run(words, cwd=work, capture_output=True, text=True, check=False)

    return run


RATE = ("--measure", r"rate: (\w+)", "--goal=maximize", "--runs=30", "--warm-up=0")


def ran(work: Path) -> list[str]:
    """Return what the program was run with."""
    path = work / "ran"
    return path.read_text().splitlines() if path.exists() else []


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the result for programs."""
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def kept(work: Path, what: str) -> list[dict[str, Any]]:
    """Return the lines of the storage that have this."""
    lines = (work / "io-autotune.studies").read_text().splitlines()
    return [line[what] for line in map(json.loads, lines) if what in line]


def test_a_number_of_the_output_is_made_large_and_the_gain_and_the_command_are_told(
    optimize: Run, work: Path
) -> None:
    result = told(optimize(*RATE, "--json"))
    assert result["runs"] <= 30
    assert result["chosen"]["parametrization"]["level"] == 2
    assert result["chosen"]["mean"] == 100
    assert result["use"] == ["./work", "2"]
    gain = result["gain"]
    assert (gain["verdict"], gain["unit"]) == ("better", "difference")
    # 100 against 84.
    assert gain["low"] <= 16 <= gain["high"]
    outcomes = [one["outcome"] for one in kept(work, "told")]
    assert {"value": 84.0} in outcomes
    assert len(ran(work)) == len(outcomes)


def test_what_is_told_to_a_person_ends_with_the_command_to_use(optimize: Run) -> None:
    done = optimize(*RATE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("study work in io-autotune.studies: ")
    assert lines[-2].startswith("gain     ")
    assert "more than the default" in lines[-2]
    assert lines[-1] == "use      ./work 2"
    assert "1 of 30: 84.0: cache=off level=6" in done.stderr


def test_where_nothing_is_gained_that_is_said_and_the_default_is_used(optimize: Run) -> None:
    done = optimize("--runs=20", "--measure=(7)", command=("echo", "7", "{level}"))
    assert done.returncode == 0, done.stderr
    gain, use = done.stdout.splitlines()[-2:]
    assert gain.startswith("gain     none")
    assert use == "use      echo 7 6"


def test_a_failed_run_is_a_failure_with_its_last_words(optimize: Run, work: Path) -> None:
    done = optimize("--runs=40", "--compare=0", "--measure", r"rate: (\w+)", "--goal=maximize")
    assert done.returncode == 0, done.stderr
    told = {one["id"]: one["outcome"] for one in kept(work, "told")}
    levels = {one["id"]: one["parametrization"]["level"] for one in kept(work, "asked")}
    for run, level in levels.items():
        assert (told[run] == "failed") == (level > 7)
    if 8 in levels.values():
        assert "failed, exit status 3: no level 8" in done.stderr
    if 9 in levels.values():
        assert '"many" is no number' in done.stderr


def test_a_word_whose_parameter_does_not_exist_is_left_out_and_values_are_in_the_environment(
    optimize: Run, work: Path
) -> None:
    optimize(*RATE, command=("./work", "{level}", "--page={page}", "{{}}"))
    for line in ran(work):
        on = "cache=on" in line
        assert ("--page=" in line) == on
        assert line.endswith("page=none") != on
        assert " {} " in line


def test_several_run_at_once_each_in_a_slot_of_its_own(optimize: Run, work: Path) -> None:
    # Each waits until both are there, so that one alone would never end.
    wait = "mkfifo f$0 2>/dev/null; echo > ran.$0; until test -e ran.1 -a -e ran.2; do :; done"
    done = optimize(
        *("--runs=4", "--compare=0", "--warm-up=0", "--jobs=2", "--limit=60"),
        command=("sh", "-c", wait, "{slot}"),
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in work.glob("ran.*")} == {"ran.1", "ran.2"}


def test_a_run_at_its_limit_is_a_lower_bound_and_ends_with_all_that_it_has_started(
    optimize: Run, work: Path
) -> None:
    script = 'if [ "$1" -gt 5 ]; then sleep 600 & echo $! >> children; trap "" TERM; wait; fi'
    done = optimize(
        *("--runs=6", "--compare=0", "--warm-up=0", "--limit=0.3", "--name=cut"),
        command=("sh", "-c", script, "sh", "{level}"),
    )
    assert done.returncode == 0, done.stderr
    first = kept(work, "told")[0]
    assert first == {"id": 1, "outcome": {"cut": 0.3}}
    for child in (work / "children").read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(child), 0)
    assert "cut short after 0.300 s" in done.stderr
    assert "cut short" in done.stdout.splitlines()[0]


def test_a_program_that_is_not_there_ends_the_study_and_says_so(optimize: Run, work: Path) -> None:
    done = optimize("--runs=5", command=("./nowhere", "{level}"))
    assert done.returncode == 1
    assert "./nowhere 6 cannot be started" in done.stderr
    assert kept(work, "told") == []


def test_a_default_that_fails_in_the_warm_up_says_why_before_anything_is_tuned(
    optimize: Run, work: Path
) -> None:
    done = optimize("--runs=5", command=("sh", "-c", "echo no such disk >&2; exit 7"))
    assert done.returncode == 1
    assert "the default failed, exit status 7" in done.stderr
    assert "no such disk" in done.stderr
    assert kept(work, "asked") == []


def test_a_measure_that_finds_nothing_is_said_in_the_warm_up(optimize: Run, work: Path) -> None:
    done = optimize("--runs=5", "--measure=speed: ([0-9]+)", command=("echo", "rate: 3"))
    assert done.returncode == 1
    assert "--measure finds nothing in: rate: 3" in done.stderr
    assert kept(work, "asked") == []


def test_where_no_run_completes_nothing_is_chosen(optimize: Run) -> None:
    done = optimize("--runs=5", "--compare=0", "--warm-up=0", command=("false", "{level}"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "no run completed: 5 of 5 runs failed" in done.stderr


def test_a_measured_time_that_no_run_has_is_a_failure(optimize: Run, work: Path) -> None:
    script = 'echo "took: $(($1 - 6))"'
    done = optimize(
        *("--runs=6", "--compare=0", "--warm-up=0", "--goal=seconds", "--measure=took: (.*)"),
        command=("sh", "-c", script, "sh", "{level}"),
    )
    assert "failed, 0 s is not above zero" in done.stderr
    assert len(kept(work, "told")) == 6


def test_a_number_ends_with_its_stream(optimize: Run, work: Path) -> None:
    script = "printf 'rate: 12'; printf '34' >&2"
    done = optimize(
        *("--runs=1", "--compare=0", "--warm-up=0", "--measure=rate: ([0-9]+)"),
        command=("sh", "-c", script, "sh", "{level}"),
    )
    assert done.returncode == 0, done.stderr
    assert kept(work, "told") == [{"id": 1, "outcome": {"value": 12.0}}]


def test_of_a_long_output_whole_lines_are_searched(optimize: Run, work: Path) -> None:
    # The last MiB begins within the number.
    script = r"printf 'rate: 9876\n%1048573s\n' ''"
    done = optimize(
        *("--runs=1", "--compare=0", "--warm-up=0", "--measure=([0-9]+)"),
        command=("sh", "-c", script, "sh", "{level}"),
    )
    assert done.returncode == 1
    assert kept(work, "told") == [{"id": 1, "outcome": "failed"}]


# The default ends at once, or fails. What is not the default runs for ever, whichever it is; only
# where the default fails, the first such run ends, so that there is a time to compare with.
ENDLESS = """
case $1:$2 in
  6:*) exit $2;;
  *:1) mkdir first 2>/dev/null || sleep 600;;
  *) sleep 600;;
esac
"""


@pytest.mark.parametrize("status", [0, 1])
def test_without_a_warm_up_there_is_a_limit_too(optimize: Run, work: Path, status: int) -> None:
    options = ("--compare=0", "--warm-up=0", "--limit=1x")
    command = ("sh", "-c", ENDLESS, "sh", "{level}", str(status))
    (work / "space.toml").write_text(
        SPACE.replace("max = 9", "max = 6").replace("min = 1", "min = 3")
    )
    if status == 0:
        # What an earlier start measured is known to the next.
        assert optimize("--runs=1", *options, command=command).returncode == 0
    done = optimize("--runs=6", *options, command=command)
    assert len(kept(work, "told")) == 6, done.stderr
    assert "cut short" in done.stderr
    assert ("the limit is 1 times as long as the quickest run" in done.stderr) == (status == 1)


def test_a_study_that_ended_early_runs_nothing_more(optimize: Run, work: Path) -> None:
    options = ("--runs=20", "--measure=(7)")
    script = "echo ran >> ran; echo 7"
    first = optimize(*options, command=("sh", "-c", script, "sh", "{level}"))
    assert first.returncode == 0, first.stderr
    if len(kept(work, "told")) < 20:
        before = len(ran(work))
        optimize(*options, command=("sh", "-c", script, "sh", "{level}"))
        assert len(ran(work)) == before


# From the comparison on, what is not the default fails in two of three runs.
FRAIL = """#!/bin/sh
n=$(cat n 2>/dev/null || echo 0)
echo $((n + 1)) > n
if [ "$1" != 6 ] && [ "$n" -ge 16 ] && [ $((n % 3)) != 0 ]; then exit 1; fi
echo "rate: $((100 - ($1 - 2) * ($1 - 2)))"
"""


def test_what_fails_more_often_than_the_default_is_not_to_be_used(
    optimize: Run, work: Path
) -> None:
    (work / "work").write_text(FRAIL)
    options = ("--runs=40", "--compare=24", "--warm-up=0", "--goal=maximize")
    done = optimize(*options, "--measure=rate: (.*)", command=("./work", "{level}"))
    assert done.returncode == 0, done.stderr
    *_, gain, use = done.stdout.splitlines()
    assert " chosen and 0 default runs of the comparison failed" in gain
    assert gain.startswith("gain     none is shown by ")
    assert use == "use      ./work 6"
    assert " failed " in next(line for line in done.stdout.splitlines() if line[:6] == "chosen")


def test_the_command_to_use_is_the_one_that_was_compared(optimize: Run, work: Path) -> None:
    result = told(optimize(*RATE, "--json"))
    compared = [one["parametrization"] for one in kept(work, "asked") if one["role"] == "settled"]
    assert compared
    assert {json.dumps(one, sort_keys=True) for one in compared} == {
        json.dumps(result["chosen"]["parametrization"], sort_keys=True)
    }


def test_what_is_wrong_with_the_command_line_is_said_with_what_to_write(optimize: Run) -> None:
    for options, command, said in [
        (["--runs=5"], ["./work", "{lvel}"], "did you mean {level}?"),
        (["--runs=5"], ["./work", "{level"], "written twice"),
        (["--runs=5", "--goal=maximize"], ["./work"], "--measure"),
        (["--runs=5", "--measure=rate"], ["./work"], "one group in parentheses"),
        (["--runs=5", "--limit=soon"], ["./work"], "number of seconds"),
        (["--runs=0"], ["./work"], "0 is not in 1..=100000"),
    ]:
        done = optimize(*options, command=tuple(command))
        assert done.returncode == 2, done
        assert said in done.stderr


def test_a_study_goes_on_until_it_has_its_runs_and_then_runs_nothing(
    optimize: Run, work: Path
) -> None:
    optimize("--runs=10", *RATE[:3], "--warm-up=0")
    before = len(ran(work))
    again = told(optimize("--runs=10", *RATE[:3], "--warm-up=0", "--json"))
    assert len(ran(work)) == before
    assert again["runs"] == len(kept(work, "told"))
    other = optimize("--runs=10", "--warm-up=0", command=("./work", "1", "{level}"))
    assert other.returncode == 1
    assert "another goal" in other.stderr


def test_too_few_runs_for_a_claim_are_said_before_the_first_and_at_the_end(
    optimize: Run,
) -> None:
    options = ("--runs=12", *RATE[:3], "--warm-up=0")
    done = optimize(*options)
    assert done.returncode == 0, done.stderr
    said = "can find a better setting but cannot show that it is; about 28 runs can"
    before, _ = done.stderr.split(": 1 of 12: ")
    assert f"12 runs, of which 6 compare, {said}" in before
    *_, gain, use = done.stdout.splitlines()
    assert use == "use      ./work 6"
    assert ": too few control runs to bound the gain; about 8 more runs would show" in gain
    assert gain.endswith("--runs 20")
    more = told(optimize("--runs=28", *RATE[:3], "--warm-up=0", "--json"))
    assert more["gain"]["verdict"] == "better"
    assert more["gain"]["runs_needed"] is None
    assert more["use"] == ["./work", str(more["chosen"]["parametrization"]["level"])]


def test_a_comparison_that_cannot_be_as_asked_says_so(optimize: Run) -> None:
    done = optimize("--compare=50", *RATE[:3], "--runs=40", "--warm-up=0")
    assert done.returncode == 0, done.stderr
    assert "50 of 40 runs cannot compare" in done.stderr
    assert "39 of 40 runs compare, which leaves 1 for the search" in done.stderr


def test_fewer_runs_than_there_are_is_said(optimize: Run, work: Path) -> None:
    optimize("--runs=8", *RATE[:3], "--warm-up=0", "--compare=0")
    before = len(ran(work))
    done = optimize("--runs=5", *RATE[:3], "--compare=0")
    assert "8 runs, more than --runs 5, have ended: nothing is left to run" in done.stderr
    assert done.stdout.startswith("study work in io-autotune.studies: 8 runs, more than --runs 5")
    assert len(ran(work)) == before


def begun(work: Path, *options: str, command: tuple[str, ...]) -> subprocess.Popen[str]:
    """Start it in a session of its own."""
    words = [str(PROGRAM), "optimize", "--space=space.toml", *options, "--", *command]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, cwd=work, stdout=pipe, stderr=pipe, text=True)


# The third run says that it runs, and stays, as does what it has started.
STAYS = """
n=$(cat n 2>/dev/null || echo 0)
echo $((n + 1)) > n
if [ "$n" = 2 ]; then
  sleep 600 &
  echo $$ $! > pids
  echo > started
  while :; do sleep 1; done
fi
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_the_file_is_whole_and_the_same_command_goes_on(
    work: Path, optimize: Run, number: signal.Signals
) -> None:
    os.mkfifo(work / "started")
    command = ("sh", "-c", STAYS, "sh", "{level}")
    process = begun(work, "--runs=6", "--compare=0", "--warm-up=0", command=command)
    with (work / "started").open() as started:
        started.read()
    children = [os.pidfd_open(int(pid)) for pid in (work / "pids").read_text().split()]
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    # Whatever ends it, what it runs ends too, with all that it has started.
    for child in children:
        assert select.select([child], [], [], 60)[0] == [child]
        os.close(child)
    if number != signal.SIGKILL:
        assert process.returncode == 1
        assert "interrupted: 2 of 6 runs are kept in io-autotune.studies" in said
    assert len(kept(work, "told")) == 2
    done = optimize("--runs=6", "--compare=0", "--warm-up=0", "--json", command=command)
    assert told(done)["runs"] == 6
    assert [one["id"] for one in kept(work, "asked")] == [1, 2, 3, 4, 5, 6]
    assert "2 of 6 runs have ended" in done.stderr


def test_what_is_to_be_ignored_stays_ignored(work: Path) -> None:
    os.mkfifo(work / "go")
    words = ["nohup", str(PROGRAM), "optimize", "--space=space.toml", "--runs=3", "--compare=0"]
    # The warm-up waits, in a session that hangs up meanwhile.
    words += ["--", "sh", "-c", "test -e done || read line < go; touch done", "{level}"]
    process = subprocess.Popen(words, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with (work / "go").open("w") as go:
        process.send_signal(signal.SIGHUP)
        go.write("on\n")
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(kept(work, "told")) == 3


def test_a_terminal_shows_how_far_it_is(work: Path) -> None:
    ours, theirs = pty.openpty()
    words = [str(PROGRAM), "optimize", "--space=space.toml", *RATE, "--", "./work", "{level}"]
    process = subprocess.Popen(
        words,
        cwd=work,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait() == 0
    assert b"work: " in shown
    assert b" of 30 runs, best 100" in shown
    assert b"(the default 84" in shown
    if any(one["outcome"] == "failed" for one in kept(work, "told")):
        assert b"failed, " in shown

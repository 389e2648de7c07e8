"""`campaign` submits a user's job again and again; sbatch and squeue are played."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from command.jobs import End, Json, variables
from command.service import ALICE, Service
from command.terminal import SECONDS, read, started

SBATCH = """\
#!/bin/sh
echo "$*" >> {place}/asked
if [ -e {place}/refuses ]; then cat {place}/refuses >&2; exit 1; fi
id=$(($(cat {place}/last) + 1))
echo $id > {place}/last
echo "$id|PENDING" >> {place}/queue
[ ! -e {place}/slow ] || read -r _ < {place}/slow
echo $id
"""
SQUEUE = "#!/bin/sh\nexec cat {place}/queue\n"
FIRST = count(70_000, 1000)
"""Where each test's jobs begin: those of other tests are below."""


@dataclass(frozen=True)
class Submitting:
    """A user's submit host: a script, and a Slurm that is played."""

    served: Service
    place: Path
    script: Path

    @property
    def app(self) -> str:
        """The application of the script's jobs."""
        return self.script.name

    @property
    def env(self) -> dict[str, str]:
        """The environment of the user."""
        path = f"{self.place}/bin:{self.served.env['PATH']}"
        return {"PATH": path, "XDG_STATE_HOME": str(self.place / "state")}

    @property
    def kept(self) -> Path:
        """The file of the campaign."""
        return self.place / "state" / "io-autotune" / f"{self.app}.campaign"

    def argv(self, *options: str, runs: int = 3) -> list[str]:
        """Return the command of a campaign."""
        words = ["campaign", "--runs", str(runs), "--every", "0.1", *options]
        return ["io-autotune", *words, "--", "--nodes=1", str(self.script), "in.nc"]

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Begin a campaign where nobody can be asked."""
        return self.served.run_as(ALICE, self.argv(*options), env=self.env)

    @contextmanager
    def begun(self, *options: str, runs: int = 3) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
        """Begin a campaign at a terminal."""
        env = [f"{name}={value}" for name, value in self.env.items()]
        argv = ["env", *env, *self.argv(*options, runs=runs)]
        with started(self.served, ALICE, argv, 200) as (master, running):
            yield master, running

    def submitted(self) -> list[str]:
        """Return what sbatch was given, a line a call."""
        asked = self.place / "asked"
        return asked.read_text(encoding="utf-8").splitlines() if asked.exists() else []

    def play(self, job_id: int, end: Callable[[Json], End] = lambda _: End()) -> None:
        """Let a job run, and Slurm say so."""
        job = self.served.job(ALICE, self.app, job_id=job_id)
        (given,) = self.served.start(job)
        self.served.end([(job, given, end(given))])
        self.say(job_id, "COMPLETED")

    def say(self, job_id: int, state: str) -> None:
        """Let squeue list a job so, and no other."""
        (self.place / "queue").write_text(f"{job_id}|{state}\n", encoding="utf-8")


@pytest.fixture
def host(served: Service, shared: Path, request: pytest.FixtureRequest) -> Iterator[Submitting]:
    """Return a submit host whose script is named as the test."""
    (shared / "bin").mkdir()
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE)):
        program = shared / "bin" / name
        program.write_text(text.format(place=shared), encoding="utf-8")
        program.chmod(0o755)
    script = shared / f"{re.sub(r'[^a-z0-9]+', '-', request.node.name.lower()).strip('-')}.sh"
    script.write_text("#!/bin/sh\nsrun ./ocean $1\n", encoding="utf-8")
    script.chmod(0o755)
    for name, text in (("last", f"{next(FIRST)}\n"), ("queue", "")):
        (shared / name).write_text(text, encoding="utf-8")
        (shared / name).chmod(0o666)
    yield Submitting(served, shared, script)
    shutil.rmtree(shared / "state", ignore_errors=True)


def next_job(master: int, running: subprocess.Popen[bytes]) -> tuple[str, int]:
    """Return what is printed until the next job is submitted, and the job."""
    text = read(master, running, "is submitted")
    found = re.findall(r"job (\d+) is submitted", text)
    assert found, text
    return text, int(found[-1])


def test_jobs_are_submitted_one_at_a_time_within_what_was_asked_for(host: Submitting) -> None:
    with host.begun() as (master, running):
        asked = read(master, running, "take together? ")
        assert f"3 runs, one at a time: sbatch --io-autotune --nodes=1 {host.script}" in asked
        assert "No run of this application is known yet" in asked
        assert not host.submitted()
        os.write(master, b"0.5\n")
        for number in (1, 2, 3):
            text, job_id = next_job(master, running)
            assert f"run {number} of 3: " in text
            assert len(host.submitted()) == number
            if number > 1:
                assert f"{number - 1} of 3: job {job_id - 1} took 10.0 s (default)" in text
                assert "; best so far the default; expected end " in text
            host.play(job_id)
        text = read(master, running)
        assert running.wait(SECONDS) == 0, text
    assert "after 3 of 3 runs (3 count), with 0.008 node-hours: all runs are done" in text
    assert set(host.submitted()) == {f"--parsable --io-autotune --nodes=1 {host.script} in.nc"}
    assert not host.kept.exists()
    assert host.served.study(host.app)["counted"] == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_same_command_goes_on_after_an_interruption(
    host: Submitting, number: signal.Signals
) -> None:
    agreed = ("--node-hours", "1", "--yes")
    with host.begun(*agreed) as (master, running):
        host.play(next_job(master, running)[1])
        _, job_id = next_job(master, running)
        running.send_signal(number)
        text = read(master, running)
        status = running.wait(SECONDS)
    if number == signal.SIGINT:
        assert status == 1
        assert f"job {job_id} goes on in Slurm; 1 of 3 runs are done. The same command" in text
    assert stat.S_IMODE(host.kept.stat().st_mode) == 0o600
    # It ends while nobody watches.
    host.play(job_id)
    # What was agreed to is not asked again.
    with host.begun() as (master, running):
        text, last = next_job(master, running)
        assert f"2 of 3: job {job_id} took 10.0 s" in text
        assert ("run 3 of 3" in text, last) == (True, job_id + 1)
        host.play(last)
        text = read(master, running)
        assert running.wait(SECONDS) == 0, text
    assert "after 3 of 3 runs (3 count)" in text
    assert len(host.submitted()) == 3


def test_a_job_is_not_lost_when_the_command_is_killed_while_sbatch_runs(
    host: Submitting,
) -> None:
    slow = host.place / "slow"
    os.mkfifo(slow)
    slow.chmod(0o666)
    begun = host.begun("--node-hours", "1", "--yes", runs=1)
    # The gate opens once sbatch reads it, so sbatch runs.
    with begun as (_, running), slow.open("w", encoding="utf-8") as gate:
        running.kill()
        assert running.wait(SECONDS) == -signal.SIGKILL
        overtaking = host.run("--node-hours", "1", "--yes")
        assert overtaking.returncode == 1
        assert "its sbatch still runs" in overtaking.stderr
        gate.write("go\n")
    slow.unlink()
    job_id = int((host.place / "last").read_text(encoding="utf-8"))
    host.play(job_id)
    with host.begun("--node-hours", "1", "--yes", runs=1) as (master, running):
        text = read(master, running)
        assert running.wait(SECONDS) == 0, text
    assert f"1 of 1: job {job_id} took 10.0 s" in text
    assert len(host.submitted()) == 1


def test_nothing_is_submitted_where_nobody_can_be_asked(host: Submitting) -> None:
    for options in ((), ("--node-hours", "1")):
        done = host.run(*options)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert "nothing was submitted" in done.stderr
        assert "add --node-hours HOURS and --yes" in done.stderr
    assert not host.submitted()
    job = host.script.rename(host.script.with_name("job.sh"))
    done = host.served.run_as(
        ALICE, ["io-autotune", "campaign", "--runs", "2", "--", str(job)], env=host.env
    )
    assert done.returncode == 2
    assert "job.sh says nothing of its program" in done.stderr
    assert not host.submitted()


def test_a_failed_submission_is_told_in_sbatchs_own_words(host: Submitting) -> None:
    refusal = "sbatch: error: Batch job submission failed: Invalid partition name\x1b[2J\n"
    (host.place / "refuses").write_text(refusal, encoding="utf-8")
    done = host.run("--node-hours", "1", "--yes")
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "0 of 3 runs are done: sbatch: error: Batch job" in done.stderr
    assert "Invalid partition name?[2J" in done.stderr
    assert len(host.submitted()) == 1


def test_a_job_that_is_cancelled_in_the_queue_ends_the_campaign_until_it_goes_on(
    host: Submitting,
) -> None:
    agreed = ("--node-hours", "1", "--yes")
    with host.begun(*agreed) as (master, running):
        _, job_id = next_job(master, running)
        host.say(job_id, "CANCELLED")
        text = read(master, running)
        assert running.wait(SECONDS) == 1, text
    assert f"job {job_id} ended in CANCELLED, and the service has no run of it" in text
    with host.begun(*agreed, runs=2) as (master, running):
        _, other = next_job(master, running)
        assert other == job_id + 1
        host.play(other)
        text = read(master, running)
        assert running.wait(SECONDS) == 0, text
    assert "after 2 of 2 runs (1 count)" in text


def test_no_run_is_begun_that_may_take_more_than_is_left(host: Submitting) -> None:
    with host.begun("--node-hours", "0.005", "--yes") as (master, running):
        host.play(next_job(master, running)[1])
        text = read(master, running)
        assert running.wait(SECONDS) == 1, text
    assert "after 1 of 3 runs (1 count), with 0.003 node-hours" in text
    assert "another run may take more than is left of 0.005 node-hours" in text
    with host.begun("--node-hours", "0.02") as (master, running):
        asked = read(master, running, "[y/N] ")
        assert "3 runs (1 of them are submitted already)" in asked
        assert "They may take 0.020 node-hours together." in asked
        os.write(master, b"y\n")
        next_job(master, running)
        running.send_signal(signal.SIGINT)
        read(master, running)
        assert running.wait(SECONDS) == 1


def test_it_ends_when_a_gain_is_claimed(host: Submitting) -> None:
    def end(answer: Json) -> End:
        noise = 1.0 + 0.01 * (answer["run_id"] * 7 % 11)
        return End(seconds=(10.0 if variables(answer["delivery"]) else 20.0) * noise)

    with host.begun("--node-hours", "10", "--yes", runs=100) as (master, running):
        while True:
            text = read(master, running, "is submitted")
            found = re.findall(r"job (\d+) is submitted", text)
            if not found:
                break
            host.play(int(found[-1]), end)
        assert running.wait(SECONDS) == 0, text
    assert ": a gain is claimed" in text
    status = host.served.tuner(ALICE, "status", host.app).stdout
    for label in ("gain", "chosen"):
        (told,) = [line for line in status.splitlines() if line.startswith(f"{label} ")]
        assert told in text.replace("\r\n", "\n").splitlines()

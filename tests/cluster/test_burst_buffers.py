"""Slurm's burst_buffer/lua: directives are completed, and the job always goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest
from clusters import cluster_of_its_own
from devcluster import Variant, files
from devcluster.users import SLURM_USER
from harness import ALICE, ROOT, Job, Json, Site, asked, await_true, await_value, lines
from outages import service_frozen, service_mute, service_stopped

ACCELERATOR = """
name = "directed"
title = "A burst buffer of Slurm's"
description = "Made by a test."
takes_effect = "before the job starts"
needs = ["burst_buffer"]
[[parameters]]
name = "workers"
kind = "ordered"
values = [1, 2, 4]
default = 1
[[parameters]]
name = "destagers"
kind = "ordered"
values = [1, 2, 4]
default = 1
[[delivery.directives]]
name = "worker-threads"
value = "{workers}"
[[delivery.directives]]
name = "destagers"
value = "{destagers}"
"""

PROGRAM = """#!/bin/bash
# What a site's would do on the nodes: a directory stands for the buffer.
printf '%s\\n' "$1" >> {log}.$2
case $1 in
    start)
        cat "$5" >> {log}.$2
        [ ! -e {gate} ] || cat {gate} > {log}.opened
        mkdir -p {buffers}/$2
        ;;
    stop) rm -rf {buffers}/$2 ;;
esac
"""

DIRECTED = "accelerator=directed"
BODY = "#BB target=/scratch\nls -d $BURST_BUFFER_DIR\n"
PREVENTED = "its burst buffer's directives were not completed"


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster with burst_buffer/lua, an accelerator for it, and a program."""
    variant = Variant(burst_buffer=True)
    with cluster_of_its_own(request, "burst_buffer", variant=variant) as site:
        catalogue = site.paths.accelerators / "directed.toml"
        files.write(catalogue, ACCELERATOR, mode=0o644)
        program = PROGRAM.format(
            log=site.paths.scratch / "buffers.log",
            gate=_gate(site),
            buffers=site.paths.burst_buffers,
        )
        files.write(site.paths.bin / "burst-buffer", program, mode=0o755)

        def is_known() -> bool:
            known = site.ask(ALICE, "accelerators", "list")
            return "directed" in {accelerator["name"] for accelerator in known}

        await_true("the accelerator to be there", is_known)
        site.introduce_nodes()
        yield site


@pytest.fixture(autouse=True)
def _nothing_leaks(site: Site) -> Iterator[None]:
    yield
    _await_no_buffers(site)


def _await_no_buffers(site: Site) -> None:
    """Wait until neither Slurm, the script nor the program has a buffer."""

    def left() -> bool:
        held = site.cluster.run_as(ROOT, ["scontrol", "show", "burstbuffer"]).stdout
        places = (site.paths.burst_buffers, site.paths.burst_buffers_spool)
        return "JobID=" in held or any(any(place.iterdir()) for place in places)

    await_true("no buffer to be left", lambda: not left())


def _gate(site: Site) -> Path:
    return site.paths.scratch / "gate"


@pytest.fixture
def gate(site: Site) -> Iterator[Path]:
    """Have each start wait until somebody opens this."""
    path = _gate(site)
    os.mkfifo(path)
    path.chmod(0o666)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _open(gate: Path) -> None:
    """Let one start go on, once it waits."""

    def is_open() -> bool:
        # Fails where nobody waits.
        with suppress(OSError):
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
            return True
        return False

    await_true("a start to wait", is_open)


def _open_for_good(gate: Path) -> None:
    """Let all starts go on, those that wait and those to come."""
    opened = gate.with_name("opened")
    gate.rename(opened)
    # Fails where nobody waits.
    with suppress(OSError):
        os.close(os.open(opened, os.O_WRONLY | os.O_NONBLOCK))
    opened.unlink()


def _log(site: Site, job: Job) -> list[str]:
    """Return what the program was called with for a job, and the directives of its starts."""
    # A file for each: the tasks of an array start side by side.
    path = site.paths.scratch / f"buffers.log.{job.job_id}"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _whole_log(site: Site, job: Job) -> list[str]:
    """Return it once the buffer is stopped, which Slurm does after the job has ended."""
    await_true(f"the stop of job {job.job_id}", lambda: _log(site, job)[-1:] == ["stop"])
    return _log(site, job)


def _restart_if_slurm_ended_the_teardown(site: Site, job: Job) -> None:
    """See that a cancelled job's buffer is stopped, if by the next slurmctld.

    Slurm kills all scripts of a job that is cancelled while one runs, and does not wait for that
    before it begins the teardown, which it now and then kills too: docs/burst-buffers.md.
    """
    ended = f"teardown for JobId={job.job_id} terminated by slurmctld"
    await_true(
        f"the stop of job {job.job_id}, or Slurm's end of it",
        lambda: _log(site, job)[-1:] == ["stop"] or ended in _slurmctld_says(site),
    )
    if ended in _slurmctld_says(site):
        site.restart("slurmctld")
        _await_nodes(site)


def _await_nodes(site: Site) -> None:
    states = site.cluster.node_states
    await_true("the nodes to be known again", lambda: "unknown" not in states().values())


def _await_start(site: Site, job: Job, starts: int = 1) -> None:
    await_true(
        f"start {starts} of the buffer of job {job.job_id}",
        lambda: _log(site, job).count("start") == starts,
    )


def _slurmctld_says(site: Site) -> str:
    return site.paths.log_of("slurmctld").read_text(encoding="utf-8", errors="replace")


def _pinned(site: Site, app: str, *options: str) -> None:
    """Have the next run of an application get four workers."""
    site.counted_run(BODY, asked(app, DIRECTED), *options)
    site.pin(app, {"workers": "4"})


def _completed(site: Site, job: Job) -> Json:
    """Return the run of a job that Slurm must have completed."""
    assert site.ended(job)["JobState"] == "COMPLETED"
    buffer = f"{site.paths.burst_buffers}/{job.job_id}"
    assert lines(site.output(job))[-1] == buffer
    return site.judged(job)


def test_the_directives_of_a_job_are_completed(site: Site) -> None:
    app = "bb-normal"
    default = site.sbatch(BODY, asked(app, DIRECTED))
    run = _completed(site, default)
    assert run["state"] == "counted", run["verdict"]
    assert _whole_log(site, default) == ["start", "#BB target=/scratch", "stop"], "nothing is added"
    site.pin(app, {"workers": "4"})
    # Not even what sbatch leaves out of the job's environment is needed.
    job = site.sbatch(BODY, asked(app, DIRECTED), "--export=NONE")
    run = _completed(site, job)
    assert run["state"] == "counted", run["verdict"]
    assert run["applied"]["parametrization"] == {"workers": 4, "destagers": 1}
    completed = "#BB target=/scratch worker-threads=4 destagers=1"
    assert _whole_log(site, job) == ["start", completed, "stop"]


def _tasks(site: Site, name: str, count: int) -> list[Job]:
    """Return the jobs of an array of this name, once each of its tasks is a job of its own."""

    def split() -> list[str] | None:
        found = site.jobs_named(name)
        return found if len(found) == count else None

    return [Job(int(job_id), "") for job_id in await_value(f"the tasks of {name}", split)]


def test_nodes_and_tasks_of_an_array_have_the_same_answer(site: Site) -> None:
    app = "bb-array"
    _pinned(site, app, "--nodes=2")
    array = ["--nodes=2", "--array=1-3", f"--job-name={app}"]
    job = site.sbatch(BODY, asked(app, DIRECTED), *array)
    tasks = _tasks(site, app, 3)
    assert job.job_id in {task.job_id for task in tasks}
    completed = "#BB target=/scratch worker-threads=4 destagers=1"
    for task in tasks:
        # Each has its own buffer: Slurm has told it where.
        run = _completed(site, task)
        assert run["state"] == "counted", run["verdict"]
        assert run["applied"]["parametrization"]["workers"] == 4
        assert _whole_log(site, task) == ["start", completed, "stop"]


def test_tasks_of_an_array_have_what_their_user_wrote_without_the_service(site: Site) -> None:
    app = "bb-array-alone"
    with service_stopped(site):
        site.sbatch(BODY, asked(app, DIRECTED), "--array=1-2", f"--job-name={app}")
        for task in _tasks(site, app, 2):
            assert site.ended(task)["JobState"] == "COMPLETED"
            assert lines(site.output(task)) == [f"{site.paths.burst_buffers}/{task.job_id}"]
            assert _whole_log(site, task) == ["start", "#BB target=/scratch", "stop"]


def test_what_the_user_wrote_is_left_alone_and_said(site: Site) -> None:
    app = "bb-own"
    _pinned(site, app)
    body = "#BB worker-threads=2 target=/scratch\nls -d $BURST_BUFFER_DIR\n"
    job = site.sbatch(body, asked(app, DIRECTED))
    run = _completed(site, job)
    own = "#BB worker-threads=2 target=/scratch destagers=1"
    assert _whole_log(site, job) == ["start", own, "stop"]
    assert run["state"] == "not_counted"
    assert run["verdict"] == "the user's own directive worker-threads was left alone"
    said = f"job {job.job_id}: worker-threads is the user's own and left alone"
    assert said in _slurmctld_says(site)


def test_a_job_without_a_buffer_counts_for_nothing(site: Site) -> None:
    run = site.run("true", asked("bb-none", DIRECTED))
    assert run["state"] == "not_counted"
    assert PREVENTED in run["verdict"]


def test_a_job_that_is_not_tuned_has_its_buffer(site: Site) -> None:
    job = site.sbatch(BODY)
    assert site.ended(job)["JobState"] == "COMPLETED"
    assert _whole_log(site, job) == ["start", "#BB target=/scratch", "stop"]


@pytest.mark.parametrize(
    "outage",
    [service_stopped, service_mute, pytest.param(service_frozen, marks=pytest.mark.slow)],
)
def test_without_the_service_a_job_has_what_its_user_wrote(
    site: Site, outage: Callable[[Site], AbstractContextManager[None]]
) -> None:
    app = f"bb-{outage.__name__.replace('_', '-')}"
    _pinned(site, app)
    with outage(site):
        job = site.sbatch(BODY, asked(app, DIRECTED))
        assert site.ended(job)["JobState"] == "COMPLETED"
        assert _whole_log(site, job) == ["start", "#BB target=/scratch", "stop"]
    said = f"the directives of job {job.job_id} stay as they are"
    assert said in _slurmctld_says(site)
    run = site.judged(job)
    assert run["state"] == "not_counted", run


def test_a_job_that_is_cancelled_before_its_start_leaves_no_buffer(site: Site, gate: Path) -> None:
    app = "bb-cancelled"
    job = site.sbatch(BODY, asked(app, DIRECTED))
    _await_start(site, job)
    site.cluster.run_as(ALICE, ["scancel", str(job.job_id)])
    assert site.ended(job)["JobState"] == "CANCELLED"
    # Its start goes on, if Slurm has not ended it, and stop waits for that.
    _open_for_good(gate)
    _restart_if_slurm_ended_the_teardown(site, job)
    _whole_log(site, job)
    run = site.judged(job)
    assert run["state"] == "not_counted"
    assert "CANCELLED" in run["verdict"]


def test_a_start_that_hangs_is_cut_off_and_the_job_goes_on(site: Site, gate: Path) -> None:
    assert gate.exists()
    job = site.sbatch("#BB target=/scratch\necho ran", asked("bb-hung", DIRECTED))
    assert site.ended(job)["JobState"] == "COMPLETED"
    assert lines(site.output(job)) == ["ran"]
    assert f"job {job.job_id} goes on without its buffer" in _slurmctld_says(site)
    run = site.judged(job)
    assert run["state"] == "not_counted", "its buffer had not been set up"
    assert PREVENTED in run["verdict"]


@pytest.mark.parametrize("array", [[], ["--array=1-2"]], ids=["job", "array"])
def test_each_launch_of_a_requeued_job_is_completed(site: Site, array: list[str]) -> None:
    app = f"bb-requeued-{len(array)}"
    _pinned(site, app)
    # The array's own job ends at once: who requeues that requeues all its tasks.
    ends = "[ $SLURM_RESTART_COUNT ] || [ ${SLURM_ARRAY_JOB_ID:-0} = $SLURM_JOB_ID ]"
    body = f"{BODY}{ends} || sleep 600"
    first = site.sbatch(body, asked(app, DIRECTED), f"--job-name={app}", *array)
    if array:
        (job,) = (task for task in _tasks(site, app, 2) if task.job_id != first.job_id)
    else:
        job = first
    site.started(job)
    site.await_state(job, "RUNNING")
    site.requeue(job)
    assert site.ended(job)["JobState"] == "COMPLETED"
    site.counted(job, 1)
    completed = "#BB target=/scratch worker-threads=4 destagers=1"
    assert _whole_log(site, job) == ["start", completed, "stop"] * 2


def test_slurmctld_that_is_restarted_asks_again_and_gets_the_same(site: Site, gate: Path) -> None:
    app = "bb-restarted"
    first = site.sbatch(BODY, asked(app, DIRECTED))
    _await_start(site, first)
    _open(gate)
    assert _completed(site, first)["state"] == "counted"
    site.pin(app, {"workers": "4"})
    job = site.sbatch(BODY, asked(app, DIRECTED))
    _await_start(site, job)
    site.restart("slurmctld")
    _open_for_good(gate)
    run = _completed(site, job)
    assert run["state"] == "counted", run["verdict"]
    assert run["applied"]["parametrization"]["workers"] == 4
    assert len(site.runs(job)) == 1
    log = _whole_log(site, job)
    assert set(log) == {"start", "#BB target=/scratch worker-threads=4 destagers=1", "stop"}
    assert log.count("start") == 2, "slurmctld had asked again"
    _await_nodes(site)


def test_the_first_component_of_a_heterogeneous_job_carries_the_run(site: Site) -> None:
    app = "bb-het"
    _pinned(site, app)
    job = site.sbatch(BODY, asked(app, DIRECTED), "-n1", ":", "-n1")
    assert site.ended(job)["JobState"] == "COMPLETED"
    run = site.counted(job)
    assert run["applied"]["parametrization"]["workers"] == 4


def test_a_script_is_data(site: Site) -> None:
    """Attack (nodes): A directive goes on in the next line, or has a shell's commands or escapes.
    Outcome: No command is run, and the line stays as it was.
    """
    app, trap = "bb-attack", site.paths.scratch / "trap"
    _pinned(site, app)
    nasty = f"#BB $(touch {trap}) `touch {trap}` ';touch {trap};' \"& touch {trap} run 1 \x1b[2J"
    job = site.sbatch(f"#BB x=1\n{nasty}\n#BB y\\\ntrue", asked(app, DIRECTED))
    assert site.ended(job)["JobState"] == "COMPLETED"
    site.counted(job)
    written = _whole_log(site, job)[1:-1]
    assert written[0] == "#BB x=1 worker-threads=4 destagers=1"
    assert written[1:] == [nasty, "#BB y\\"], "what hides something is left alone"
    assert not trap.exists()


def test_only_the_burst_buffers_account_completes_directives(site: Site) -> None:
    """Attack (others): Somebody without the role starts or finishes runs, tells outcomes, or
    completes directives.
    """
    app = "bb-role"
    job = site.sbatch(BODY, asked(app, DIRECTED))
    run = _completed(site, job)
    named = f"{site.cluster_name}/{job.job_id}/0/{run['run_id']}"
    argv = ["io-autotune-node", "directives", "delivered", "--run", named]

    def said(user: str) -> str:
        done = site.cluster.run_as(user, argv, check=False)
        assert done.returncode == 1
        return done.stderr

    assert "only the burst buffer's account completes directives" in said(ALICE)
    assert "no run" in said(SLURM_USER), "one that has ended is not changed"

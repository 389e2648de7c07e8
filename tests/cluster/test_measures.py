"""What a run's steps read, wrote and computed, counted by the kernel and not by the application."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from harness import ALICE, Job, Json, Site, asked, await_true

MEBIBYTE = 1 << 20
SLACK = MEBIBYTE
"""What shells and loaders may read and write besides."""
BATCH_RECORD = "step-4294967291.measures"
FORGED_BYTES = 777_777_777_777

DD_AND_PYTHON = """
dd if=/dev/zero of=$HOME/dd.$SLURM_JOB_ID bs=1M count=50 status=none
/usr/bin/python3 -c '
import sys
with open(sys.argv[1], "wb") as file:
    for _ in range(30):
        file.write(bytes(1 << 20))
' $HOME/python.$SLURM_JOB_ID
"""


def wrote(run: Json, mebibytes: int, steps: int) -> None:
    """Check what a run is said to have written, in so many measured steps."""
    measures = run["measures"]
    assert measures["measured_steps"] == steps, measures
    expected = mebibytes * MEBIBYTE
    assert expected <= measures["asked_written_bytes"] <= expected + SLACK, measures


def dd(mebibytes: int) -> str:
    """Return a command that writes so much in each of its processes."""
    script = f"dd if=/dev/zero of=$HOME/$$.$SLURM_JOB_ID bs=1M count={mebibytes} status=none"
    return f"bash -c '{script}'"


def directory_of(site: Site, job: Job) -> Path | None:
    """Return the directory of a running job, if it has one."""
    found = [path for path in site.job_directories() if path.name == str(job.job_id)]
    return found[0] if found else None


def fenced(site: Site, name: str, *options: str) -> tuple[Job, Path]:
    """Submit a job that has written one MiB, and ends once its fence is there."""
    fence = site.paths.scratch / f"{name}.fence"
    body = f"{dd(1)}\necho written\nuntil [ -e {fence} ]; do sleep 0.1; done\necho ended"
    job = site.sbatch(body, *options)
    output = site.paths.home(ALICE) / f"{job.job_id}.out"
    await_true("the job to have written", lambda: output.exists() and output.stat().st_size > 0)
    return job, fence


def test_a_batch_job_is_measured_and_explained(site: Site) -> None:
    job = site.sbatch(DD_AND_PYTHON, asked("measures-batch"))
    run = site.counted(job)
    wrote(run, 80, steps=1)
    measures = run["measures"]
    assert measures["asked_read_bytes"] >= 50 * MEBIBYTE, "dd reads what it writes"
    # The home directories are on a disk, which all of it is for.
    storage = measures["storage_written_bytes"]
    assert 80 * MEBIBYTE <= storage <= 80 * MEBIBYTE + 2 * SLACK, measures
    assert 80 <= measures["write_calls"] <= 500, measures
    # Where the kernel samples, a short job may have been seen in the kernel alone.
    seconds = measures.get("user_seconds", 0.0) + measures["system_seconds"]
    assert 0.0 < seconds <= run["elapsed"] * 2, (measures, run["elapsed"])
    assert measures["voluntary_switches"] >= 1.0

    shown = site.tuner(ALICE, "explain", str(job.job_id), "--details").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("I/O ")]
    assert ", wrote 83.9 MB in " in line or ", wrote 84.0 MB in " in line, shown
    assert "             storage gave " in shown
    assert "             processors: " in shown
    assert site.history("measures-batch", ALICE)[0]["measures"] == measures


def test_the_tasks_of_a_step_add_up(site: Site) -> None:
    run = site.run(f"srun --ntasks=2 {dd(10)}", asked("measures-srun"), "--ntasks=2")
    wrote(run, 20, steps=2)


def test_the_ranks_of_mpiexec_are_found_wherever_it_puts_them(site: Site) -> None:
    body = f"mpiexec.mpich -n 2 {dd(20)}"
    job = site.sbatch(body, asked("measures-mpiexec"), "--ntasks=2")
    run = site.judged(job)
    # Where it asks Slurm to start them, in a step of their own.
    (report,) = site.explain(job)["reports"]
    wrote(run, 40, steps=len(report["steps"]))


def test_nodes_add_up(site: Site) -> None:
    body = f"srun --nodes=2 --ntasks=2 {dd(10)}"
    job = site.sbatch(body, asked("measures-nodes"), "--nodes=2", "--ntasks=2")
    run = site.judged(job)
    # The batch step, and the inner one on each node.
    wrote(run, 20, steps=3)
    parts = [report["measures"] for report in site.explain(job)["reports"]]
    assert len(parts) == 2
    for part in parts:
        assert part["asked_written_bytes"] >= 10 * MEBIBYTE, parts


def test_a_job_that_takes_no_part_is_not_measured(site: Site) -> None:
    job, fence = fenced(site, "measures-plain")
    directory = directory_of(site, job)
    fence.touch()
    assert site.ended(job)["JobState"] == "COMPLETED"
    assert directory is None, "it has a directory to be measured in"
    assert site.runs(job) == []


def test_a_job_cannot_write_what_it_is_said_to_have_done(site: Site) -> None:
    """Attack (files): The record of what a step did is forged, another step's, malformed or
    missing.
    Outcome: Only true records are measured.
    """
    app = "measures-forged"
    names = "rchar wchar syscr syscw read_bytes write_bytes cancelled_write_bytes user_us system_us"
    body = f"""
        exec 2>&1
        try() {{ "$@" && echo "done: $*"; }}
        dir={site.paths.plugin_run}/$SLURM_CLUSTER_NAME/$SLURMD_NODENAME/$SLURM_JOB_ID
        [ -d "$dir" ] && echo "there: $dir"
        forged=$HOME/forged.$SLURM_JOB_ID
        echo io-autotune-measures 1 > $forged
        echo step 4294967291 >> $forged
        for name in {names} major_faults voluntary_switches involuntary_switches; do
            echo $name {FORGED_BYTES} >> $forged
        done
        for record in {BATCH_RECORD} step-0.measures .{BATCH_RECORD}.$PPID; do
            try cp $forged $dir/$record; try ln -s $forged $dir/$record; try ln $forged $dir/$record
            try mkdir $dir/$record; try mv $forged $dir/$record
        done
        true
    """
    job = site.sbatch(body, asked(app))
    run = site.judged(job)
    output = site.output(job)
    assert "there: " in output, "it did not find the place to write to"
    assert "done:" not in output, output
    assert run["state"] == "counted", run["verdict"]
    wrote(run, 0, steps=1)
    assert max(run["measures"].values()) < FORGED_BYTES / 1000


@pytest.mark.parametrize("hindrance", ["none", "unwritable", "missing"])
def test_a_job_ends_alike_whether_it_can_be_measured_or_not(site: Site, hindrance: str) -> None:
    """Attack (files): The record of what a step did is forged, another step's, malformed or
    missing.
    Outcome: Only true records are measured.
    """
    job, fence = fenced(site, f"measures-{hindrance}", asked(f"measures-{hindrance}"))
    directory = directory_of(site, job)
    assert directory is not None
    if hindrance == "unwritable":
        # Not even for root: a file does not take the place of a directory that is not empty.
        (directory / BATCH_RECORD / "x").mkdir(parents=True)
    elif hindrance == "missing":
        shutil.rmtree(directory)
    fence.touch()
    shown = site.ended(job)
    assert (shown["JobState"], shown["ExitCode"]) == ("COMPLETED", "0:0")
    assert site.output(job) == "written\nended\n", "its output is its own"
    if hindrance == "missing":
        return
    run = site.counted(job)
    if hindrance == "none":
        wrote(run, 1, steps=1)
    else:
        # How others fared is no node's to measure.
        assert set(run["measures"]) <= {"others_elapsed_ratio"}
        assert "I/O " not in site.tuner(ALICE, "explain", str(job.job_id), "--details").stdout

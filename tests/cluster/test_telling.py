"""A job that asked is told in its stderr, once, what it runs with; another is told nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import ALICE, Job, Site, asked, await_value, lines

LINE = re.compile(r"io-autotune: job (\d+) runs with (.+); how it did, .*: io-autotune explain \1")


def told(text: str) -> list[tuple[int, str]]:
    """Return of which job what is told in an output: the lines that are ours."""
    ours = [line for line in lines(text) if "io-autotune" in line]
    found = [LINE.fullmatch(line) for line in ours]
    assert all(found), f"another line than promised: {ours}"
    return [(int(one[1]), one[2]) for one in found if one is not None]


def test_the_jobs_one_file_has_one_line_and_all_that_the_job_said(site: Site) -> None:
    body = 'echo begun; srun -n2 bash -c "echo step; echo wrong >&2"; echo done'
    job = site.sbatch(body, asked("telling", "tell"), "--ntasks=2")
    run = site.counted(job)
    output = site.output(job)
    ((job_id, what),) = told(output)
    assert job_id == job.job_id
    assert f"({run['role']})" in what
    rest = [line for line in lines(output) if "io-autotune" not in line]
    assert sorted(rest) == ["begun", "done", "step", "step", "wrong", "wrong"]


def test_a_job_that_did_not_ask_is_told_nothing(site: Site) -> None:
    job = site.sbatch("echo begun; srun -n1 echo step", asked("telling-not"))
    site.judged(job)
    assert site.output(job) == "begun\nstep\n"


def test_stdout_is_left_alone_where_stderr_has_a_file(site: Site) -> None:
    job = site.sbatch("echo begun", asked("telling-apart", "tell"), "--error=%j.err")
    site.judged(job)
    assert site.output(job) == "begun\n"
    errors = (site.paths.home(ALICE) / f"{job.job_id}.err").read_text(encoding="utf-8")
    assert [job_id for job_id, _ in told(errors)] == [job.job_id]


def test_each_task_of_an_array_is_told_of_itself(site: Site) -> None:
    job = site.sbatch(
        "echo $SLURM_JOB_ID", asked("telling-array", "tell"), "--array=1-2", "--output=%A_%a.out"
    )
    site.judged(job)
    for task in (1, 2):
        path = site.paths.home(ALICE) / f"{job.job_id}_{task}.out"

        def text(path: Path = path) -> str | None:
            said = path.read_text(encoding="utf-8") if path.exists() else ""
            return said if re.search(r"^\d+$", said, re.MULTILINE) else None

        said = await_value(f"task {task} to have run", text)
        (own,) = (int(line) for line in lines(said) if line.isdigit())
        assert [job_id for job_id, _ in told(said)] == [own]


def test_an_srun_that_is_a_job_is_told_once(site: Site) -> None:
    argv = ["srun", asked("telling-srun", "tell"), "-n2", "printenv", "SLURM_JOB_ID"]
    done = site.cluster.run_as(ALICE, argv)
    (job_id,) = set(done.stdout.split())
    said = [line for line in lines(done.stderr) if " runs with " in line]
    assert [one for one, _ in told("\n".join(said))] == [int(job_id)]
    site.judged(Job(int(job_id), done.stderr))


def test_what_is_pinned_is_told_by_its_values_and_the_jobs_own_is_not_called_ours(
    site: Site,
) -> None:
    site.run("true", asked("telling-pinned"))
    site.pin("telling-pinned", {"cb_nodes": "2"})
    ((_, what),) = told(output(site, asked("telling-pinned", "tell")))
    assert re.search(r"\bcb_nodes=2\b.* \(pinned\)$", what), what
    own = output(site, asked("telling-pinned", "tell"), ROMIO_HINTS="/dev/null")
    assert "io-autotune: ROMIO_HINTS is this job's own and stays" in own


def output(site: Site, option: str, **environment: str) -> str:
    job = site.sbatch("true", option, env=environment)
    site.judged(job)
    return site.output(job)


@pytest.mark.parametrize("where", ["/dev/full", "/dev/null"])
def test_an_output_that_takes_nothing_costs_the_job_nothing(site: Site, where: str) -> None:
    """Attack (files): The output of sbatch, or of a job that asks to be told, is full, closed, or
    not read.
    Outcome: The words are lost; the job is submitted, and its run counts.
    """
    job = site.sbatch("true", asked("telling-full", "tell"), f"--output={where}")
    run = site.judged(job)
    assert (run["state"], run["outcome"]) == ("counted", "COMPLETED"), run["verdict"]

"""What a user sees when submitting, and which jobs get a run."""

from __future__ import annotations

import re
import time

import pytest
from harness import ALICE, Job, Site, asked, await_true


@pytest.mark.parametrize(
    ("spec", "choices"),
    [
        ("mode=quick", ["mode=quick", "tune|observe|off"]),
        ("colour=blue", ["colour=blue", "app=NAME", "accelerator=NAME", "mode="]),
        ("lustre", ['"lustre"', "romio"]),
        ("app=../../etc/passwd", ["app=../../etc/passwd", "letters, digits"]),
    ],
)
def test_a_bad_spec_is_refused_with_the_valid_choices(
    site: Site, spec: str, choices: list[str]
) -> None:
    name = f"bad-spec-{re.sub('[^a-z]', '', spec)}"
    done = site.try_sbatch("true", f"--job-name={name}", f"--io-autotune={spec}")
    assert done.returncode != 0, f"sbatch took {spec!r}: {done.stderr}"
    for choice in choices:
        assert choice in done.stderr, f"the message for {spec!r} does not tell {choice!r}"
    assert site.jobs_named(name) == [], "a job was submitted all the same"


def test_the_option_is_in_the_help_of_every_command(site: Site) -> None:
    for program in ("sbatch", "salloc", "srun"):
        shown = site.cluster.run_as(ALICE, [program, "--help"]).stdout
        assert "--io-autotune" in shown, f"{program} --help does not list the option"


def test_a_tuned_job_prints_one_line_and_gets_one_run(site: Site) -> None:
    job = site.sbatch("sleep 1", asked("submission-good"))
    said = job.said()
    assert len(said) == 1, f"not exactly one line: {said}"
    assert "submission-good" in said[0]
    assert "romio" in said[0]
    run = site.judged(job)
    assert (run["state"], run["outcome"]) == ("counted", "COMPLETED"), run["verdict"]
    assert 1.0 <= run["elapsed"] < 20.0, "the batch step slept for a second"
    assert len(site.runs(job)) == 1


def test_a_plain_job_prints_nothing_and_gets_no_run(site: Site) -> None:
    """Promise: a submission fails"""
    job = site.sbatch("env")
    assert job.said() == []
    assert site.ended(job)["JobState"] == "COMPLETED"
    # A run would have been started in the prolog, and reported before the job ended.
    assert site.runs(job) == []
    ours = re.findall(
        r"^(?:IO_AUTOTUNE_SET|ROMIO_HINTS|.*SPANK.*)=", site.output(job), re.MULTILINE
    )
    assert ours == [], "the job's environment is not its own"


def test_the_script_can_ask_by_itself(site: Site) -> None:
    run = site.run(f"#SBATCH {asked('submission-directive')}\ntrue")
    assert run["application"] == "submission-directive"
    assert run["state"] == "counted", run["verdict"]


def test_salloc_counts_its_steps_and_not_the_time_between(site: Site) -> None:
    inside = "srun -n1 sleep 1; sleep 3; srun -n1 sleep 1"
    argv = ["salloc", asked("submission-salloc"), "-n1", "bash", "-c", inside]
    began = time.monotonic()
    done = site.cluster.run_as(ALICE, argv)
    took = time.monotonic() - began
    granted = re.search(r"Granted job allocation (\d+)", done.stderr)
    assert granted is not None, done.stderr
    run = site.judged(Job(int(granted[1]), done.stderr))
    assert run["application"] == "submission-salloc"
    assert run["state"] == "counted", run["verdict"]
    assert 2.0 <= run["elapsed"] < took - 3.0, "two steps of a second each; the pause is not theirs"


def test_steps_that_run_at_once_count_once(site: Site) -> None:
    # The first step waits in the pipe until the second one is there; then both take two seconds.
    inside = (
        "pipe=$(mktemp -u) && mkfifo $pipe;"
        " srun -n1 --overlap bash -c 'read < $0; sleep 2' $pipe &"
        " srun -n1 --overlap bash -c 'echo > $0; sleep 2' $pipe & wait; rm $pipe"
    )
    argv = ["salloc", asked("submission-at-once"), "-n2", "bash", "-c", inside]
    done = site.cluster.run_as(ALICE, argv)
    granted = re.search(r"Granted job allocation (\d+)", done.stderr)
    assert granted is not None, done.stderr
    job = Job(int(granted[1]), done.stderr)
    run = site.judged(job)
    assert run["state"] == "counted", run["verdict"]
    (report,) = site.explain(job)["reports"]
    took = [step["duration_ns"] / 1e9 for step in report["steps"]]
    assert len(took) == 2, report["steps"]
    assert run["elapsed"] <= sum(took) - 1.9, "two seconds in which both ran count once"
    assert run["elapsed"] >= max(took)


def test_a_job_that_gives_up_a_node_counts_for_neither_size(site: Site) -> None:
    ask = asked("submission-resized")
    shrinks = 'scontrol update JobId="$SLURM_JOB_ID" NumNodes=1 >&2'
    run = site.run(f"#SBATCH {ask}\n#SBATCH --nodes=2\nset -e\n{shrinks}\nsrun -n1 true")
    assert (run["outcome"], run["state"]) == ("COMPLETED", "not_counted"), run["verdict"]
    # Whichever node asked first has started it. If that one was given up, it is none of Slurm's.
    assert run["not_counted_because"] in {"resized", "other_nodes"}, run["verdict"]


def test_a_direct_srun_gets_a_run(site: Site) -> None:
    argv = ["srun", asked("submission-srun"), "-n2", "printenv", "SLURM_JOB_ID"]
    done = site.cluster.run_as(ALICE, argv)
    (job_id,) = set(done.stdout.split())
    run = site.judged(Job(int(job_id), done.stderr))
    assert run["application"] == "submission-srun"
    assert run["state"] == "counted", run["verdict"]


def test_an_option_for_a_later_component_only_is_explained_once(site: Site) -> None:
    later = asked("submission-later")
    # The backfill scheduler plans a node of its own for each component: two nodes start two.
    job = site.sbatch(f"#SBATCH --ntasks=1\n#SBATCH hetjob\n#SBATCH --ntasks=1 {later}\ntrue")
    (line,) = job.said()
    assert "untuned" in line, line
    assert "first" in line, "the line does not say what to do"
    assert site.ended(job)["JobState"] == "COMPLETED"
    assert site.history("submission-later") == []


@pytest.mark.parametrize("tasks", [20, pytest.param(1000, marks=pytest.mark.array)])
def test_an_array_is_one_submission_and_a_run_for_each_task(site: Site, tasks: int) -> None:
    app = f"submission-array-{tasks}"
    first = site.sbatch("true", asked(app), f"--array=0-{tasks - 1}", "--output=/dev/null")
    assert len(first.said()) == 1
    site.judged(first)

    def are_judged() -> bool:
        # Of every epoch: when the load of so many tasks ends, drift may be seen.
        states = [run["state"] for run in site.history(app)]
        return len(states) == tasks and "in_flight" not in states

    await_true(f"all {tasks} tasks to be judged", are_judged, 60.0 + tasks)
    runs = site.history(app)
    assert {run["state"] for run in runs} == {"counted"}, [run["verdict"] for run in runs]
    assert len({run["job_id"] for run in runs}) == len(runs) == tasks
    # Each is found as squeue shows it, though the service knows its own id alone.
    squeue = ["squeue", "--noheader", "--array", "--states=all", "--format=%F_%K|%A"]
    listed = site.cluster.run_as(ALICE, squeue).stdout.split()
    of_array = [line.split("|") for line in listed if line.startswith(f"{first.job_id}_")]
    assert len(of_array) == tasks
    for word, job_id in of_array[:: tasks // 5]:
        (one,) = site.ask(ALICE, "explain", word)
        assert str(one["run"]["job_id"]) == job_id, word


@pytest.mark.parametrize("how", ["wrap", "run.sh"])
def test_a_name_that_says_nothing_is_observed_and_does_not_count(site: Site, how: str) -> None:
    if how == "wrap":
        argv = ["sbatch", "--parsable", "--output=%j.out", "--io-autotune", "--wrap", "env"]
    else:
        script = site.paths.home(ALICE) / "run.sh"
        script.write_text("#!/bin/bash\nenv\n", encoding="utf-8")
        argv = ["sbatch", "--parsable", "--output=%j.out", "--io-autotune", str(script)]
    done = site.cluster.run_as(ALICE, argv, env={"IO_AUTOTUNE_VERBOSE": "1"})
    job = Job(int(done.stdout), done.stderr)
    (line,) = job.said()
    assert "observed" in line, line
    assert "app=NAME" in line, "the line does not say what to do"
    run = site.judged(job)
    assert (run["role"], run["state"]) == ("observe", "not_counted")
    assert "name" in run["verdict"]
    assert "ROMIO_HINTS" not in site.output(job)

"""The option is for an allocation: a step of one that is there changes nothing, and says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from clusters import cluster_of_its_own
from harness import ALICE, ROOT, Job, Site, asked, lines

PROMISE = "first runs measure"
"""What a submission says whose application is new."""
STEP = "srun -n1 --overlap"
SHOW = "bash -c 'echo ${ROMIO_HINTS-none}'"


@pytest.fixture(scope="module", params=["Alloc", "no Alloc"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster whose prolog runs at the allocation, or before a node's first step."""
    alloc = request.param == "Alloc"
    with cluster_of_its_own(request, f"steps {request.param}", prolog_alloc=alloc) as site:
        site.introduce_nodes()
        yield site


@pytest.fixture
def allocation(site: Site) -> Iterator[Job]:
    """Make an allocation that nobody asked to tune, and end it."""
    done = site.cluster.run_as(ALICE, ["salloc", "--no-shell", "-n1", "-J", "allocations-held"])
    granted = re.search(r"Granted job allocation (\d+)", done.stderr)
    assert granted is not None, done.stderr
    job = Job(int(granted[1]), done.stderr)
    yield job
    site.cluster.run_as(ALICE, ["scancel", str(job.job_id)])
    site.ended(job)
    assert site.runs(job) == [], "it was tuned, or counted, by half"


def step(site: Site, job: Job, *options: str) -> str:
    """Run a step of a job from outside, and return what io-autotune said."""
    argv = ["srun", f"--jobid={job.job_id}", *options, "printenv", "ROMIO_HINTS"]
    done = site.cluster.run_as(ALICE, argv, env={"IO_AUTOTUNE_VERBOSE": "1"}, check=False)
    assert done.stdout == "", "the step was given hints"
    return "\n".join(Job(0, done.stderr).said())


@pytest.mark.parametrize("more", [[], ["--overlap"]])
def test_a_step_of_another_allocation_neither_tunes_nor_promises(
    site: Site, allocation: Job, more: list[str]
) -> None:
    """Nothing is applied or counted.

    Attack (environment): srun --jobid joins another allocation with the option, or from a tuned
    job.
    Outcome: The step says that the option changes nothing; nothing counts.
    """
    said = step(site, allocation, *more, asked("allocations-half"))
    assert "changes nothing" in said, said
    assert PROMISE not in said
    assert step(site, allocation, *more) == ""
    assert site.history("allocations-half") == []


def test_a_tuned_job_does_not_lend_its_request_to_another_allocation(
    site: Site, allocation: Job
) -> None:
    """It does not, however its environment is changed.

    Attack (environment): srun --jobid joins another allocation with the option, or from a tuned
    job.
    Outcome: The step says that the option changes nothing; nothing counts.
    """
    app = "allocations-lender"
    other = allocation.job_id
    job = site.sbatch(
        f"{STEP} --jobid={other} {SHOW}\n"
        f"SLURM_JOB_ID={other} {STEP} {SHOW}\n"
        f"{STEP} --jobid={other} {asked(app)} true 2>&1 | grep -o 'changes nothing'\n",
        asked(app),
    )
    assert site.judged(job)["application"] == app
    assert lines(site.output(job)) == ["none", "none", "changes nothing"]
    assert {run["job_id"] for run in site.history(app)} == {job.job_id}


def test_a_step_says_whether_the_option_changes_anything(site: Site) -> None:
    app = "allocations-same"
    steps = [asked(app), "--io-autotune", asked("allocations-other"), "--io-autotune=mode=off"]
    body = "".join(f"{STEP} {option} true 2>&1 | grep -c 'changes nothing'\n" for option in steps)
    job = site.sbatch(body, asked(app))
    assert site.judged(job)["application"] == app
    assert lines(site.output(job)) == ["0", "0", "1", "1"]
    assert site.history("allocations-other") == []


def test_a_step_of_a_job_that_did_not_ask_says_that_it_stays_untuned(site: Site) -> None:
    body = f"{STEP} {asked('allocations-plain')} printenv ROMIO_HINTS"
    job = site.sbatch(body)
    site.ended(job)
    assert "untuned" in site.output(job)
    argv = ["salloc", "-n1", "bash", "-c", body]
    done = site.cluster.run_as(ALICE, argv, env={"IO_AUTOTUNE_VERBOSE": "1"}, check=False)
    assert "untuned" in done.stderr, done.stderr
    assert PROMISE not in done.stderr
    assert site.ask(ROOT, "history", "allocations-plain") == []


def test_an_allocation_that_asked_is_tuned_by_whichever_step_comes(site: Site) -> None:
    argv = ["salloc", asked("allocations-asked"), "-n1", "bash", "-c", f"{STEP} true; {STEP} true"]
    done = site.cluster.run_as(ALICE, argv)
    granted = re.search(r"Granted job allocation (\d+)", done.stderr)
    assert granted is not None, done.stderr
    run = site.judged(Job(int(granted[1]), done.stderr))
    assert (run["application"], run["state"]) == ("allocations-asked", "counted"), run["verdict"]

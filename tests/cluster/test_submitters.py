"""Programs that submit find the job's id in what sbatch prints, also where stderr is in it.

Their ways to find it are written anew from their sources, which each parser's comment names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from harness import ALICE, ROOT, Site

SUBMISSIONS = 100
"""Of each form; half of them with the option, half with the variable."""
SIDE_BY_SIDE = 8


@dataclass(frozen=True)
class Submission:
    """What sbatch printed, both streams in one, and the job's true id."""

    printed: str
    job_id: str


Submissions = dict[str, list[Submission]]
"""By form: whether with --parsable."""

WITH, WITHOUT = "--parsable", ""


def first(pattern: str, text: str) -> str:
    """Return the first group, or what matched if there is none."""
    found = re.search(pattern, text)
    assert found is not None, text
    return found[found.re.groups and 1]


def batchspawner(printed: str) -> str:
    # batchspawner/batchspawner.py, SlurmSpawner.parse_job_id (1.3.0, PyPI)
    job_id = printed.splitlines()[-1].split(";")[0]
    return str(int(job_id))


def easybuild(printed: str) -> str:
    # easybuild/tools/job/slurm.py, Slurm.queue (5.4.1, PyPI): only where the output begins so
    return first(r"^Submitted batch job ([0-9]+)", printed)


def snakemake(printed: str) -> str:
    # snakemake_executor_plugin_slurm/validation.py, validate_or_get_slurm_job_id (2.8.0, PyPI):
    # what comes before a semicolon, else the only number that is no fraction and has no unit
    job_id = printed.strip().split(";")[0]
    if re.match(r"^\d+$", job_id):
        return job_id
    units = r"[kKmMgG](?:iB)?|files|cores|hours|[cC][pP][uU][sS]?"
    (only,) = re.findall(rf"(?<![.\d])\d+(?![.\d]|\s*%|\s*(?:{units})(?:\s|[-.]|$))", printed)
    return str(only)


def jetstream(printed: str) -> str:
    # jetstream/backends/slurm.py, sbatch (github.com/tgen/jetstream, published source): all of it
    return printed.strip()


def maestro(printed: str) -> str:
    # maestrowf/interfaces/script/slurmscriptadapter.py, submit (1.2.1, PyPI): the first number
    return first("[0-9]+", printed)


def nextflow(printed: str) -> str:
    # nextflow/executor/SlurmExecutor.groovy, parseJobId (github.com/nextflow-io/nextflow, published
    # source): the first line that has it, or nothing but a number
    for line in printed.splitlines():
        if found := re.search(r"Submitted batch job (\d+)", line):
            return found[1]
    return str(int(printed.strip()))


def parsl(printed: str) -> str:
    # parsl/providers/slurm/slurm.py, regex_job_id and submit (2026.10.26, PyPI): where a line
    # begins so
    found = (re.match(r"Submitted batch job (\S*)", line) for line in printed.split("\n"))
    return next(match[1] for match in found if match)


def dask_jobqueue(printed: str) -> str:
    # dask_jobqueue/core.py, Job.job_id_regexp (0.9.0, PyPI): the first number
    return first(r"\d+", printed)


def reframe(printed: str) -> str:
    # reframe/core/schedulers/slurm.py, SlurmJobScheduler.submit (4.10.4, PyPI)
    return first(r"Submitted batch job (\d+)", printed)


PARSERS: dict[Callable[[str], str], tuple[str, ...]] = {
    batchspawner: (WITH,),
    easybuild: (WITHOUT,),
    snakemake: (WITH, WITHOUT),
    jetstream: (WITH,),
    maestro: (WITH, WITHOUT),
    nextflow: (WITH, WITHOUT),
    parsl: (WITHOUT,),
    dask_jobqueue: (WITH, WITHOUT),
    reframe: (WITHOUT,),
}
"""Each with the forms that it can read."""


@pytest.fixture(scope="module")
def submissions(site: Site) -> Iterator[Submissions]:
    """Submit jobs that wait, and tell which is which by their names."""
    numbers = {form: range(SUBMISSIONS) for form in (WITH, WITHOUT)}
    names = {
        (form, number): f"submitters{form}-{number}" for form in numbers for number in numbers[form]
    }
    with ThreadPoolExecutor(SIDE_BY_SIDE) as side_by_side:
        printed = dict(
            zip(
                names,
                side_by_side.map(
                    lambda key: submitted(site, key[0], names[key], variable=key[1] % 2 == 0), names
                ),
                strict=True,
            )
        )
    argv = ["squeue", "--noheader", f"--user={ALICE}", "--format=%j %A"]
    ids = dict(line.split() for line in site.cluster.run_as(ROOT, argv).stdout.splitlines())
    yield {
        form: [Submission(printed[form, number], ids[names[form, number]]) for number in every]
        for form, every in numbers.items()
    }
    site.cluster.run_as(ROOT, ["scancel", f"--user={ALICE}", "--state=PENDING"])


def submitted(site: Site, form: str, name: str, *, variable: bool) -> str:
    """Submit a job as tools do, without a terminal, and return all that sbatch printed."""
    argv = ["sbatch", form, "" if variable else "--io-autotune", f"--job-name={name}", "--hold"]
    line = shlex.join([word for word in [*argv, "--wrap=true"] if word])
    environment = {"IO_AUTOTUNE": ""} if variable else {}
    done = site.cluster.run_as(ALICE, ["sh", "-c", f"exec {line} 2>&1"], env=environment)
    return done.stdout


@pytest.mark.parametrize(
    ("parser", "form"),
    [(parser, form) for parser, forms in PARSERS.items() for form in forms],
    ids=lambda value: value.__name__ if callable(value) else value or "plain",
)
def test_the_right_id_is_found_every_time(
    submissions: Submissions, parser: Callable[[str], str], form: str
) -> None:
    all_of_them = submissions[form]
    right = [one for one in all_of_them if parser(one.printed) == one.job_id]
    assert len(right) == len(all_of_them) == SUBMISSIONS

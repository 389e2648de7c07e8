"""Workflow tools as they are: they submit, and their jobs become the right applications.

``make test-workflows`` installs the tools. Elsewhere all but Nextflow's are skipped.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from devcluster import accounts, command, files
from harness import ALICE, ROOT, Json, Site, await_value

VENV = Path(os.environ.get("IO_AUTOTUNE_WORKFLOWS", "/nonexistent"))
"""Where the tools are, which the users of jobs can read. Looked for nowhere else, so that the other
targets take the same time everywhere."""
WORKFLOWS = Path(__file__).resolve().parents[1] / "workflows"
NEEDS_TOOLS = pytest.mark.skipif(
    not (VENV / ".installed").exists(),
    reason="IO_AUTOTUNE_WORKFLOWS names no workflow tools; make test-workflows installs them",
)
SECONDS = 180.0
"""How long a tool may take: it asks for its jobs' states now and then."""

CANCELLED = "Slurm says CANCELLED"
"""The verdict on a job that takes tasks until its tool ends it: its time is not that of work."""


@dataclass(frozen=True)
class Way:
    """How a workflow's user asks for tuning."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    option: Sequence[str] = ()
    """Options of sbatch, to be passed in the tool's own way."""


VARIABLE = Way("variable", environment={"IO_AUTOTUNE": ""})
OPTION = Way("option", option=["--io-autotune"])

both_ways = pytest.mark.parametrize("way", [VARIABLE, OPTION], ids=lambda way: way.name)


@pytest.fixture
def work(site: Site, request: pytest.FixtureRequest) -> Path:
    """Return the user's directory with all workflows, and an srun that needs no SLURM_CONF.

    Snakemake's jobs forget this variable. Elsewhere the file has its usual place.
    """
    name = re.sub(r"\W+", "-", request.node.name).strip("-")
    work = site.paths.home(ALICE) / name
    shutil.copytree(WORKFLOWS, work)
    srun = f'#!/bin/sh\nSLURM_CONF={site.paths.slurm_conf} exec {command.find("srun")} "$@"\n'
    files.directory(work / "bin", 0o755)
    files.write(work / "bin" / "srun", srun.encode(), mode=0o755)
    user = accounts.find(ALICE)
    for path in (work, *work.rglob("*")):
        os.chown(path, user.uid, user.gid)
    return work


def runs_of(site: Site, work: Path, argv: Sequence[str], way: Way, count: int) -> list[Json]:
    """Let a tool do its work, and return the verdicts on its jobs, the oldest first."""
    before = {run["job_id"] for run in site.ask(ROOT, "history", "--limit", "10000")}
    path = f"{work / 'bin'}:{VENV / 'bin'}:{site.cluster.env(ALICE)['PATH']}"
    done = site.cluster.run_as(
        ALICE,
        argv,
        cwd=work,
        env={"PATH": path, **way.environment},
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

    def look() -> list[Json] | None:
        runs = site.ask(ROOT, "history", "--limit", "10000")
        mine = [run for run in runs if run["job_id"] not in before]
        judged = [run for run in mine if run["state"] != "in_flight"]
        return judged if len(judged) == count else None

    return await_value(f"the verdicts on {count} jobs of {argv[0]}", look)


def named(site: Site, run: Json) -> str:
    """Return what ``explain`` says of where the application of a run comes from."""
    shown = site.tuner(ALICE, "explain", str(run["job_id"])).stdout
    found = re.search(r"^named +(.*)$", shown, re.M)
    assert found is not None, shown
    return found[1]


SNAKEMAKE = (
    *("snakemake", "--executor", "slurm", "--jobs", "3"),
    *("--slurm-status-command", "squeue", "--slurm-no-account"),
    *("--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1"),
)
"""Without accounting, and soon aware of a job's end."""


def studies(runs: Sequence[Json]) -> set[str]:
    """Return the studies that runs belong to."""
    return {run["study_id"] for run in runs}


@NEEDS_TOOLS
@both_ways
def test_a_rule_of_snakemake_is_an_application(site: Site, work: Path, way: Way) -> None:
    extra = [f"slurm_extra='{option}'" for option in way.option]
    argv = [*SNAKEMAKE, *(["--default-resources", *extra] if extra else [])]
    runs = runs_of(site, work, argv, way, 3)
    assert [(work / f"{sample}.copy").read_text() for sample in ("s1", "s2")] == ["begun\n"] * 2
    assert [run["application"] for run in runs] == ["smk-begin", "smk-copy", "smk-copy"]
    assert [run["state"] for run in runs] == ["counted"] * 3, runs
    assert len(studies(runs)) == 2
    comments = ["rule_begin", "rule_copy_wildcards_s1", "rule_copy_wildcards_s2"]
    told = sorted(named(site, run) for run in runs)
    for sentence, comment in zip(told, comments, strict=True):
        assert re.fullmatch(
            rf'by rule snakemake, from the job\'s name "[-0-9a-f]{{36}}" and comment "{comment}"',
            sentence,
        )


@NEEDS_TOOLS
def test_workflows_of_snakemake_are_told_apart_by_a_prefix(site: Site, work: Path) -> None:
    argv = [*SNAKEMAKE, "--slurm-jobname-prefix", "ocean", "begun"]
    (run,) = runs_of(site, work, argv, VARIABLE, 1)
    assert (run["application"], run["state"]) == ("smk-ocean_begin", "counted")


@NEEDS_TOOLS
@both_ways
def test_an_executor_of_parsl_is_an_application(site: Site, work: Path, way: Way) -> None:
    argv = ["python3", "parsl_workflow.py", "ocean", *way.option]
    (run,) = runs_of(site, work, argv, way, 1)
    assert (work / "parsl.copy").read_text() == "copied"
    assert (run["application"], run["verdict"]) == ("parsl.ocean", CANCELLED)
    assert re.fullmatch(
        r'by rule parsl, from the job\'s name "parsl\.ocean\.block-0\.[0-9.]+"', named(site, run)
    )


@NEEDS_TOOLS
@both_ways
def test_workers_of_dask_are_an_application(site: Site, work: Path, way: Way) -> None:
    argv = ["python3", "dask_workflow.py", *way.option]
    (run,) = runs_of(site, work, argv, way, 1)
    assert (work / "dask.copy").read_text() == "copied"
    assert (run["application"], run["verdict"]) == ("dask-worker", CANCELLED)
    assert named(site, run) == 'by no rule, from the job\'s name "dask-worker"'


@NEEDS_TOOLS
@both_ways
def test_a_test_of_reframe_is_an_application(site: Site, work: Path, way: Way) -> None:
    options = [f"--job-option={option}" for option in way.option]
    argv = [
        *("reframe", "--config-file=reframe_settings.py", "--checkpath=reframe_checks.py"),
        *("--prefix=reframe", "--run", *options),
    ]
    runs = runs_of(site, work, argv, way, 2)
    assert [run["state"] for run in runs] == ["counted"] * 2, runs
    plain, sized = sorted(runs, key=lambda run: str(run["application"]))
    assert plain["application"] == "rfm_Plain"
    assert re.fullmatch("rfm_Sized_[0-9a-f]{8}", sized["application"])
    assert named(site, sized) == f'by no rule, from the job\'s name "{sized["application"]}"'


def nextflow_name(task: str) -> str:
    """Return what Nextflow calls the job of a task.

    After getJobNameFor and sanitizeJobName in nextflow/executor/AbstractGridExecutor.groovy.
    """
    return ("nf-" + re.sub("[ /:@*?=]", "_", task))[:256]


TASKS = {
    "ALIGN (sample 1)": "nf-ALIGN",
    "ALIGN (sample 2)": "nf-ALIGN",
    "RNASEQ:QC:FASTQC (s/3=a)": "nf-RNASEQ_QC_FASTQC",
    "RNASEQ:QC:FASTQC (s/4=b)": "nf-RNASEQ_QC_FASTQC",
    "REPORT": "nf-REPORT",
}
"""Tasks of a pipeline, and what their jobs are to be."""


@both_ways
def test_a_process_of_nextflow_is_an_application(site: Site, way: Way) -> None:
    # As in .command.run: getHeaders writes the name and clusterOptions as directives.
    more = "".join(f"#SBATCH {option}\n" for option in way.option)
    jobs = {
        task: site.sbatch(f"#SBATCH -J {nextflow_name(task)}\n{more}true", env=way.environment)
        for task in TASKS
    }
    runs = {task: site.judged(job) for task, job in jobs.items()}
    assert {task: run["application"] for task, run in runs.items()} == TASKS
    assert {run["state"] for run in runs.values()} == {"counted"}
    assert len(studies(list(runs.values()))) == len(set(TASKS.values()))
    for task, run in runs.items():
        assert named(site, run) == f'by rule nextflow, from the job\'s name "{nextflow_name(task)}"'

"""A job that a tuned one submits asks by itself, or is left alone: nothing is lent to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from devcluster import accounts, files
from harness import ALICE, Job, Site, asked

SUBMIT = "sbatch --parsable --output=/dev/null --wrap=true"
"""What a job runs that asks for nothing."""
ALL_OF_SLURM = "$(compgen -e | grep -E '^_?(SLURM|SLURMD|SBATCH|SRUN|SPANK)' | grep -v ^SLURM_CONF$"
"""The names of all of Slurm's variables but the one that finds this cluster."""


@dataclass(frozen=True)
class Way:
    """A way by which a job submits another one."""

    name: str
    before: str = ""
    """What precedes the submission, on its line."""
    lines: str = ""
    """What the script does before."""
    submit: str = SUBMIT


def without(names: str) -> str:
    """Return what runs a command without variables of these names."""
    return f"env {names} | sed 's/^/--unset=/') "


WAYS = [
    Way("the whole environment"),
    Way("without the job's id", "env -u SLURM_JOB_ID -u SLURM_JOBID"),
    Way("without SLURM_JOB_ID", "env -u SLURM_JOB_ID"),
    Way("without SLURM_JOBID", "env -u SLURM_JOBID"),
    Way("without the request", "env -u SLURM_SPANK_IO_AUTOTUNE -u SLURM_JOB_ID -u SLURM_JOBID"),
    Way("without any of Slurm's", without(ALL_OF_SLURM)),
    Way("with SPANK's alone", without(f"{ALL_OF_SLURM} | grep -v SPANK")),
    Way("with the option's alone", without(f"{ALL_OF_SLURM} | grep -v SPANK_OPTION")),
    Way("with the request alone", without(f"{ALL_OF_SLURM} | grep -v SPANK_IO_AUTOTUNE")),
    Way("unset and exported again", lines="unset SLURM_JOB_ID SLURM_JOBID\nexport SLURM_JOB_NAME"),
    Way("--export=NONE", submit=f"{SUBMIT} --export=NONE", before="env -u SLURM_JOB_ID"),
    Way("--export=ALL,MORE", submit=f"{SUBMIT} --export=ALL,MORE=1", before="env -u SLURM_JOB_ID"),
    Way("--get-user-env", submit=f"{SUBMIT} --get-user-env", before="env -u SLURM_JOB_ID"),
    Way("an array", submit=f"{SUBMIT} --array=3", before="env -u SLURM_JOB_ID -u SLURM_JOBID"),
    Way("salloc", "env -u SLURM_JOB_ID -u SLURM_JOBID", submit="salloc -n1 true"),
    Way("srun", "env -u SLURM_JOB_ID -u SLURM_JOBID", submit="srun -v -n1 true"),
    Way("srun without SLURM_JOB_ID", "env -u SLURM_JOB_ID", submit="srun -v -n1 true"),
    Way("sbatch in a step", "srun -n1 --overlap env -u SLURM_JOB_ID -u SLURM_JOBID"),
    Way("three deep", "env -u SLURM_JOB_ID -u SLURM_JOBID",
        submit=f"{SUBMIT} --wait --wrap='env -u SLURM_JOB_ID -u SLURM_JOBID "
               f"sbatch --parsable -J inherited-other -o /dev/null --wrap=true > deep.out'"),
]  # fmt: skip
GRANTED = r"^(\d+)$|Granted job allocation (\d+)|jobid (\d+)|job (\d+) has been allocated"
"""How each says the id of the job that it made."""


@pytest.mark.parametrize(
    ("outer", "options", "environment"),
    [
        ("inherited-option", ["--io-autotune=app=inherited-option"], {}),
        ("inherited-variable", [], {"IO_AUTOTUNE": "app=inherited-variable,mode=observe"}),
    ],
)
def test_what_a_job_was_asked_for_with_is_lent_to_no_other(
    site: Site, outer: str, options: list[str], environment: Mapping[str, str]
) -> None:
    """Nothing of it is, whatever the job unsets.

    Attack (environment): A tuned job submits others that ask for nothing, with any of Slurm's
    variables unset, three deep, and as an array.
    Outcome: None is a run of its application.
    """
    alice = accounts.find(ALICE)
    place = site.paths.home(ALICE) / outer
    files.directory(place, 0o755, alice.uid, alice.gid)
    commands = []
    for number, way in enumerate(WAYS):
        name = "" if "srun" in way.submit else " -J inherited-other"
        program, rest = way.submit.split(" ", 1)
        line = f"{way.before} {program}{name} {rest} > {number}.out 2>&1"
        commands.append(f"({way.lines or ':'}\n{line})")
    job = site.sbatch(
        "\n".join(commands), *options, "--ntasks=1", f"--chdir={place}", env=environment
    )
    run = site.judged(job)
    assert run["application"] == outer
    for number, way in enumerate(WAYS):
        text = (place / f"{number}.out").read_text(encoding="utf-8")
        inner = found(text, way.name)
        site.ended(inner)
        applications = {run["application"] for run in site.runs(inner)}
        if options:
            assert applications == set(), way.name
        else:
            assert outer not in applications, way.name
    deep = found((place / "deep.out").read_text(encoding="utf-8"), "three deep")
    site.ended(deep)
    assert {run["job_id"] for run in site.history(outer)} == {job.job_id}


def found(text: str, name: str) -> Job:
    """Return the job of this output."""
    (ids, *_rest) = re.findall(GRANTED, text, re.MULTILINE) or [()]
    (job_id,) = {number for number in ids if number} or {None}
    assert job_id is not None, f"{name}: {text}"
    return Job(int(job_id), text)


def test_a_shell_of_salloc_lends_nothing_either(site: Site) -> None:
    submit = f"{SUBMIT} -J inherited-from-salloc"
    inside = f"env -u SLURM_JOB_ID -u SLURM_JOBID {submit}; {submit}"
    argv = ["salloc", asked("inherited-salloc"), "-n1", "bash", "-c", inside]
    done = site.cluster.run_as(ALICE, argv)
    inner = [Job(int(line), "") for line in done.stdout.split()]
    assert len(inner) == 2, done.stderr
    for job in inner:
        site.ended(job)
        assert site.runs(job) == []
    assert {run["job_id"] for run in site.history("inherited-salloc")}.isdisjoint(
        job.job_id for job in inner
    )


def test_a_job_that_asks_by_itself_and_the_steps_of_one_that_asked_go_on(site: Site) -> None:
    own = asked("inherited-own")
    job = site.sbatch(
        f"srun -n1 true\n"
        f"{SUBMIT} {own}\n"
        f"env -u SLURM_JOB_ID -u SLURM_JOBID {SUBMIT} {own}\n"
        f"IO_AUTOTUNE=app=inherited-own,off {SUBMIT}\n"
        f"env -u SLURM_JOB_ID -u SLURM_JOBID IO_AUTOTUNE=app=inherited-own {SUBMIT}\n",
        asked("inherited-asking"),
    )
    assert site.judged(job)["state"] == "counted"
    first, second, off, third = re.findall(r"^\d+$", site.output(job), re.MULTILINE)
    for inner in (first, second, third):
        assert site.judged(Job(int(inner), ""))["application"] == "inherited-own"
    site.ended(Job(int(off), ""))
    assert site.runs(Job(int(off), "")) == []


def test_a_requeued_job_and_one_of_an_array_keep_what_they_asked_for(site: Site) -> None:
    app = "inherited-again"
    script = '[ -n "$SLURM_RESTART_COUNT" ] || scontrol requeue $SLURM_JOB_ID\nsleep 1'
    job = site.sbatch(script, asked(app), "--array=1", "--requeue")
    assert site.judged(job, restart_count=1)["application"] == app

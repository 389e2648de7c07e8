"""The application of a submission is what squeue shows as its name; and sbatch stays quiet."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from devcluster import accounts, files
from harness import ALICE, ROOT, Job, Site, await_value

PROGRAMS = {"salloc": r"Granted job allocation (\d+)", "srun": r"job (\d+) has been allocated"}
"""What else submits, and how it says the job's id."""


AT_ONCE = 8
"""Jobs that are submitted beside each other."""


@dataclass(frozen=True)
class Way:
    """A way to submit a job, and to name it."""

    name: str
    argv: tuple[str, ...] = ("sbatch", "names-script.sh")
    """``names-script.sh`` lies where it is run."""
    lines: str = ""
    """Of the script, before its work."""
    stdin: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    inside: bool = False
    """Whether a tuned job of another name submits it."""


WAYS = [
    Way("-J", ("sbatch", "-J", "names-short", "names-script.sh")),
    Way("--job-name", ("sbatch", "--job-name=names-long", "names-script.sh")),
    Way("#SBATCH -J", lines="#SBATCH -J names-directive\n"),
    Way("SBATCH_JOB_NAME", environment=(("SBATCH_JOB_NAME", "names-variable"),)),
    Way("the script's name"),
    Way("-J and #SBATCH -J", ("sbatch", "-J", "names-first", "names-script.sh"),
        lines="#SBATCH -J names-second\n"),
    Way("--wrap", ("sbatch", "--wrap=true")),
    Way("standard input", ("sbatch",), stdin="#!/bin/bash\ntrue\n"),
    Way("other characters", ("sbatch", "-J", "names (a,b) 50%", "names-script.sh")),
    Way("an array", ("sbatch", "--array=3", "-J", "names-array", "names-script.sh")),
    Way("a heterogeneous job", ("sbatch", "-J", "names-het", "-n1", ":", "-J", "names-late", "-n1",
                                "names-script.sh")),
    Way("from inside a job", inside=True),
    Way("from inside a job, --wrap", ("sbatch", "--wrap=true"), inside=True),
    Way("from inside a job, -J", ("sbatch", "-J", "names-inner", "names-script.sh"), inside=True),
    Way("salloc", ("salloc", "true")),
    Way("salloc -J", ("salloc", "-J", "names-salloc", "true")),
    Way("salloc from inside a job", ("salloc", "true"), inside=True),
    Way("srun", ("srun", "-v", "true")),
    Way("srun -J", ("srun", "-v", "-J", "names-srun", "true")),
]  # fmt: skip


@pytest.fixture(scope="module")
def jobs(site: Site) -> Iterator[dict[Way, Future[Job]]]:
    """Submit a job in each way, many at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {way: pool.submit(submitted, site, way, number) for number, way in enumerate(WAYS)}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_the_application_is_the_name_that_squeue_shows(
    site: Site, jobs: dict[Way, Future[Job]], way: Way
) -> None:
    job = jobs[way].result()
    run = site.judged(job)
    shown = squeue_name(site, job)
    (known,) = site.ask(ROOT, "rules", "check", shown)
    assert run["application"] == (known["application"] or "unnamed"), shown
    assert run["application"] != "names-outer", "it has the outer job's history"


def submitted(site: Site, way: Way, number: int) -> Job:
    """Submit a job with the option; its id is asked for, never guessed."""
    alice = accounts.find(ALICE)
    script = site.paths.home(ALICE) / f"names-{number}" / "names-script.sh"
    files.directory(script.parent, 0o755, alice.uid, alice.gid)
    script.write_text(f"#!/bin/bash\n{way.lines}true\n", encoding="utf-8")
    program, *rest = way.argv
    argv = [
        program,
        "--io-autotune",
        *(["--output=/dev/null"] if program != "salloc" else []),
        *rest,
    ]
    environment = dict(way.environment)
    if way.inside:
        printed = script.with_name("names-inside.out")
        inner = f"exec {shlex.join(argv)} > {printed} 2>&1"
        options = ("--job-name=names-outer", "--ntasks=1", f"--chdir={script.parent}")
        outer = site.sbatch(inner, "--io-autotune", *options)
        site.ended(outer)
        text = printed.read_text(encoding="utf-8")
    else:
        done = site.cluster.run_as(ALICE, argv, env=environment, stdin=way.stdin, cwd=script.parent)
        text = done.stdout + done.stderr
    found = re.search(PROGRAMS.get(program, r"Submitted batch job (\d+)"), text)
    if found is None:
        found = re.search(r"jobid (\d+)", text)
    assert found is not None, text
    return Job(int(found[1]), text)


def squeue_name(site: Site, job: Job) -> str:
    """Return what squeue shows as a job's name; Slurm knows it for MinJobAge after its end."""
    argv = ["squeue", "--noheader", "--states=all", f"--jobs={job.job_id}", "--format=%j"]

    def look() -> str | None:
        return site.cluster.run_as(ROOT, argv).stdout.splitlines()[0] or None

    return await_value(f"squeue to know job {job.job_id}", look)


ALIKE = [
    "names_модель",
    "names_физика",
    "names_~модель",
    "имя",
    "names (a)",
    "names [a]",
    "n" * 140,
]
"""Names that were one, or none, where each byte that a name cannot have was ``_``."""


def test_names_that_are_alike_in_ascii_are_applications_that_their_names_find(site: Site) -> None:
    """Each has its own history, and ``status`` finds it by what squeue shows.

    Attack (environment): Jobs have names that look alike, are equal in ASCII, are no UTF-8, or are
    made of another name.
    Outcome: Each is an application of its own, and shown harmlessly.
    """
    odd = ["names_\udcff", "names_\udcfe", "names_\u202eabc\x1b[2J"]
    jobs = {
        name: site.sbatch("true", "--io-autotune", f"--job-name={name}") for name in ALIKE + odd
    }
    runs = {name: site.judged(job) for name, job in jobs.items()}
    assert len({run["application"] for run in runs.values()}) == len(runs), runs
    for name in ALIKE:
        run = runs[name]
        assert run["full_name"] == squeue_name(site, jobs[name]) == name
        assert run["state"] == "counted", run["verdict"]
        for asked in (name, run["application"]):
            assert site.study(asked, ALICE)["full_name"] == name
            assert [one["run_id"] for one in site.history(asked, ALICE)] == [run["run_id"]]
        shown = site.tuner(ALICE, "status", name).stdout
        assert run["application"] in shown
        assert name in shown
    listed = site.tuner(ALICE, "status").stdout
    assert "\u202e" not in listed
    assert "\x1b[2J" not in listed


QUIET = ["--parsable", "--quiet"]


@pytest.mark.parametrize("option", ["", *QUIET])
def test_nothing_is_printed_where_no_person_reads(site: Site, option: str) -> None:
    argv = ["sbatch", *([option] if option else []), "--io-autotune=app=names-quiet", "--wrap=true"]
    done = site.cluster.run_as(ALICE, [*argv, "--output=/dev/null"])
    assert done.stderr == ""
    assert re.fullmatch({"": r"Submitted batch job \d+\n", "--parsable": r"\d+\n"}.get(option, ""),
                        done.stdout)  # fmt: skip


@pytest.mark.parametrize(("option", "said"), [("", True), *((option, False) for option in QUIET)])
def test_a_person_at_a_terminal_is_told(site: Site, option: str, said: bool) -> None:
    line = f"sbatch {option} --io-autotune=app=names-terminal --output=/dev/null --wrap=true"
    done = site.cluster.run_as(ALICE, ["script", "-qefc", line, "/dev/null"])
    assert ("application names-terminal" in done.stdout) is said, done.stdout


@pytest.mark.parametrize("option", ["--parsable", "--quiet"])
@pytest.mark.parametrize("asked", ["spec", "variable"])
def test_who_asks_is_told_on_stderr_alone(site: Site, option: str, asked: str) -> None:
    spec = "app=names-verbose,verbose" if asked == "spec" else "app=names-verbose"
    environment = {"IO_AUTOTUNE_VERBOSE": "1"} if asked == "variable" else {}
    argv = ["sbatch", option, f"--io-autotune={spec}", "--output=/dev/null", "--wrap=true"]
    done = site.cluster.run_as(ALICE, argv, env=environment)
    assert "sbatch: io-autotune: application names-verbose" in done.stderr
    assert "io-autotune" not in done.stdout


def test_an_error_is_printed_whatever_was_asked_for(site: Site) -> None:
    argv = ["sbatch", "--parsable", "--quiet", "--io-autotune=colour=blue", "--wrap=true"]
    done = site.cluster.run_as(ALICE, argv, check=False)
    assert done.returncode != 0
    assert "colour=blue" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("environment", "option", "application"),
    [
        ("app=names-env", "", "names-env"),
        ("app=names-env", "--io-autotune=app=names-own", "names-own"),
        ("off", "", None),
        ("off", "--io-autotune=app=names-own", "names-own"),
        ("colour=blue", "", None),
    ],
)
def test_the_environment_holds_a_spec_for_what_names_none(
    site: Site, environment: str, option: str, application: str | None
) -> None:
    argv = [
        "sbatch",
        "--parsable",
        *([option] if option else []),
        "--output=/dev/null",
        "--wrap=true",
    ]
    done = site.cluster.run_as(ALICE, argv, env={"IO_AUTOTUNE": environment})
    job = Job(int(done.stdout), done.stderr)
    wrong = environment == "colour=blue"
    assert ("IO_AUTOTUNE" in done.stderr) is wrong, done.stderr
    if application is None:
        assert site.ended(job)["JobState"] == "COMPLETED"
        assert site.runs(job) == []
    else:
        assert site.judged(job)["application"] == application

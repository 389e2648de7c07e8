"""Whatever becomes of the service, jobs run as they would without it, and no report is lost."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import pytest
from devcluster import files
from harness import ALICE, OVERDUE_SECONDS, Job, Site, asked, await_true, grown_old, lines
from outages import OUTAGES, SLOW_OUTAGES, small_spool, spool_full

SUBMIT_DEADLINE = 0.3
"""What sbatch may lose by us, in seconds (the plugin's ``submit_deadline_ms``)."""
JOB_DEADLINE = 2.0
"""What the prolog may lose by us, and again the epilog (``job_deadline_ms``)."""
SUBMIT_MARGIN = 0.5
"""For starting a process on a busy host."""
JOB_MARGIN = 2.0
"""For Slurm's scheduler, which looks at the queue now and then, and our looking at it."""
COUNTING_PATIENCE = 30.0
"""The flusher tries every second."""

TIMED = "date +%s.%N; echo ${{ROMIO_HINTS-none}}; date +%s.%N; exit {code}"
"""A script that tells when it began, what it was given, and when it ended."""


@dataclass(frozen=True)
class Course:
    """How a job went; times in seconds."""

    job: Job
    submitting: float
    """How long sbatch took."""
    starting: float
    """From the end of sbatch to the script's first line."""
    ending: float
    """From the script's last line until Slurm called the job ended."""
    hints: str
    """What ROMIO_HINTS was in the job, or ``none``."""
    exit_code: str
    """Slurm's word for it."""


def course_of(site: Site, code: int, *options: str) -> Course:
    """Submit the timed script, and watch it to its end."""
    before = time.time()
    job = site.sbatch(TIMED.format(code=code), *options)
    accepted = time.time()
    fields = site.ended(job)
    ended = time.time()
    began, hints, last = lines(site.output(job))
    return Course(
        job=job,
        submitting=accepted - before,
        starting=float(began) - accepted,
        ending=ended - float(last),
        hints=hints,
        exit_code=fields["ExitCode"],
    )


@pytest.mark.parametrize("outage", OUTAGES)
def test_a_job_runs_as_it_would_and_its_report_arrives_later(site: Site, outage: str) -> None:
    """Promise: a job fails
    Promise: a job hangs, or waits longer than the deadline
    Promise: a report is counted twice
    """
    app = f"outage-{outage.replace(' ', '-')}"
    # With the service there, the job would be given hints.
    site.pinned(app, {"cb_nodes": "2"})

    with OUTAGES[outage](site):
        plain = course_of(site, 7)
        good = course_of(site, 0, asked(app))
        opened = site.outage.exists()
        bad = course_of(site, 7, asked(app))
        spooled = site.spooled()
        reports = {path: path.read_bytes() for path in spooled}

    for tuned, exit_code in ((good, "0:0"), (bad, "7:0")):
        lost = tuned.submitting - plain.submitting
        assert lost <= SUBMIT_DEADLINE + SUBMIT_MARGIN, f"sbatch took {lost:.2f} s longer"
        lost = tuned.starting - plain.starting
        assert lost <= JOB_DEADLINE + JOB_MARGIN, f"the job started {lost:.2f} s later"
        lost = tuned.ending - plain.ending
        assert lost <= JOB_DEADLINE + JOB_MARGIN, f"the job ended {lost:.2f} s later"
        assert tuned.hints == "none", "hints out of nowhere"
        assert tuned.exit_code == exit_code, "the job does not end as it would"
    assert plain.exit_code == "7:0"

    told_of = sorted(json.loads(report)["job"]["job_id"] for report in reports.values())
    assert told_of == [good.job.job_id, bad.job.job_id], f"not one report per job: {spooled}"

    # The first job's wait is the node's last one for a while.
    failures = {
        report["job"]["job_id"]: report["start_failure"]
        for report in map(json.loads, reports.values())
    }
    noticed = "did not answer this node"
    assert noticed not in failures[good.job.job_id]
    # On a busy host one that fails at once may take as long as a silent one.
    assert opened or outage not in SLOW_OUTAGES
    assert (noticed in failures[bad.job.job_id]) == opened, failures

    run = site.judged(good.job)
    assert run["applied"] == {"kind": "default"}
    assert run["state"] == "counted", run["verdict"]
    assert site.judged(bad.job)["outcome"] == "FAILED"
    await_true("the spool to be empty", lambda: not site.spooled(), COUNTING_PATIENCE)

    # A report that comes a second time changes nothing.
    before = (site.study(app), site.history(app))
    for path, report in reports.items():
        files.write(path, report, mode=0o400)
    await_true("the reports to be taken again", lambda: not site.spooled(), COUNTING_PATIENCE)
    assert (site.study(app), site.history(app)) == before, "a report has counted twice"
    assert len(site.runs(good.job)) == len(site.runs(bad.job)) == 1
    ids = f"{good.job.job_id}, {bad.job.job_id}"
    query = (
        f"select count(*) from reports p join runs r on r.id = p.run_id where r.job_id in ({ids})"
    )
    assert site.sql(query) == [["2"]]


def test_a_job_that_outlives_the_service_is_reported_to_the_next_one(site: Site) -> None:
    """Promise: a report is lost"""
    app = "outage-during"
    site.pinned(app, {"cb_nodes": "2"})
    fence = site.paths.scratch / "outage-during.fence"
    began = site.paths.home(ALICE) / "outage-during.began"
    body = f"touch {began}; until [ -e {fence} ]; do sleep 0.1; done; cat $ROMIO_HINTS"
    job = site.sbatch(body, asked(app))
    # Slurm calls it RUNNING while its prolog still asks the service.
    await_true("the job to be past its prolog", began.exists)
    with OUTAGES["service stopped"](site):
        fence.touch()
        assert site.ended(job)["ExitCode"] == "0:0"
        assert len(site.spooled()) == 1, "the report is neither delivered nor spooled"
    run = site.judged(job)
    assert site.output(job) == "cb_nodes 2\n", "what was given at the start stays"
    assert run["applied"]["kind"] == "parametrization"
    assert (run["role"], run["state"]) == ("pinned", "counted"), run["verdict"]


def test_a_report_that_finds_no_room_is_not_lost(site: Site) -> None:
    """Promise: a report is lost"""
    app = "outage-full"
    with small_spool(site):
        with spool_full(site):
            delivered = site.sbatch("true", asked(app))
            site.counted(delivered)
            with OUTAGES["service stopped"](site):
                kept = site.sbatch("true", asked(app))
                assert site.ended(kept)["ExitCode"] == "0:0"
                assert len(site.in_memory()) == 1, "the report is nowhere"
                assert not site.job_directories()
            site.counted(kept)
            await_true("the report to be taken", lambda: not site.in_memory())
        assert not site.spooled()


def test_an_outage_is_noticed_once_though_the_spool_is_full(site: Site) -> None:
    """Promise: a job hangs, or waits longer than the deadline"""
    app = "outage-twice"
    site.pinned(app, {"cb_nodes": "2"})
    with small_spool(site):
        with spool_full(site), OUTAGES["service mute"](site):
            jobs = []
            for _ in range(2):
                jobs.append(site.sbatch("true", asked(app)))
                site.ended(jobs[-1])
            kept = [json.loads(path.read_text(encoding="utf-8")) for path in site.in_memory()]
            failures = [
                report["start_failure"]
                for job in jobs
                for report in kept
                if report["job"]["job_id"] == job.job_id
            ]
        noticed = "did not answer this node"
        assert [noticed in failure for failure in failures] == [False, True], failures
        for job in jobs:
            assert site.judged(job)["state"] == "counted"
        await_true("the reports to be taken", lambda: not site.in_memory())


def launch_grown_old(site: Site, job: Job) -> None:
    """Let what a launch has left be as old as it would be in a while."""
    (directory,) = site.job_directories()
    assert directory.name == str(job.job_id)
    grown_old(directory)


def test_a_launch_whose_epilog_has_not_reported_is_reported_by_the_timer(site: Site) -> None:
    """Promise: a report is lost"""
    app = "overdue"
    site.pinned(app, {"cb_nodes": "2"})
    with site.parts_stopped("flusher"):
        with site.helper_killed("finish", 1):
            job = site.sbatch("sleep 0.3; cat $ROMIO_HINTS", asked(app))
            assert site.ended(job)["ExitCode"] == "0:0"
        assert not site.undelivered()
        assert [run["state"] for run in site.runs(job)] == ["in_flight"]
        launch_grown_old(site, job)
    run = site.judged(job)
    assert (run["state"], run["applied"]["kind"]) == ("counted", "parametrization"), run["verdict"]
    assert run["elapsed"] >= 0.3
    await_true("the directory to go", lambda: not site.job_directories())
    query = "select count(*) from reports p join runs r on r.id = p.run_id where r.job_id = {}"
    assert site.sql(query.format(job.job_id)) == [["1"]]


def test_a_launch_without_a_batch_step_is_over_by_slurms_word(site: Site) -> None:
    """Promise: a report is lost"""
    with site.helper_killed("finish", 1):
        argv = ["srun", "--job-name=overdue-srun", asked("overdue-srun"), "sleep", "0.3"]
        site.cluster.run_as(ALICE, argv)
        (job_id,) = site.jobs_named("overdue-srun")
        job = Job(int(job_id), "")
        site.ended(job)
    launch_grown_old(site, job)
    # Slurm's word is there, and it may be older than the epilog: a minute is waited.
    await_true(
        "Slurm's word",
        lambda: site.sql(f"select outcome from runs where job_id = {job_id}") == [["COMPLETED"]],
    )
    assert [run["state"] for run in site.runs(job)] == ["in_flight"]
    site.sql(
        f"update runs set outcome_at = outcome_at - interval '{OVERDUE_SECONDS} seconds'"
        f" where job_id = {job_id}"
    )
    run = site.counted(job)
    assert run["elapsed"] >= 0.3
    await_true("the directory to go", lambda: not site.job_directories())


def test_a_bad_spec_is_refused_without_the_service(site: Site) -> None:
    """Promise: a submission fails"""
    with OUTAGES["service stopped"](site):
        done = site.try_sbatch("true", "--job-name=outage-typo", "--io-autotune=mode=quick")
        assert done.returncode != 0
        assert "tune|observe|off" in done.stderr
        # Which accelerators there are, only the service knows: the job passes.
        job = site.sbatch("true", asked("outage-named", "accelerator=romio"))
        assert site.ended(job)["JobState"] == "COMPLETED"
    assert site.judged(job)["state"] == "counted"
    assert site.jobs_named("outage-typo") == []

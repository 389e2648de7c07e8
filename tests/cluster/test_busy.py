"""A settled study: slow runs for a while leave it tuned, and what is drawn is told afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import ALICE, MOST_RUNS, ROOT, Json, Site, asked, await_true

APPLICATION = "busy"
QUIET = "0.5 0.3\n"
BUSY = "2.5 1.5\n"
"""What the default and anything else take, in seconds."""
AT_ONCE = 4
"""Jobs that are submitted together; each sleeps, and so hardly disturbs the others."""
GROUP = 4
"""Control runs that make a second group of times. Each run is drawn to be one, by a half here."""
UNTOLD = ("role", "parametrization", "differs", "reason", "applied")
"""What would tell which run in flight is a control run."""


@pytest.fixture(scope="module")
def seconds(site: Site) -> Path:
    """Return the file of what the default and anything else take; the study has settled."""
    seconds = site.paths.scratch / "busy.seconds"
    seconds.write_text(QUIET)
    while not (runs := site.history(APPLICATION)) or runs[-1]["phase"] != "settled":
        assert len(runs) < MOST_RUNS, "it does not settle"
        run_some(site, job_of(seconds))
    return seconds


def test_a_settled_study_goes_on_while_runs_are_slow_for_a_stretch(
    site: Site, seconds: Path
) -> None:
    body = job_of(seconds)
    assert site.study(APPLICATION)["warnings"] == []

    def recorded() -> int:
        return int(site.sql("select count(*) from surroundings")[0][0])

    seconds.write_text(BUSY)
    known = recorded()
    busy: list[Json] = []
    while sum(run["role"] == "control" for run in busy) < GROUP or len(busy) < 2 * GROUP:
        assert len(busy) < MOST_RUNS, busy
        busy += run_some(site, body)
    # How others fare is recorded each half minute: some runs have to differ in it.
    await_true("how others fare to be recorded", lambda: recorded() > known)
    busy += run_some(site, body)
    seconds.write_text(QUIET)
    since = run_some(site, body)

    assert {run["role"] for run in busy + since} <= {"settled", "control"}, busy + since
    (warning,) = site.study(APPLICATION)["warnings"]
    # Two groups, or one wide one: on a busy host times are not what the work says.
    assert "gather around two times" in warning or "vary by" in warning, warning
    assert "the machine was busy" in warning, warning
    assert "tuning goes on" in warning, warning

    shown = site.tuner(ALICE, "explain", str(since[-1]["job_id"])).stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("busy ")] or [shown]
    assert " times as long as ever; without that " in line, shown
    assert line.endswith(" of the noise is explained"), shown


def test_nobody_but_an_admin_is_told_which_run_in_flight_is_a_control_run(
    site: Site, seconds: Path
) -> None:
    """Attack (environment): A user asks by `history`, `explain` and a replay which of the runs in
    flight is a control run.
    Outcome: It is told once the run has ended; before, only to an admin.
    """
    fence = site.paths.scratch / "busy.fence"
    body = f"until [ -e {fence} ]; do sleep 0.1; done\n{job_of(seconds)}"
    jobs = [site.sbatch(body, asked(APPLICATION)) for _ in range(AT_ONCE)]
    for job in jobs:
        site.started(job)
    job_ids = {job.job_id for job in jobs}
    try:
        drawn = [run for run in site.history(APPLICATION, ALICE) if run["job_id"] in job_ids]
        assert {run["phase"] for run in drawn} == {"settled"}
        for run in drawn:
            assert [run[name] for name in UNTOLD] == [None] * len(UNTOLD), run
        for job in jobs:
            detail = site.explain(job, ALICE)
            assert (detail["suggestion"], detail["delivery"]) == (None, None)
            shown = site.tuner(ALICE, "explain", str(job.job_id)).stdout
            assert shown.count("told once it has ended") == 4, shown
            replayed = site.tuner(ALICE, "explain", str(job.job_id), "--replay", "--json")
            assert replayed.returncode != 0, "a script would take it for the same"
            (replay,) = json.loads(replayed.stdout)
            assert (replay["given"], replay["recomputed"]) == (None, None), replay
        shown = site.tuner(ALICE, "history", APPLICATION).stdout
        assert shown.count("told once it has ended") == len(jobs), shown
        of_admin = {run["job_id"]: run for run in site.history(APPLICATION, ROOT)}
        assert {of_admin[job.job_id]["role"] for job in jobs} <= {"settled", "control"}
    finally:
        fence.touch()
    for job in jobs:
        site.judged(job)
    after = {run["job_id"]: run for run in site.history(APPLICATION, ALICE)}
    for job in jobs:
        run = after[job.job_id]
        assert run["role"] == of_admin[job.job_id]["role"]
        assert run["reason"] == of_admin[job.job_id]["reason"]


def job_of(seconds: Path) -> str:
    """Return a job that takes what this file says of its values."""
    return f"""
    read -r default tuned <{seconds}
    [ -s "$ROMIO_HINTS" ] || exec sleep "$default"
    exec sleep "$tuned"
    """


def run_some(site: Site, body: str) -> list[Json]:
    """Run jobs beside each other, and return their runs once they have their verdicts."""
    jobs = [site.sbatch(body, asked(APPLICATION)) for _ in range(AT_ONCE)]
    runs = [site.judged(job) for job in jobs]
    assert {run["state"] for run in runs} == {"counted"}, [run["verdict"] for run in runs]
    return runs

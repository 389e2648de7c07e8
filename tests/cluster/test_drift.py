"""What a study settled on stops being the best: it is noticed, and searched for anew."""

from __future__ import annotations

import pytest
from harness import ALICE, MOST_RUNS, Json, Site, asked

pytestmark = pytest.mark.slow

APPLICATION = "drift"
AT_ONCE = 10
"""Jobs that are submitted together; each sleeps, and so hardly disturbs the others."""
SETTLED_RUNS = 60
"""Before the change; a change is not believed before 50."""
MOST_RUNS_SINCE = 60
"""A change to four times the elapsed is found within that many runs."""


def test_what_got_slower_opens_an_epoch_that_starts_from_the_old_ranks(site: Site) -> None:
    changed = site.paths.scratch / "drift.changed"
    body = f"""
    [ -s "$ROMIO_HINTS" ] || exec sleep 0.9
    [ -e {changed} ] && exec sleep 1.8
    exec sleep 0.3
    """
    while len(settled(runs := site.history(APPLICATION, ALICE))) < SETTLED_RUNS:
        assert len(runs) < MOST_RUNS, "it does not settle"
        assert {run["epoch"] for run in runs} <= {1}, f"nothing has changed: {opened(runs)}"
        run_some(site, body)
    before = site.study(APPLICATION, ALICE)
    assert before["differs"], "the default is three times as slow as anything else"

    changed.touch()
    tuned = 0
    while (runs := site.history(APPLICATION, ALICE))[-1]["epoch"] == 1:
        assert tuned < MOST_RUNS_SINCE, f"nothing is noticed within {tuned} runs"
        run_some(site, body)
        tuned += AT_ONCE

    assert "drift" in opened(runs), f"the epoch was opened for another reason: {opened(runs)}"
    assert runs[-1]["epoch"] == 2
    while not (design := [run for run in in_epoch(site, 2) if run["role"] == "design"]):
        run_some(site, body)
    assert in_epoch(site, 2)[0]["role"] == "baseline", "the default has to be known anew"
    tried = [run["parametrization"] for run in in_epoch(site, 1) if run["state"] == "counted"]
    assert design[0]["parametrization"] in tried, "what was ranked best before goes first"


def run_some(site: Site, body: str) -> None:
    """Run jobs beside each other, and wait for their verdicts."""
    jobs = [site.sbatch(body, asked(APPLICATION)) for _ in range(AT_ONCE)]
    for job in jobs:
        run = site.judged(job)
        assert run["state"] == "counted", f"job {job.job_id}: {run['verdict']}"


def settled(runs: list[Json]) -> list[Json]:
    """Return the runs that were made once their epoch had settled."""
    return [run for run in runs if run["phase"] == "settled"]


def in_epoch(site: Site, epoch: int) -> list[Json]:
    """Return the runs of one of the study's epochs, oldest first."""
    return [run for run in site.history(APPLICATION, ALICE) if run["epoch"] == epoch]


def opened(runs: list[Json]) -> str:
    """Return why the latest of these runs' epochs was opened."""
    return str(runs[-1]["epoch_opened_why"]) if runs else "never"

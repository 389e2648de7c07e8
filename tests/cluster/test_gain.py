"""No gain is told that is not there."""

from __future__ import annotations

from harness import COMPLETE, MOST_RUNS, Json, Site, asked

WORK = "read up _ </proc/uptime; echo $up; sleep 1; read up _ </proc/uptime; echo $up"
"""Takes as long under any hints, and tells how long."""
TOLD_RUNS = 20 if COMPLETE else 4
"""Runs of the settled phase: half of them of the default. Twenty are enough for a claim if all
ranks agree; `make -C analysis report-guarantees` measures over many studies how seldom a claim is
wrong."""
ALIKE = 0.15
"""What a loaded machine may make of a difference that is none."""
CLOCK = 0.05
"""/proc/uptime counts hundredths."""
AT_ONCE = 4
"""Jobs that are submitted together; each sleeps, and so hardly disturbs the others."""


def test_no_gain_is_told_where_there_is_none(site: Site) -> None:
    """Promise: a wrong gain is reported"""
    app = "gain-none"
    judged: list[Json] = []
    while sum(run["phase"] == "settled" for run in judged) < TOLD_RUNS:
        assert len(judged) < MOST_RUNS, "it does not settle"
        jobs = [site.sbatch(WORK, asked(app)) for _ in range(AT_ONCE)]
        for job in jobs:
            run = site.counted(job)
            began, ended = map(float, site.output(job).split())
            assert run["elapsed"] >= ended - began - CLOCK, "it is shorter than the work in it"
            judged.append(run)

    study = site.study(app)
    gain = study["gain"]
    told = f"{gain}, default {study['control']}, tuned {study['tuned']}"
    # Where the default itself is chosen there is nothing to compare.
    assert gain is None or not gain["resolved"] or abs(gain["gain"]) < ALIKE, told

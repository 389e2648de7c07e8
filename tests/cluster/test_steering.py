"""What a study is pinned to reaches the next job, and nothing does once it is not."""

from __future__ import annotations

from harness import ALICE, Site, asked, hints


def test_pin_and_unpin_reach_the_next_job(site: Site) -> None:
    app = "steering"
    show = "cat ${ROMIO_HINTS:-/dev/null}"
    assert site.run(show, asked(app))["role"] == "baseline"
    site.pin(app, {"cb_nodes": "4", "romio_cb_read": "disable"})
    job = site.sbatch(show, asked(app))
    assert "pinned" in job.said()[0]
    run = site.counted(job)
    assert run["role"] == "pinned"
    assert run["differs"] == {"cb_nodes": 4, "romio_cb_read": "disable"}
    assert hints(site.output(job)) == {"cb_nodes": "4", "romio_cb_read": "disable"}

    site.ask(ALICE, "pin", app, "--end", "--why", "enough of it")
    job = site.sbatch(show, asked(app))
    assert site.judged(job)["role"] == "baseline", "the study goes on where it was"
    assert site.output(job) == "", "the default writes no hints"

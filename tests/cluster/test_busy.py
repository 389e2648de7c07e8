"""A busy machine slows every run for a while: a settled study goes on being tuned."""

from __future__ import annotations

from harness import Json, Site, asked

APPLICATION = "busy"
QUIET = "0.5 0.3\n"
BUSY = "2.5 1.5\n"
"""What the default and anything else take, in seconds."""
AT_ONCE = 4
"""Jobs that are submitted together; each sleeps, and so hardly disturbs the others."""
BUSY_RUNS = 8
"""Four of them of the default, as every second run is a control run here."""
MOST_RUNS = 60
"""A study that has not settled by then never will."""


def test_a_settled_study_goes_on_while_runs_are_slow_for_a_stretch(site: Site) -> None:
    seconds = site.paths.scratch / "busy.seconds"
    body = f"""
    read -r default tuned <{seconds}
    [ -s "$ROMIO_HINTS" ] || exec sleep "$default"
    exec sleep "$tuned"
    """
    seconds.write_text(QUIET)
    while not (runs := site.history(APPLICATION)) or runs[-1]["phase"] != "settled":
        assert len(runs) < MOST_RUNS, "it does not settle"
        run_some(site, body)
    assert site.study(APPLICATION)["warnings"] == []

    seconds.write_text(BUSY)
    busy = [run for _ in range(BUSY_RUNS // AT_ONCE) for run in run_some(site, body)]
    seconds.write_text(QUIET)
    since = run_some(site, body)

    assert {run["role"] for run in busy + since} <= {"settled", "control"}, busy + since
    (warning,) = site.study(APPLICATION)["warnings"]
    # Two groups, or one wide one: on a busy host times are not what the work says.
    assert "gather around two times" in warning or "vary by" in warning, warning
    assert "the machine was busy" in warning, warning
    assert "tuning goes on" in warning, warning


def run_some(site: Site, body: str) -> list[Json]:
    """Run jobs beside each other, and return their runs once they have their verdicts."""
    jobs = [site.sbatch(body, asked(APPLICATION)) for _ in range(AT_ONCE)]
    runs = [site.judged(job) for job in jobs]
    assert {run["state"] for run in runs} == {"counted"}, [run["verdict"] for run in runs]
    return runs

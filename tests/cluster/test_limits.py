"""Jobs without room in their time limit explore nothing; what makes jobs fail is quarantined."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import ALICE, ROOT, Json, Site, asked, roles

SECONDS_OF_WORK = 27
"""A limit of one minute, the shortest there is, leaves no room to take twice as long."""
SHORT = "--time=1"
LONG = "--time=10"
EXPLORING = ("design", "search")


def test_a_job_explores_only_if_its_time_limit_leaves_room(site: Site) -> None:
    app = "limits-room"
    work = [site.sbatch(f"sleep {SECONDS_OF_WORK}", asked(app), SHORT) for _ in range(2)]
    assert roles([site.judged(job) for job in work]) == ["baseline", "baseline"]

    # The latest run's limit stands for one that nobody has told. A run that fails says nothing of
    # the default's time.
    short = site.run("exit 1", asked(app), SHORT)
    assert short["role"] == "best_known", short["reason"]
    assert short["differs"] == {}
    assert "the time limit of 60 s leaves no room to explore" in short["reason"]
    assert limit_of(site, short)["seconds"] == 60
    study = site.study(app)
    assert study["phase"] in EXPLORING, "it waits for a job that has room"
    (warning,) = study["warnings"]
    assert "--time=2" in warning, warning

    # squeue lists a job that is held: a verdict on another that came later has asked it since.
    held = site.sbatch("exit 1", asked(app), LONG, "--hold")
    site.run("true", asked("limits-other"))
    site.cluster.run_as(ROOT, ["scontrol", "release", str(held.job_id)])
    run = site.judged(held)
    # From 23.02 on the prolog knows it (SLURM_JOB_END_TIME).
    told_by = "start" if site.slurm_series() >= (23, 2) else "squeue"
    assert limit_of(site, run) == {"seconds": 600, "told_by": told_by}
    assert run["role"] in EXPLORING, run["reason"]
    assert site.study(app)["warnings"] == []

    for run in site.history(app):
        (replay,) = site.ask(ALICE, "explain", str(run["job_id"]), "--replay")
        assert replay["same"], replay


@pytest.fixture
def with_a_design(site: Site) -> Iterator[None]:
    """A design runs whole, and again where its points fail."""
    before = site.paths.service_toml.read_text(encoding="utf-8")
    after = f"{before}\n[study.surrogate-genetic]\nexplores_outwards = false\n"
    site.paths.service_toml.write_text(after, encoding="utf-8")
    site.restart("io-autotuned")
    yield
    site.paths.service_toml.write_text(before, encoding="utf-8")
    site.restart("io-autotuned")


@pytest.mark.usefixtures("with_a_design")
def test_what_fails_where_the_default_does_not_is_quarantined(site: Site) -> None:
    app = "limits-quarantine"
    # Of jobs of some milliseconds one takes three times as long as another: what failed once may
    # then look too slow to run again.
    fails_with_hints = 'sleep 0.3; [ -z "${ROMIO_HINTS:-}" ] || ! [ -s "$ROMIO_HINTS" ]'
    failed: dict[str, int] = {}
    while max(failed.values(), default=0) < 2:
        run = site.run(fails_with_hints, asked(app))
        assert len(failed) < 2, f"another parametrization before the first was quarantined: {run}"
        if run["state"] != "counted":
            assert run["outcome"] == "FAILED", run["verdict"]
            failed[str(run["differs"])] = failed.get(str(run["differs"]), 0) + 1

    (one,) = site.study(app)["quarantined"]
    assert str(one["differs"]) in failed
    assert one["why"].startswith("2 of 2 jobs failed under it, and 0 of "), one["why"]
    marked = [run for run in site.history(app) if run.get("quarantined")]
    assert [str(run["differs"]) for run in marked] == [str(one["differs"])] * 2
    text = site.tuner(ALICE, "history", app).stdout
    assert text.count("quarantined: ") == 1, text
    following = site.run(fails_with_hints, asked(app))
    assert following["differs"] != one["differs"]


def limit_of(site: Site, run: Json) -> Json:
    """Return the time limit that the decision on a run went by."""
    detail = site.ask(ALICE, "explain", str(run["job_id"]))[0]
    return detail["suggestion"]["overrides"]["limit"]

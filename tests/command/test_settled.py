"""What the command says of a study that has settled and proved a gain in its own objective."""

from __future__ import annotations

import pytest

from command.jobs import End, Json, variables
from command.service import ALICE, ROOT, Service

APP = "settled"
UNTOLD = ("role", "parametrization", "differs", "reason", "applied")
"""What would tell which run in flight is a control run."""


def marked(answer: Json) -> End:
    """Return the end of a job of which a part is I/O, and that alone is faster when it is tuned."""
    chance = answer["run_id"] * 7 % 11
    io = (1.0 if variables(answer["delivery"]) else 4.0) + 0.01 * chance
    return End(seconds=16.0 + io + 0.1 * chance, measures={"marked_seconds": io})


@pytest.fixture(scope="module")
def settled(served: Service) -> Json:
    """Return the study once its gain is claimed."""
    first = served.live(served.job(ALICE, APP), End(20.0, measures={"marked_seconds": 4.0}))
    assert first["state"] == "counted"
    done = served.tuner(ALICE, "objective", APP, "marked", "--why", "I/O is a part of it")
    assert done.returncode == 0, done.stderr
    for run in served.tune(ALICE, APP, marked):
        if run["phase"] == "settled":
            study = served.study(APP, ALICE)
            if study["gain"] and study["gain"]["resolved"]:
                break
    return study


def test_a_gain_is_told_in_the_objective_s_words_and_elapsed_after_it(
    served: Service, settled: Json
) -> None:
    assert settled["objective"] == "marked_seconds"
    shown = served.tuner(ALICE, "status", APP).stdout
    assert "objective    marked I/O seconds" in shown
    assert "less marked I/O seconds than the default" in shown, shown
    assert "elapsed is" in shown, shown


def test_a_run_is_explained_by_what_it_was_tuned_for(served: Service, settled: Json) -> None:
    runs = served.ask(ALICE, "history", APP, "--study", str(settled["study_id"]))
    tuned = next(run for run in reversed(runs) if run["role"] in {"settled", "control"})
    explained = served.tuner(ALICE, "explain", str(tuned["job_id"]), "--details").stdout
    assert "objective    marked I/O seconds: " in explained
    assert "[by marked I/O seconds, not elapsed]" in explained
    assert "marked as I/O by the job: " in explained


def test_every_suggestion_of_the_study_can_be_made_again(served: Service, settled: Json) -> None:
    runs = served.ask(ALICE, "history", APP, "--limit", "10000")
    assert {"baseline", "settled"} <= {run["role"] for run in runs}
    assert {"design", "search"} & {run["role"] for run in runs}
    for run in (*runs[:2], *runs[-4:]):
        done = served.tuner(ALICE, "explain", str(run["job_id"]), "--replay")
        assert done.returncode == 0, done.stdout
    assert settled["differs"]


def test_what_is_shown_of_a_study_is_what_it_has_tested(served: Service, settled: Json) -> None:
    detail = served.ask(ALICE, "show", APP)
    shown = served.tuner(ALICE, "show", APP).stdout
    assert len(detail["tested"]) > 2
    for name, value in settled["differs"].items():
        assert f"{name}={value}" in shown
    rows = served.tuner(ALICE, "show", APP, "--csv").stdout.splitlines()
    assert len(rows) == 1 + len(detail["tested"])


def test_nobody_but_an_admin_is_told_which_run_in_flight_is_a_control_run(
    served: Service, settled: Json
) -> None:
    """Attack (drawn): A user, a coordinator or an operator asks in any way whether a run in flight
    is a control run.
    """
    jobs = [served.job(ALICE, APP) for _ in range(4)]
    answers = served.start(*jobs)
    ids = {job.job_id for job in jobs}
    drawn = [run for run in served.ask(ALICE, "history", APP) if run["job_id"] in ids]
    assert {run["phase"] for run in drawn} == {"settled"}
    for run in drawn:
        assert [run[name] for name in UNTOLD] == [None] * len(UNTOLD), run
    for job in jobs:
        explain = ("explain", str(job.job_id))
        (detail,) = served.ask(ALICE, *explain)
        assert (detail["suggestion"], detail["delivery"]) == (None, None)
        shown = served.tuner(ALICE, *explain).stdout
        assert shown.count("told once it has ended") == 3, shown
        shown = served.tuner(ALICE, *explain, "--details").stdout
        assert shown.count("told once it has ended") == 6, shown
        done = served.tuner(ALICE, *explain, "--replay")
        assert done.returncode == 1, "a script would take it for the same"
        (replay,) = served.told(ALICE, *explain, "--replay")
        assert (replay["given"], replay["recomputed"]) == (None, None), replay
    shown = served.tuner(ALICE, "history", APP).stdout
    assert shown.count("told once it has ended") == len(jobs), shown
    of_admin = {run["job_id"]: run for run in served.ask(ROOT, "history", APP)}
    assert {of_admin[job]["role"] for job in ids} <= {"settled", "control"}
    ended = served.end(
        [(job, given, marked(given)) for job, given in zip(jobs, answers, strict=True)]
    )
    assert len(ended) == len(jobs)
    after = {run["job_id"]: run for run in served.ask(ALICE, "history", APP)}
    for job_id in ids:
        told = (after[job_id]["role"], after[job_id]["reason"])
        assert told == (of_admin[job_id]["role"], of_admin[job_id]["reason"])
    assert settled["phase"] == "settled"


def test_a_reset_that_is_tried_says_what_would_be_dropped(served: Service, settled: Json) -> None:
    done = served.tuner(ALICE, "reset", APP, "--why", "a test", "--dry-run")
    assert "would be dropped: the gain: " in done.stdout, done.stdout
    assert "would be dropped: the choice: " in done.stdout
    assert served.study(APP)["epoch"] == settled["epoch"]

"""What the command says of runs: what was in force, what a job said, what failed, what began it."""

from __future__ import annotations

from pathlib import Path

from command.jobs import End, Json
from command.service import ALICE, BOB, Service


def overridden(name: str, asked: str, in_force: str) -> Json:
    """Return what a library in the job says of a parameter."""
    return {
        "parameter": name,
        "name": name,
        "asked": asked,
        "in_force": in_force,
        "as_asked": asked == in_force,
    }


def test_observed_values_are_explained_with_what_was_given(served: Service) -> None:
    app = "in-force"
    served.run(ALICE, app)
    pin = ("romio_ds_write=enable", "cb_buffer_size=4194304")
    served.ask(ALICE, "pin", app, *pin, "--why", "a test")
    told = [
        overridden("romio_ds_write", "enable", "disable"),
        overridden("cb_buffer_size", "4194304", "4194304"),
    ]
    detail = "romio_ds_write was disable and not enable"
    end = End(told=told, applied={"kind": "incomplete", "detail": detail})
    for _ in range(2):
        run = served.live(served.job(ALICE, app), end)
        assert run["state"] == "not_counted", "it did not have what it would count for"
        assert detail in run["verdict"]
    shown = served.tuner(ALICE, "explain", str(run["job_id"]), "--details").stdout
    assert "romio_ds_write = disable (on n1, by the library, and it was given enable)" in shown
    assert "cb_buffer_size = 4194304 (on n1, by the library)" in shown, shown
    assert "romio_ds_write has no effect here" in " ".join(
        served.tuner(ALICE, "status", app).stdout.split()
    )


def test_what_a_job_said_of_itself_is_explained(served: Service) -> None:
    measures = {"marked_seconds": 2.5, "objective.rate": 812.5, "objective.cost": 2.0}
    run = served.live(served.job(ALICE, "said"), End(measures=measures))
    shown = served.tuner(ALICE, "explain", str(run["job_id"]), "--details").stdout
    assert "marked as I/O by the job: " in shown
    assert "reported by the job: cost=2 rate=812.5" in shown


def test_what_is_quarantined_is_said_once_below_the_runs(served: Service) -> None:
    app = "quarantined"
    for _ in range(2):
        served.run(ALICE, app)
    served.ask(ALICE, "pin", app, "cb_nodes=2", "--why", "a test")
    for _ in range(2):
        run = served.live(served.job(ALICE, app), End(state="FAILED"))
        assert run["state"] == "not_counted", run
    (one,) = served.study(app)["quarantined"]
    assert one["why"].startswith("2 of 2 jobs failed under it, and 0 of "), one["why"]
    text = served.tuner(ALICE, "history", app).stdout
    assert text.count("not again: ") == 1, text
    marked = [run for run in served.ask(ALICE, "history", app) if run.get("quarantined")]
    assert [run["differs"] for run in marked] == [one["differs"]] * 2


def test_an_epoch_says_what_it_began_with(served: Service) -> None:
    served.run(ALICE, "warm-source")
    served.ask(ALICE, "pin", "warm-source", "cb_nodes=4", "romio_cb_read=disable", "--why", "x")
    for _ in range(2):
        served.run(ALICE, "warm-source")
    number = str(served.study("warm-source")["study_id"])
    app = "warm-target"
    warm = ("transfer", "warm-start", app, "--from")
    before = served.tuner(ALICE, *warm, number)
    assert (before.returncode, "begins with its first run" in before.stderr) == (4, True)
    served.run(ALICE, app)
    would = served.tuner(ALICE, *warm, "warm-source", "--dry-run")
    begins = f"would begin with what study {number} (application warm-source) ranks best"
    assert (would.returncode, begins in would.stdout) == (0, True), would
    assert "cb_nodes=4 romio_cb_read=disable" in would.stdout
    assert served.study(app)["epoch"] == 1
    done = served.tuner(ALICE, *warm, number, "--why", "the same library")
    assert (done.returncode, "epoch 2 begins with what" in done.stdout) == (0, True), done
    for command in (("status", app), ("show", app)):
        text = " ".join(served.tuner(ALICE, *command).stdout.split())
        assert f"warm start with what study {number} (application warm-source)" in text, text
    _, _, rest = done.stdout.partition("to take it back: ")
    assert served.paste(ALICE, rest.splitlines()[0]).returncode == 0
    assert served.study(app)["opened"]["why"] == "a warm start was undone"


def test_a_job_marks_itself_by_the_command_and_is_never_harmed_by_it(
    served: Service, shared: Path
) -> None:
    """Promise: a job fails"""
    marks = shared / "marks"
    marks.touch(mode=0o666)
    marks.chmod(0o666)
    job = {"SLURM_JOB_ID": "4711", "IO_MARKS_FILE": str(marks)}
    for command in (("mark", "begin"), ("mark", "end"), ("objective", "rate=812.5", "cost=2")):
        done = served.tuner(ALICE, *command, env=job)
        assert (done.returncode, done.stdout) == (0, ""), done
    for command, env in (
        (("mark", "begin"), {}),
        (("mark", "sideways"), job),
        (("objective", "rate=none"), job),
        (("mark", "begin"), {**job, "IO_MARKS_FILE": "/nowhere/marks"}),
        (("mark", "begin"), {**job, "IO_MARKS_FILE": "/dev/full"}),
    ):
        done = served.tuner(ALICE, *command, env=env)
        assert (done.returncode, done.stdout) == (0, ""), done
        assert done.stderr.startswith("io-autotune: "), done
    assert served.tuner(BOB, "mark", "begin").stderr.count("this is no job") == 1
    for words in ("mark begin", "objective rate=none"):
        done = served.run_as(BOB, ["bash", "-c", f"set -e; io-autotune {words} 2>/dev/full"])
        assert done.returncode == 0, f"{words}: a job under `set -e` fails"

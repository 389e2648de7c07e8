"""Another objective than elapsed: the job says it, a study is tuned by it, elapsed vetoes it."""

from __future__ import annotations

from pathlib import Path

import nightly
import pytest
from harness import ALICE, BOB, MOST_RUNS, Json, Site, asked, await_value, lines

PHASE = 0.4
"""Seconds of the I/O phase with the default; a quarter of it with anything else."""
REPORTED = 812.5
BOUNDED_RUNS = 6
"""Their median has an interval."""

JOB = """
io-autotune mark begin
hints=$(cat "$ROMIO_HINTS" 2> /dev/null)
[ -n "$hints" ] && sleep 0.1 || sleep 0.4
io-autotune mark end
"""
NOISY_APPLICATION = "objective-noisy"
NOISY = f"{JOB}\nsleep 0.$((RANDOM % 9))\nsleep 0.$((RANDOM % 9))\n"


def by_marks(site: Site, app: str, body: str) -> Json:
    """Give an application a study with marked seconds as its objective; return its first run."""
    run = site.counted_run(body, asked(app))
    done = site.tuner(ALICE, "objective", app, "marked", "--why", "I/O is a part of it")
    assert done.returncode == 0, done.stderr
    return run


def test_a_job_says_how_long_its_phases_took_and_what_it_measured(site: Site) -> None:
    app = "objective-told"
    body = f"""
        io-autotune mark begin; sleep 0.3; io-autotune mark end
        sleep 0.5
        io-autotune mark begin; sleep 0.2; io-autotune mark end
        io-autotune objective rate={REPORTED} cost=2
        io-autotune mark sideways; echo "status $?"
        io-autotune objective rate=none; echo "status $?"
    """
    job = site.sbatch(body, asked(app))
    run = site.counted(job)
    measures = run["measures"]
    assert 0.5 <= measures["marked_seconds"] <= run["elapsed"] - 0.5, measures
    assert (measures["objective.rate"], measures["objective.cost"]) == (REPORTED, 2.0)
    said = lines(site.output(job))
    assert [line for line in said if line.startswith("status")] == ["status 0", "status 0"]
    assert sum("nothing is" in line for line in said) == 2, said
    shown = site.tuner(ALICE, "explain", str(job.job_id), "--details").stdout
    assert "marked as I/O by the job: " in shown
    assert f"reported by the job: cost=2 rate={REPORTED}" in shown
    outside = site.tuner(ALICE, "mark", "begin")
    assert outside.returncode == 0
    assert "this is no job" in outside.stderr


def test_the_longest_node_counts(site: Site) -> None:
    phase = "io-autotune mark begin; sleep $((SLURM_PROCID)).3; io-autotune mark end"
    body = f"srun --nodes=2 --ntasks=2 bash -c '{phase}'"
    run = site.counted_run(body, asked("objective-nodes"), "--nodes=2", "--ntasks=2")
    assert 1.3 <= run["measures"]["marked_seconds"] < 1.6, run["measures"]


@pytest.fixture(scope="module")
def noisy(site: Site) -> Json:
    """Return a study whose I/O is a small part of a noisy elapsed, once its gain is claimed."""
    by_marks(site, NOISY_APPLICATION, NOISY)
    study: Json = {}
    for _ in range(MOST_RUNS):
        neighbour = site.sbatch(JOB, asked("objective-beside"))
        site.counted_run(NOISY, asked(NOISY_APPLICATION))
        site.judged(neighbour)
        study = site.study(NOISY_APPLICATION, ALICE)
        is_claimed = study["phase"] == "settled" and study["gain"] and study["gain"]["resolved"]
        if is_claimed and study["tuned"]["n"] >= BOUNDED_RUNS:
            return study
    raise AssertionError(f"no gain is proven: {study}")


@pytest.mark.slow
@nightly.needs_report
def test_the_report_shows_its_measures_estimates_and_their_intervals(
    site: Site, noisy: Json, tmp_path: Path
) -> None:
    night = nightly.report(site, tmp_path)
    (study,) = [one for one in night.document["studies"] if one["study_id"] == noisy["study_id"]]
    (marked,) = [one for one in study["measures"] if one["name"] == "marked_seconds"]
    default, chosen = marked["default"], marked["chosen"]
    assert chosen["low"] <= chosen["median"] <= chosen["high"] < PHASE <= default["median"]
    cleaned = study["cleaned"]
    assert cleaned == noisy["assessment"]["cleaned"]
    assert cleaned["recommended"]["high"] < cleaned["default"]["low"], cleaned
    assert "Where other runs fare as ever, marked I/O seconds of the default is " in night.page


def test_whatever_a_job_writes_as_its_marks_it_and_others_are_unharmed(site: Site) -> None:
    """Attack (files): A job fills the place of its observed values and marks, and makes other files
    there.
    Outcome: The place holds 144 KiB and no other file, of which root reads less.
    """
    app = "objective-attack"
    secret = site.paths.scratch / "objective.secret"
    secret.write_text("begin 1\nend 9000000000\n", encoding="utf-8")
    secret.chmod(0o600)
    fence = site.paths.scratch / "objective.fence"
    other = site.sbatch(
        f'io-autotune mark begin; echo "$IO_MARKS_FILE"\nuntil [ -e {fence} ]; do sleep 0.1; done\n'
        "io-autotune mark end",
        asked("objective-other"),
    )

    def said() -> str | None:
        path = site.paths.home(ALICE) / f"{other.job_id}.out"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return text.strip() or None

    marks_of_other = await_value("the other job to have marked", said)
    body = f"""
        echo "end 1" >> {marks_of_other} && echo harmed
        (rm -f "$IO_MARKS_FILE"; mkfifo "$IO_MARKS_FILE") && echo harmed
        ln -sf {secret} "$IO_MARKS_FILE" && echo harmed
        mkfifo fifo.$SLURM_JOB_ID
        for file in fifo.$SLURM_JOB_ID {secret} {marks_of_other} /dev/zero; do
            IO_MARKS_FILE=$file timeout 5 io-autotune mark begin || echo "waited for $file"
        done
        head -c 100000000 /dev/zero | tr '\\0' 'e' >> "$IO_MARKS_FILE"
        echo "size $(stat --format %s "$IO_MARKS_FILE")"
        io-autotune mark begin && echo done
    """
    job = site.sbatch(body, asked(app), user=BOB)
    run = site.judged(job)
    fence.touch()
    assert run["state"] == "counted", run["verdict"]
    assert "marked_seconds" not in run["measures"]
    output = lines(site.output(job, BOB))
    assert not [line for line in output if line.startswith(("harmed", "waited"))], output
    (size,) = [int(line.split()[1]) for line in output if line.startswith("size ")]
    assert 0 < size <= 147456
    assert output[-1] == "done", "a full file is said, and no failure"
    marked = site.judged(other)
    assert marked["measures"]["marked_seconds"] > 0.0, "another user's job ended its phase"
    assert not site.spooled()

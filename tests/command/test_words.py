"""What names an application, a study or a job means the same in every command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command.service import ALICE, BOB, ROOT, Service

Command = tuple[str, ...]


def commands(refusal: str) -> list[str]:
    """Return the commands that a refusal writes out."""
    return [line.strip() for line in refusal.splitlines() if line.startswith("  io-autotune ")]


@pytest.fixture(scope="module")
def number(served: Service) -> str:
    """Return a number that is a study's, and the name of another application."""
    number = str(served.run(ALICE, "of-a-number")["study_id"])
    assert served.run(ALICE, number)["study_id"] != int(number)
    return number


def of_studies(word: str) -> list[Command]:
    """Return each command about studies, of one that is named so."""
    return [
        ("status", word),
        ("history", word),
        ("show", word),
        ("pin", word),
        ("pin", word, "cb_nodes=2"),
        ("pin", word, "--end"),
        ("off", word),
        ("off", word, "--end"),
        ("freeze", word),
        ("freeze", word, "--end"),
        ("reset", word),
        ("accept", word),
        ("objective", word, "marked"),
        ("transfer", "export", word),
        ("transfer", "warm-start", word, "--from", "of-a-number"),
        ("transfer", "warm-start", "of-a-number", "--from", word),
        ("compare", word, "of-a-number"),
        ("compare", "of-a-number", word),
    ]


def test_a_number_that_could_be_two_things_is_refused_with_both_as_commands(
    served: Service, number: str
) -> None:
    before = served.ask(ALICE, "audit")
    for command in of_studies(number):
        done = served.tuner(ALICE, *command)
        assert (done.returncode, done.stdout) == (2, ""), done
        said = f"{number} may be study {number} (application of-a-number) or application {number}"
        assert said in done.stderr, done
        typed = [
            " ".join(("io-autotune", *(form if word == number else word for word in command)))
            for form in (f"study:{number}", f"app:{number}")
        ]
        assert commands(done.stderr) == typed, done
    assert served.ask(ALICE, "audit") == before, "nothing was done"
    # Programs are answered alike.
    assert served.tuner(ALICE, "history", number, "--json").returncode == 2


def test_each_of_both_commands_does_what_it_says(served: Service, number: str) -> None:
    refused = served.tuner(ALICE, "off", number, "--why", "a test, of course", "--json")
    of_study, of_application = commands(refused.stderr)
    study = json.loads(served.paste(ALICE, of_study).stdout)["studies"]
    assert [one["application"] for one in study] == ["of-a-number"]
    application = json.loads(served.paste(ALICE, of_application).stdout)["studies"]
    assert [one["application"] for one in application] == [number]
    for form in (f"study:{number}", f"app:{number}"):
        (one,) = served.ask(ALICE, "status", form)
        assert one["ordered"] == "off", form
        served.ask(ALICE, "off", form, "--end")
        (one,) = served.ask(ALICE, "status", form)
        assert one["ordered"] is None, form


def test_each_form_is_taken_by_each_command(served: Service, number: str) -> None:
    for form, app in (
        (f"study:{number}", "of-a-number"),
        (f"app:{number}", number),
        (f"application:{number}", number),
    ):
        assert {one["application"] for one in served.ask(ALICE, "status", form)} == {app}
        assert {run["application"] for run in served.ask(ALICE, "history", form)} == {app}
        assert served.ask(ALICE, "show", form)["study"]["application"] == app
        pinned = served.ask(ALICE, "pin", form, "cb_nodes=2")
        assert (pinned["application"], pinned["pin"] is None) == (app, False)
        assert served.ask(ALICE, "pin", form, "--end")["pin"] is None
        assert served.ask(ALICE, "reset", form)["application"] == app
        text = served.tuner(ALICE, "transfer", "export", form).stdout
        assert f'"application":"{app}"' in text
        two = served.ask(ALICE, "compare", form, "app:of-a-number")
        assert two[0]["application"] == app
    for option in (("--study", number), ("--study", f"study:{number}")):
        (one,) = served.ask(ALICE, "status", *option)
        assert one["application"] == "of-a-number"
    for name in (number, f"app:{number}"):
        off = served.ask(ALICE, "off", "--application", name, "--dry-run")
        assert [one["application"] for one in off["studies"]] == [number]


def test_a_number_that_can_be_one_thing_only_is_that(served: Service, number: str) -> None:
    # He sees neither.
    for command in (("show", number), ("pin", number, "cb_nodes=2"), ("off", number)):
        done = served.tuner(BOB, *command)
        assert (done.returncode, "no study" in done.stderr) == (4, True), done
    assert served.tuner(ROOT, "show", number).returncode == 2
    served.run(BOB, "987654")
    assert served.ask(BOB, "show", "987654")["study"]["application"] == "987654"
    assert [one["application"] for one in served.ask(BOB, "status", "987654")] == ["987654"]
    own = str(served.study("987654", BOB)["study_id"])
    assert served.ask(BOB, "show", own)["study"]["study_id"] == int(own)


def test_what_names_another_kind_of_thing_is_refused_with_where_it_belongs(
    served: Service, number: str
) -> None:
    for command in of_studies("job:1"):
        if command[0] == "compare":
            continue
        done = served.tuner(ALICE, *command)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert "explain job:1" in " ".join(done.stderr.split()), done
    for word in (f"study:{number}", f"app:{number}"):
        done = served.tuner(ALICE, "explain", word)
        assert (done.returncode, f"history {word}" in done.stderr) == (2, True), done
    for word in ("studies:3", "study:ocean", "app:"):
        done = served.tuner(ALICE, "pin", word)
        assert (done.returncode, done.stdout) == (2, ""), done


def test_a_job_is_named_as_squeue_and_sacct_write_it(served: Service) -> None:
    jobs = [str(served.run(ALICE, "of-steps")["job_id"]) for _ in range(2)]
    one, other = jobs
    told = served.ask(ALICE, "explain", one)
    for form in (f"job:{one}", f"{one}.batch", f"{one}.0", f"{one}+0", f"{one}+1.extern"):
        assert served.ask(ALICE, "explain", form) == told, form
        compared = served.ask(ALICE, "compare", form, f"job:{other}.batch")
        assert [str(run["job_id"]) for run in compared] == jobs, form
    for several in (f"{one}_[1-5]", f"{one},{other}", f"{one}_*"):
        for command in (("explain", several), ("compare", several, other)):
            done = served.tuner(ALICE, *command)
            assert (done.returncode, "names several jobs" in done.stderr) == (2, True), done
            assert f"{one}_1" in done.stderr, done


SAYS = """#!/bin/bash
[[ " $* " == *" --jobs=77_3 "* ]] && cat <<'END'
{listed}
END
exit 0
"""


def test_a_task_of_an_array_is_the_job_that_slurm_says_it_is(served: Service, shared: Path) -> None:
    job = served.run(ALICE, "of-an-array")["job_id"]
    path = {"PATH": f"{shared}:{served.env['PATH']}"}

    def says(program: str, listed: str) -> None:
        (shared / program).write_text(SAYS.format(listed=listed), encoding="utf-8")
        (shared / program).chmod(0o755)

    says("squeue", f"{job}|RUNNING")
    says("sacct", "")
    for word in ("77_3", "job:77_3", "77_3.batch"):
        done = served.tuner(ALICE, "explain", word, "--json", env=path)
        assert [one["run"]["job_id"] for one in json.loads(done.stdout)] == [job], word
    # A task that waits is listed by its array's id, which another one will have.
    says("squeue", "77|PENDING")
    says("sacct", f"{job}|COMPLETED")
    done = served.tuner(ALICE, "explain", "77_3", "--replay", "--json", env=path)
    assert done.returncode == 0, done
    compared = served.tuner(ALICE, "compare", "77_3", str(job), "--json", env=path)
    assert [run["job_id"] for run in json.loads(compared.stdout)] == [job, job]
    says("sacct", "")
    for command in (("explain", "77_3"), ("compare", "77_3", str(job))):
        done = served.tuner(ALICE, *command, env=path)
        assert (done.returncode, done.stdout) == (4, ""), done
        assert "`squeue --array --format=%i,%A`" in done.stderr, done
        assert "--format=JobID,JobIDRaw`" in done.stderr, done


def test_what_may_be_a_job_and_a_study_is_told_apart_where_either_is_taken(
    served: Service,
) -> None:
    study = served.run(ALICE, "of-both")["study_id"]
    served.live(served.job(ALICE, "of-both", job_id=study))
    word = str(study)
    other = served.run(ALICE, "of-another")
    done = served.tuner(ALICE, "compare", word, "of-another")
    assert (done.returncode, done.stdout) == (2, ""), done
    assert f"{word} may be study {word} (application of-both) or job {word}" in done.stderr, done
    of_study, of_job = commands(done.stderr)
    assert served.paste(ALICE, of_study).returncode == 0
    mixed = served.paste(ALICE, of_job)
    assert (mixed.returncode, "name two jobs" in mixed.stderr) == (2, True), mixed
    jobs = served.ask(ALICE, "compare", f"job:{word}", str(other["job_id"]))
    assert [run["job_id"] for run in jobs] == [study, other["job_id"]]
    for studies in ((word, str(other["study_id"]), "--studies"), (f"study:{word}", "of-another")):
        two = served.ask(ALICE, "compare", *studies)
        assert [one["application"] for one in two] == ["of-both", "of-another"]
    # explain is about jobs alone, and show about studies.
    assert served.ask(ALICE, "explain", word)[0]["run"]["job_id"] == study
    assert served.ask(ALICE, "show", word)["study"]["study_id"] == study
    for command, about in (("explain", "A job, never a study"), ("show", "A study: study:12")):
        shown = " ".join(served.tuner(ALICE, command, "--help").stdout.split())
        assert about in shown, shown

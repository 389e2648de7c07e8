"""What a script goes by: the exit status, and what is said of what went wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command.place import Place
from command.service import ALICE, BOB, CAROL, ROOT, Service, service


@pytest.mark.parametrize(
    ("wrong", "status", "told"),
    [
        (("history", "--format", "Mood"), 2, "there are JobID"),
        (("history", "--format", "Elapsed%wide"), 2, "write Elapsed%20, or Elapsed%-20"),
        (("history", "--starttime", "yesterdy"), 2, "now-2days"),
        (("history", "--state", "sad"), 2, "not-counted"),
        (("history", "--json", "--csv"), 2, "cannot be used with"),
        (("audit", "--format", "Mood"), 2, "there are Line"),
        (("explain", "wrongly-asked"), 2, "`io-autotune history wrongly-asked` lists"),
        (("pin", "wrongly-asked", "best", "cb_nodes=2", "--why", "x"), 2, "stand alone"),
        (("off", "--why", "x"), 2, "name a study, an application, or a scope such as --all"),
        (("objective", "wrongly-asked", "--why", "x"), 2, "in a job NAME=VALUE"),
        (("show", "nothing-here"), 4, 'application "nothing-here" has no study'),
        (("show", "wrongly-aksed"), 4, "(there is wrongly-asked); `io-autotune status` lists them"),
        (("history", "wrongly-aksed"), 4, "(there is wrongly-asked)"),
        (("transfer", "export", "987654321"), 4, "no study 987654321"),
        (("status", "--study", "987654321"), 4, "no study 987654321"),
        (("explain", "987654321"), 4, "there is no run of a job 987654321"),
        (("undo", "987654321", "--why", "x"), 4, "there is no line"),
        (
            ("transfer", "warm-start", "nothing-here", "--from", "wrongly-asked"),
            4,
            "begins with its first run",
        ),
        (("pin", "wrongly-asked", "cb_nodes=3", "--why", "x"), 4, "automatic"),
        (("pin", "wrongly-asked", "cb_moods=1", "--why", "x"), 4, "cb_nodes"),
        (
            ("off", "wrongly-asked", "--end"),
            4,
            "nothing of this scope is off: application wrongly-asked",
        ),
        (("accelerators", "show", "romoi"), 4, "romoi"),
        (("accelerators", "check", "/nowhere.toml"), 1, "/nowhere.toml: "),
        (("rules", "check", "--file", "/nowhere.toml", "x"), 1, "/nowhere.toml: "),
        (("report", "--latest"), 4, "[access] report_readers"),
        (("doctor", "--within", "5"), 2, "--job"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_right(
    served: Service, wrong: tuple[str, ...], status: int, told: str
) -> None:
    if not served.ask(CAROL, "status", "wrongly-asked"):
        served.run(CAROL, "wrongly-asked")
    done = served.tuner(CAROL, *wrong)
    assert (done.returncode, done.stdout) == (status, ""), done
    assert told in " ".join(done.stderr.split()), done.stderr


def test_what_is_anothers_is_not_there(served: Service) -> None:
    run = served.run(ALICE, "hidden")
    served.run(BOB, "his-own")
    number = str(run["study_id"])
    for command, told in (
        (("show", number), "there is no study"),
        (("explain", str(run["job_id"])), "there is no run of a job"),
        (("transfer", "export", number), "no study"),
        (("pin", number, "cb_nodes=2", "--why", "mischief"), "no study"),
        (("status", "hidden"), "no study"),
        (("compare", str(run["job_id"]), str(run["job_id"])), "there is no run of a job"),
    ):
        done = served.tuner(BOB, *command)
        assert (done.returncode, done.stdout, told in done.stderr) == (4, "", True), done
    for order in (("off", "--user", ALICE), ("freeze", "--user", ALICE, "--application", "hidden")):
        done = served.tuner(BOB, *order, "--why", "mischief", "--yes")
        assert (done.returncode, "only admins" in done.stderr) == (4, True), done


def test_several_studies_of_a_name_are_told_with_their_numbers(served: Service) -> None:
    app = "of-two-users"
    numbers = [served.run(user, app)["study_id"] for user in (ALICE, BOB)]
    done = served.tuner(ROOT, "show", app)
    listed = ", ".join(f"study:{number}" for number in numbers)
    assert (done.returncode, done.stdout) == (4, "")
    assert f"name one of {listed} (`io-autotune status app:{app}` tells" in done.stderr
    for number in numbers:
        assert served.tuner(ROOT, "show", str(number)).returncode == 0
    assert served.tuner(ALICE, "show", app).returncode == 0


def test_a_service_that_cannot_be_asked_is_not_one_that_refuses(
    served: Service, shared: Path
) -> None:
    silent = shared / "silent.toml"
    silent.write_text(served.asking(shared / "nobody.sock"), encoding="utf-8")
    broken = shared / "broken.toml"
    broken.write_text(served.asking(shared / "nobody.sock") + "endpiont = 1\n", encoding="utf-8")
    for config, told in (
        (silent, "nobody.sock"),
        (broken, "endpiont"),
        (shared / "missing.toml", "missing.toml"),
    ):
        done = served.tuner(ALICE, "--config", str(config), "status")
        assert (done.returncode, done.stdout, told in done.stderr) == (3, "", True), done
        # What needs no service goes without.
        for command in (
            ("mark", "begin"),
            ("admin", "completion", "bash"),
            ("history", "--helpformat"),
        ):
            assert served.tuner(ALICE, "--config", str(config), *command).returncode == 0
    second = shared / "second.toml"
    (first, *_) = re.findall(r"unix:([^\"]*)", served.client_toml.read_text(encoding="utf-8"))
    second.write_text(served.asking(shared / "nobody.sock", Path(first)), encoding="utf-8")
    assert served.tuner(ALICE, "--config", str(second), "status").returncode == 0


def test_a_replay_that_differs_ends_with_a_failure(served: Service) -> None:
    run = served.run(ALICE, "changed-afterwards")
    replay = ("explain", str(run["job_id"]), "--replay")
    done = served.tuner(ALICE, *replay)
    assert (done.returncode, "same" in done.stdout) == (0, True), done
    served.sql(
        "update runs set parametrization = jsonb_set(parametrization, '{cb_nodes}', '8')"
        f" where id = {run['run_id']}"
    )
    (told,) = served.told(ALICE, *replay)
    assert not told["same"], told
    done = served.tuner(ALICE, *replay)
    assert (done.returncode, done.stderr) == (1, ""), "a script that checks would not notice"
    assert "cb_nodes" in done.stdout


def test_a_quota_that_is_used_up_is_told_with_when_to_ask_again(where: Place) -> None:
    """Attack (floods): A user asks for lists without a pause, or for too many at once.
    Outcome: The refusal says when to ask again, and the command does.
    """
    # However slow the host is, nobody waits long enough for a list of this quota: a list counts as
    # four requests, and two minutes bring hardly more than one.
    little = {"users": {"requests_per_second": 0.01}}
    with service(where, "little_quota", more=little, database="served") as beside:
        reading = ("accelerators", "list")
        assert [beside.tuner(BOB, *reading).returncode for _ in range(6)] == [0] * 6
        done = beside.tuner(BOB, "status")
        while done.returncode == 0:
            done = beside.tuner(BOB, "status")
        assert (done.returncode, done.stdout) == (4, ""), done
        assert re.search(r"ask again in \d+ s", done.stderr), done.stderr
        assert beside.tuner(ALICE, "status").returncode == 0


def test_a_pager_that_is_closed_early_is_no_failure(served: Service) -> None:
    served.run(ALICE, "paged-out")
    for command in ("status", "history --csv", "transfer export paged-out", "explain --help"):
        script = f"set -o pipefail; io-autotune {command} | true"
        done = served.run_as(ALICE, ["bash", "-c", script])
        assert (done.returncode, done.stderr.replace("io-autotune: exported 1 study\n", "")) == (
            0,
            "",
        ), command


def test_output_that_is_lost_is_a_failure(served: Service) -> None:
    job = served.run(ALICE, "lost")["job_id"]
    explain = f"explain {job} --replay --json"
    for command in ("status", "history --csv", explain, "transfer export lost", "audit -P"):
        done = served.run_as(ALICE, ["bash", "-c", f"io-autotune {command} > /dev/full"])
        assert (done.returncode, "No space left on device" in done.stderr) == (1, True), command
    # Where even that cannot be said, the status is what it is.
    for command, status in (
        ("status >/dev/full", 1),
        ("show nothing-here", 4),
        ("transfer export lost >/dev/null", 0),
    ):
        done = served.run_as(ALICE, ["bash", "-c", f"io-autotune {command} 2>/dev/full"])
        assert done.returncode == status, command


def test_every_example_of_the_help_is_a_command_line_that_is_read(served: Service) -> None:
    text = served.tuner(CAROL, "--help").stdout
    commands = re.findall(r"^  ([a-z-]+)  +[A-Z]", text.partition("Options:")[0], re.M)
    assert {"status", "history", "doctor", "optimize"} <= set(commands)
    examples: set[str] = set()
    for command in commands:
        text += served.tuner(CAROL, command, "--help").stdout
    joined = text.replace("\\\n", " ")
    for line in re.findall(r"^ +io-autotune ([a-z][^<\n]*)$", joined, re.M):
        examples.add(re.split(r"  +[a-zA-Z]|\s+>", line)[0])
    assert len(examples) > 60, examples
    # Nobody is asked, nothing is made: what is tried is whether the words are understood.
    tried = (
        one for one in sorted(examples) if not re.match(r"doctor|admin man |optimize|report", one)
    )
    for example in tried:
        line = f"cd /; io-autotune --config /nowhere {example} </dev/null"
        done = served.paste(CAROL, line)
        assert done.returncode != 2, f"{example}: {done.stderr}"

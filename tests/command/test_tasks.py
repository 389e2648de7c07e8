"""Fifteen tasks, in a user's words: the command that --help is to lead to does what was wanted."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from command.jobs import Json
from command.place import Place
from command.service import ALICE, ROOT, Service, service

TASKS = Path(__file__).with_name("fifteen_tasks.tsv")
ADMINS = {"freeze", "transfer export", "admin", "doctor"}
"""Commands that an admin gives in these tasks."""


def tasks() -> list[tuple[str, str]]:
    with TASKS.open(encoding="utf-8", newline="") as file:
        return [(row["task"], row["command"]) for row in csv.DictReader(file, delimiter="\t")]


@pytest.fixture(scope="module")
def site(where: Place) -> Iterator[Service]:
    """Run a service of their own: some tasks are about everybody's studies."""
    with service(where, "tasks") as running:
        yield running


@pytest.fixture(scope="module")
def jobs(site: Service) -> dict[str, str]:
    """Let the tasks' jobs run, and return their ids by those that the tasks name."""
    for app in ("ocean", "climate"):
        site.run(ALICE, app)
    site.ask(ALICE, "pin", "ocean", "cb_nodes=4")
    found = {job: str(site.run(ALICE, "ocean")["job_id"]) for job in ("4711", "4712")}
    site.ask(ALICE, "pin", "ocean", "--end")
    return found


def by(command: str) -> str:
    words = command.split()
    return ROOT if {words[0], " ".join(words[:2])} & ADMINS else ALICE


def test_each_task_is_done_by_its_command(
    site: Service, jobs: dict[str, str], shared: Path
) -> None:
    def study(key: str, app: str = "ocean") -> Json:
        return site.study(app)[key]

    meant = {**jobs, "studies.jsonl": str(shared / "studies.jsonl")}

    done: dict[str, Callable[[str], bool]] = {
        "status": lambda said: "ocean" in said and "climate" in said,
        "explain 4711": lambda said: jobs["4711"] in said and "because" in said,
        "off ocean --until now+7days": lambda _: study("ordered") == "off",
        "off ocean --end": lambda _: study("ordered") is None,
        "pin ocean cb_nodes=2": lambda _: study("pin")["parametrization"]["cb_nodes"] == 2,
        "pin ocean --end": lambda _: study("pin") is None,
        "reset ocean": lambda _: study("epoch") == 2,
        "history ocean -S yesterday": lambda said: jobs["4712"] in said,
        "compare 4711 4712": lambda said: jobs["4711"] in said and jobs["4712"] in said,
        "transfer warm-start climate --from ocean": lambda _: study("epoch", "climate") == 2,
        "transfer export --all --output studies.jsonl": lambda _: (
            "ocean" in (shared / "studies.jsonl").read_text(encoding="utf-8")
        ),
        "freeze --all --until now+2days --why maintenance --yes": lambda _: (
            study("ordered") is not None
        ),
        "audit": lambda said: "no reason was given" in said,
        "doctor": lambda said: "database" in said,
        "admin retention --older-than 400 --dry-run": lambda said: "dry run: no run is old" in said,
    }
    assert [command for _, command in tasks()] == [*done], "as they were written down"
    # What resets has to wait for what needs what was learnt.
    order = sorted(tasks(), key=lambda task: task[1] == "reset ocean")
    for task, command in order:
        ran = site.tuner(by(command), *(meant.get(word, word) for word in command.split()))
        assert ran.returncode == 0 or command == "doctor", (task, ran)
        assert done[command](ran.stdout), (task, ran)

"""What a user meets is said in plain words; programs get the exact ones, in JSON."""

from __future__ import annotations

import re

import pytest

from command.jobs import End, Json, variables
from command.service import ALICE, Service
from command.terminal import at_terminal
from command.test_figures import text_of

APP = "plain"
INNER = (
    *("surrogate", "posterior", "acquisition", "expected improvement", "e-value", "epoch"),
    *("control run", "baseline", "quarantine", "finding", "regret", "parametrization", "phase"),
    *("context", "standard error", "candidate", "child of", "mutated", "design", "resample"),
    *("drift", "headroom"),
)
"""Words of the search, which only those need who read about it."""


def assert_plain(screen: str) -> None:
    """Check that a screen has no inner word, and names no rule in brackets."""
    for word in INNER:
        assert word not in screen.lower(), f"{word}: {screen}"
    assert not re.search(r" \[[a-z_]+\]", screen), screen


def words(text: str) -> list[str]:
    """Return the words of a text; a line may end after a part of what a hyphen joins, too."""
    return [word for word in re.split(r"\s+|(?<=[-,/])", text) if word]


def end(answer: Json) -> End:
    """Return an end of half the time where a job is tuned, with a little noise."""
    noise = 1.0 + 0.01 * (answer["run_id"] * 7 % 11)
    return End(seconds=(10.0 if variables(answer["delivery"]) else 20.0) * noise)


@pytest.fixture(scope="module")
def jobs(served: Service) -> list[str]:
    """Return a job of each kind of run in a study's life."""
    of_role: dict[str, str] = {}
    for run in served.tune(ALICE, APP, end):
        screens = (("status", APP), ("status",), ("explain", str(run["job_id"])))
        if run["role"] not in of_role:
            for command in screens:
                assert_plain(served.tuner(ALICE, *command).stdout)
        of_role[run["role"]] = str(run["job_id"])
        if {"baseline", "settled", "control"} <= of_role.keys():
            break
    failed = served.live(served.job(ALICE, APP), End(seconds=3.0, state="FAILED"))
    cut = served.live(served.job(ALICE, APP), End(seconds=30.0, state="TIMEOUT"))
    watched = served.live(served.job(ALICE, APP, mode="observe"))
    return [*of_role.values(), *(str(run["job_id"]) for run in (failed, cut, watched))]


def test_six_commands_have_no_inner_word(served: Service, jobs: list[str]) -> None:
    for job in jobs:
        assert_plain(served.tuner(ALICE, "explain", job).stdout)
    assert_plain(text_of(served.tuner(ALICE, "report", "--mine").stdout))
    for command in (
        *(("pin", APP), ("pin", APP, "--end"), ("off", APP), ("status", APP)),
        *(("off", APP, "--end"), ("reset", APP, "--dry-run"), ("reset", APP), ("status", APP)),
    ):
        done = served.tuner(ALICE, *command)
        assert done.returncode == 0, done.stderr
        assert_plain(done.stdout)


def test_the_exact_words_are_for_those_who_ask(served: Service, jobs: list[str]) -> None:
    details = served.tuner(ALICE, "explain", jobs[0], "--details").stdout
    assert "phase, role  baseline, baseline, epoch 1" in details, details
    assert "[baseline]" in details, details
    assert {run["role"] for run in served.ask(ALICE, "history", APP)} >= {"baseline", "control"}


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_a_line_is_whole(served: Service, jobs: list[str], columns: int) -> None:
    for command in (["status", APP], ["status"], *(["explain", job] for job in jobs)):
        piped = served.tuner(ALICE, *command).stdout
        shown = at_terminal(served, ALICE, command, columns).plain()
        lines = shown.splitlines()
        # A command that ends an order is kept whole, so that it can be pasted.
        assert all(len(one) <= columns for one in lines if "to end it: " not in one), shown
        if command != ["status"]:
            assert words(shown) == words(piped), "no word is broken, and none is left out"

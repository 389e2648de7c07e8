"""Ten studies and what the next run of each gets: by ``status`` alone, and then by a start.

What is right was written down before anybody read a screen: RIGHT has, for each study, the rule
that decides, and what a reader has to find on the screen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from command.jobs import End, Json, variables
from command.service import ALICE, ROOT, Service


@dataclass(frozen=True)
class Right:
    """What is right of a study."""

    prepare: Callable[[Service, str], None]
    rule: str
    gets: str
    """What the next run gets."""
    until: str
    """Why, or until when."""


def begin(served: Service, app: str) -> None:
    """Let the baseline of a study end."""
    for _ in served.tune(ALICE, app, lambda _: End(10.0)):
        if served.study(app)["phase"] != "baseline":
            return


def new(served: Service, app: str) -> None:
    served.run(ALICE, app)


def ordered(*arguments: str) -> Callable[[Service, str], None]:
    """Return what begins a study and gives an order for it."""

    def prepare(served: Service, app: str) -> None:
        begin(served, app)
        done = served.tuner(ALICE, arguments[0], app, *arguments[1:], "--why", "a test")
        assert done.returncode == 0, done.stderr

    return prepare


def mixed(served: Service, app: str) -> None:
    for number in range(8):
        job = served.job(ALICE, app, mode="observe")
        served.live(job, End(10.0 + 20.0 * (number % 2) + 0.01 * number))


def failing(served: Service, app: str) -> None:
    for _ in range(3):
        served.live(served.job(ALICE, app), End(10.0, state="FAILED"))


def terrible(served: Service, app: str) -> None:
    def end(given: Json) -> End:
        return End(220.0 if variables(given["delivery"]) else 10.0)

    for run in served.tune(ALICE, app, end):
        if run["differs"]:
            return


def full(served: Service, app: str) -> None:
    begin(served, app)
    # Control runs may come between those that explore.
    for _ in range(30):
        if served.study(app)["next"]["rule"] == "exploring_full":
            return
        served.start(served.job(ALICE, app))


def settle(served: Service, app: str) -> None:
    def end(given: Json) -> End:
        noise = 0.01 * (given["run_id"] * 7 % 11)
        return End((8.0 if variables(given["delivery"]) else 10.0) + noise)

    for run in served.tune(ALICE, app, end):
        if run["phase"] == "settled":
            return


RIGHT = {
    "next-new": Right(new, "baseline", "the default, which is measured first", "run 2 of"),
    "next-search": Right(begin, "search", "what the search proposes", "it chooses after about"),
    "next-pinned": Right(
        ordered("pin", "cb_nodes=2"), "pinned", "the pinned values", "until somebody ends that"
    ),
    "next-frozen": Right(
        ordered("freeze"), "frozen", "the best known values", "until somebody ends that"
    ),
    "next-off": Right(
        ordered("off", "--until", "now+2days"),
        "off",
        "nothing is applied",
        "is turned off until",
    ),
    "next-mixed": Right(
        mixed,
        "mixed_work",
        "nothing is applied",
        "until each has a name of its own or it is accepted",
    ),
    "next-failing": Right(
        failing,
        "design_without_default",
        "something new, because the default does not complete",
        "it chooses after about",
    ),
    "next-terrible": Right(
        terrible, "regret_budget", "the best known values", "one trial took 22 times as long"
    ),
    "next-full": Right(full, "exploring_full", "the best known values", "until one of them ends"),
    "next-settled": Right(
        settle, "settled", "the chosen values or, as drawn, the default", "a gain or a loss"
    ),
}


@pytest.mark.parametrize("app", RIGHT)
def test_what_status_says_of_the_next_run_is_what_it_gets(served: Service, app: str) -> None:
    right = RIGHT[app]
    right.prepare(served, app)
    screen = " ".join(served.tuner(ALICE, "status", app).stdout.split())
    said = served.study(app)["next"]
    assert said["rule"] == right.rule, screen
    for words in (right.gets, right.until):
        assert words in screen, screen
    shown = " ".join(served.tuner(ALICE, "show", app).stdout.split())
    assert f"[{right.rule}]" in shown, shown
    job = served.job(ALICE, app)
    served.start(job)
    (detail,) = served.ask(ROOT, "explain", str(job.job_id))
    assert detail["suggestion"]["rule"] == right.rule, detail["run"]["reason"]

"""`status --watch` draws studies anew when something has changed, and ends when it is told to."""

from __future__ import annotations

import signal

import pytest

from command.service import ALICE, Service
from command.terminal import SECONDS, read, started

HOME = "\x1b[H"
"""What a drawing begins with."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_study_that_is_watched_is_drawn_when_it_has_changed(
    served: Service, number: signal.Signals
) -> None:
    app = f"watched-until-{number.name.lower()}"
    served.run(ALICE, app)
    command = ("io-autotune", "status", "--watch", app)
    with started(served, ALICE, command, 200) as (master, running):
        assert read(master, running, "runs: 1 counted").count(HOME) == 1
        served.run(ALICE, app)
        # Once for the second run's end, and once for its start, if that was seen.
        assert read(master, running, "runs: 2 counted").count(HOME) in {1, 2}
        running.send_signal(number)
        read(master, running)
        assert running.wait(SECONDS) == 0


def test_only_a_terminal_is_drawn_on(served: Service) -> None:
    done = served.tuner(ALICE, "status", "--watch")
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "--watch draws on a terminal" in done.stderr
    for form in ("--json", "--csv"):
        assert served.tuner(ALICE, "status", "--watch", form).returncode == 2

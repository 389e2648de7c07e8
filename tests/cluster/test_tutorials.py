"""The tutorials are executed: each command on a real cluster, its output compared with the page."""

from __future__ import annotations

import doctest
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import nightly
import pytest
from clusters import cluster_of_its_own
from harness import ALICE, ROOT, Site, await_true
from pages import steps

DOCS = Path(__file__).parents[2] / "docs"
CHECKER = doctest.OutputChecker()
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster that has seen nothing else: the pages list all that there is."""
    with cluster_of_its_own(request, "tutorials") as site:
        site.introduce_nodes()
        yield site


def follow(site: Site, user: str, page: Path, prompt: str) -> None:
    """Execute a page, one command after the other, in the user's home directory.

    ``undo LINE`` has the line that the last change has printed, as a reader types it.
    """
    state = site.paths.home(ALICE) / f".{page.stem}"
    executed = 0
    line = "LINE"
    wrong = []
    for step in steps(page, [prompt]):
        kept = shlex.quote(str(state))
        script = (
            f"[ ! -e {kept} ] || . {kept}\n{{ {step.command.replace('LINE', line)}\n}} 2>&1\n"
            f"[ -z ${{job+set}} ] || declare -p job > {kept}\n"
        )
        if "report --mine" in step.command:
            # As the timer does at night.
            nightly.publish(site)
        env = {"TZ": "UTC"}
        done = site.cluster.run_as(user, ["bash", "-c", script], env=env, check=False)
        said, expected = done.stdout + done.stderr, step.prints
        line = next(iter(re.findall(r"^to take it back: io-autotune undo (\d+)", said, re.M)), line)
        where = f"{page.name}:{step.line}: {step.command}"
        if not CHECKER.check_output(f"{expected}\n", said or "\n", OPTIONS):
            wrong.append(f"{where}\nthe page says:\n{expected}\nit printed:\n{said}")
        if "sbatch" in step.command:
            await_true("the runs to have their verdicts", lambda: not in_flight(site))
        executed += 1
    assert not wrong, "\n\n".join(wrong)
    assert executed > 5, f"{page.name} has hardly a command"


def in_flight(site: Site) -> bool:
    """Return whether a job of the tutorial's has not got its verdict."""
    runs = json.loads(site.tuner(ROOT, "history", "ocean.sh", "--json").stdout)
    queued = site.jobs_named("ocean.sh")
    judged = {str(run["job_id"]) for run in runs if run["state"] != "in_flight"}
    return not set(queued) <= judged


@nightly.needs_report
def test_the_tutorials_say_what_happens(site: Site) -> None:
    follow(site, ALICE, DOCS / "tutorial-user.md", "$")
    follow(site, ROOT, DOCS / "tutorial-admin.md", "#")

"""Users of one application who hear each other's runs, by a rule of the site."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from clusters import cluster_of_its_own
from devcluster import users
from harness import ALICE, BOB, Json, Site, asked, await_true

APP = "shared-ocean"
GROUP = "io-autotune-sharers"
MORE = ("io-autotune-carol", "io-autotune-dan", "io-autotune-erin")
"""Five users are the fewest of whom one cannot deceive the others."""
EVERYONE = (ALICE, BOB, *MORE)
RULE = f'\n[[sharing]]\napplications = ["shared-*"]\ngroup = "{GROUP}"\n'
NO_HOME = ("--chdir=/tmp", "--output=/dev/null")


def administer(*argv: str) -> None:
    """Change this host's users and groups."""
    subprocess.run(argv, check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster whose five users are in a group that shares."""
    administer("groupadd", "--force", "--system", GROUP)
    made = users.ensure(MORE)
    try:
        with cluster_of_its_own(request, "sharing") as site:
            for user in EVERYONE:
                administer("gpasswd", "--add", user, GROUP)
            with site.paths.service_toml.open("a", encoding="utf-8") as service_toml:
                service_toml.write(RULE)
            site.restart("io-autotuned")
            yield site
    finally:
        for user in made:
            users.remove(user)
        administer("groupdel", GROUP)


def run_of_each(site: Site, app: str, everyone: tuple[str, ...] = EVERYONE) -> list[Json]:
    """Let each user run a job of an application, all at once; return their runs.

    On a busy host a shorter job would be all noise, and what looks good by it is run again.
    """
    jobs = [site.sbatch("sleep 0.3", asked(app), *NO_HOME, user=user) for user in everyone]
    return [site.judged(job) for job in jobs]


def sharing(site: Site, user: str, app: str = APP) -> Json:
    """Return whom a user's study hears, as the user is told."""
    (study,) = site.ask(user, "status", app)
    return study["sharing"]


def others(site: Site, user: str, app: str = APP) -> int:
    """Return how many others a user's study hears."""
    told = sharing(site, user, app)
    return 0 if told is None else told["others"]


def test_who_leaves_the_group_hears_nobody_and_is_heard_by_nobody(site: Site) -> None:
    """Promise: one user alone decides what others who share run"""
    app = "shared-ice"
    for _ in range(2):
        run_of_each(site, app)
    await_true("all to be heard", lambda: others(site, BOB, app) == 4)
    administer("gpasswd", "--delete", MORE[0], GROUP)
    await_true("the leaver to hear nobody", lambda: sharing(site, MORE[0], app) is None)
    told = sharing(site, BOB, app)
    assert (told["others"], told["together"]) == (3, False)
    assert told["why"].startswith("4 of the 5 users"), told["why"]
    (run,) = run_of_each(site, app, (BOB,))
    assert "users who share" not in run["reason"], run["reason"]
    administer("gpasswd", "--add", MORE[0], GROUP)
    await_true("all to be heard again", lambda: others(site, BOB, app) == 4)

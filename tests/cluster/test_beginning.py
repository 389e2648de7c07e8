"""What a study begins from: a recipe that helps, one that does not, and the site's default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from clusters import STUDY_SETTINGS, cluster_of_its_own
from devcluster import users
from harness import ALICE, BOB, ROOT, Json, Site, asked, await_true

MORE = ("io-autotune-carol", "io-autotune-dan", "io-autotune-erin")
"""What four users have in common, a fifth begins with."""
OPTION = "accelerator=sleeper"
LEARNING = tuple(one for one in STUDY_SETTINGS if one != "prior=off")
"""Studies hear of each other here."""
NO_HOME = ("--chdir=/tmp", "--output=/dev/null")
SLEEPER = """
name = "sleeper"
title = "A job that sleeps"
description = "Made by a test: a job takes as long as its two values say, in tenths of a second."
takes_effect = "when the job begins"
[[parameters]]
name = "first"
kind = "ordered"
values = [1, 2, 3, 4, 5, 12]
default = 4
[[parameters]]
name = "second"
kind = "ordered"
values = [1, 2, 3, 4, 5, 6]
default = 4
[[recipes]]
name = "wrong"
values = { first = 12 }
why = "It was so on another system."
source = "A test"
[[recipes]]
name = "right"
values = { second = 1 }
why = "What sleeps less is done sooner."
source = "A test"
[[delivery.environment]]
variable = "SLEEPER_FIRST"
value = "{first}"
[[delivery.environment]]
variable = "SLEEPER_SECOND"
value = "{second}"
"""
SLEEP = """
tenths=$((${SLEEPER_FIRST:-4} + ${SLEEPER_SECOND:-4}))
sleep "$((tenths / 10)).$((tenths % 10))"
"""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster of five users, with an accelerator that makes jobs sleep."""
    made = users.ensure(MORE)
    try:
        with cluster_of_its_own(request, "beginning", study_settings=LEARNING) as site:
            (site.paths.accelerators / "sleeper.toml").write_text(SLEEPER, encoding="utf-8")
            await_true("the accelerator to be there", lambda: "sleeper" in names(site))
            yield site
    finally:
        for user in made:
            users.remove(user)


def names(site: Site) -> list[str]:
    """Return the accelerators that users see."""
    return [entry["name"] for entry in site.ask(ALICE, "accelerators", "list")]


def each(site: Site, apps: Mapping[str, str]) -> list[Json]:
    """Let users run a job of an application each, all at once; return the runs as an admin does."""
    jobs = [
        site.sbatch(SLEEP, asked(app, OPTION), *NO_HOME, user=user) for app, user in apps.items()
    ]
    runs = [site.counted(job) for job in jobs]
    details = [site.ask(ROOT, "explain", str(job.job_id))[0] for job in jobs]
    return [
        run | {"rule": detail["suggestion"]["rule"]}
        for run, detail in zip(runs, details, strict=True)
    ]


def one(site: Site, app: str, user: str = ALICE) -> Json:
    """Let a user run a job of an application, and return its run."""
    return each(site, {app: user})[0]


def explored(site: Site, app: str, runs: int, user: str = ALICE) -> list[Json]:
    """Return so many exploring runs; between them others may be, as after a slow one."""
    found: list[Json] = []
    for _ in range(8 * runs):
        run = one(site, app, user)
        if run["role"] in {"design", "search"}:
            found.append(run)
        if len(found) == runs:
            return found
    pytest.fail(f"{app} explores too little: {found}")


def test_a_wrong_recipe_costs_one_run_and_a_right_one_is_faster(site: Site) -> None:
    app = "beginning-recipes"
    wrong, right, *later = explored(site, app, 5)
    assert wrong["differs"] == {"first": 12}
    assert wrong["reason"] == (
        "the recipe wrong of this accelerator: It was so on another system. (A test)"
    )
    assert right["differs"] == {"second": 1}
    assert right["reason"].startswith("the recipe right of this accelerator: ")
    assert all(run["differs"].get("first", 4) < 12 for run in later), later
    assert right["elapsed"] < site.study(app)["default"]["mean"] < wrong["elapsed"]
    shown = site.tuner(ALICE, "accelerators", "show", "sleeper").stdout
    assert "recipe        right" in shown, shown


def test_what_four_users_have_in_common_becomes_the_sites_default_and_is_undone(
    site: Site,
) -> None:
    """The service finds it, an admin applies it, and a fifth user begins with it in one step."""
    points = [{"first": "1"}, {"first": "2"}, {"second": "1"}, {"second": "2"}, {"first": "3"}]
    known = {f"common-{user}": user for user in (ALICE, BOB, *MORE[:2])}
    for _ in range(2):
        assert all(run["role"] == "baseline" for run in each(site, known))
    for point in points:
        for app, user in known.items():
            site.pin(app, point, user=user)
        assert all(run["role"] == "pinned" for run in each(site, known))

    def shown() -> Json:
        (told,) = site.ask(ROOT, "accelerators", "site-default", "sleeper")
        return told

    await_true("the studies to have something in common", lambda: shown()["in_common"] is not None)
    found = shown()["in_common"]
    assert found["studies"] == found["gain"] + found["lose"] == len(known) - 1, found
    assert found["ratio"]["high"] < 1, found
    said = site.tuner(ALICE, "accelerators", "site-default", "sleeper").stdout
    assert f"{found['gain']} of {found['studies']} studies gain" in said, said
    assert "in force     the accelerator's own default" in said, said

    refused = site.tuner(
        ALICE, "accelerators", "site-default", "sleeper", "--apply", "--why", "mine", "--yes"
    )
    assert refused.returncode == 4, refused
    assert "only admins" in refused.stderr, refused
    given = site.ask(
        ROOT, "accelerators", "site-default", "sleeper", "--apply", "--why", "all gain", "--yes"
    )
    (first,) = explored(site, "common-erin", 1, MORE[2])
    assert (first["rule"], first["role"]) == ("site_default", "design"), first
    assert first["differs"] == found["values"], first
    assert shown()["in_force"]["order_id"] == given["order_id"]

    undone = site.tuner(ROOT, "undo", str(given["line"]), "--why", "a test asks for it")
    assert undone.returncode == 0, undone.stderr
    assert shown()["in_force"] is None
    (again,) = explored(site, "common-erin-again", 1, MORE[2])
    assert again["rule"] != "site_default", again

"""Coordinators of accounts, by real associations in slurmdbd: what they see, steer, and do not."""

from __future__ import annotations

import json
import pwd
from collections.abc import Iterator

import pytest
from clusters import cluster_of_its_own
from devcluster import Variant
from harness import ALICE, BOB, ROOT, Site, asked

ALICES = "coordinated-physics"
"""An application of Alice's, charged to physics, which Bob coordinates."""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster with slurmdbd, whose slurmctld enforces no associations."""
    variant = Variant(accounting=True, sources=("squeue",))
    with cluster_of_its_own(request, "coordinators", variant=variant) as site:
        site.introduce_nodes()
        for account in (("physics",), ("optics", "parent=physics"), ("chemistry",)):
            sacctmgr(site, "add", "account", *account)
        yield site


def sacctmgr(site: Site, *arguments: str) -> None:
    """Change what slurmdbd has."""
    site.cluster.run_as(ROOT, ["sacctmgr", "--immediate", *arguments])


def read_anew(site: Site) -> str:
    """Have the service read the associations, and return what its doctor says of them."""
    checks = json.loads(site.tuner(ROOT, "doctor", "--json").stdout)["checks"]
    (found,) = (one for one in checks if one["name"] == "accounts and coordinators")
    return found["detail"] + found.get("fix", "")


def applications(site: Site, user: str, *more: str) -> list[tuple[str, str]]:
    """Return whose studies of these tests a user is shown, and of which applications."""
    shown = [(one["user"], one["application"]) for one in site.ask(user, "status", *more)]
    return [one for one in shown if one[1].startswith("coordinated-")]


def run_ids(site: Site, user: str, *more: str) -> set[int]:
    """Return which runs of these tests a user is shown."""
    runs = site.ask(user, "history", *more)
    return {one["run_id"] for one in runs if one["application"].startswith("coordinated-")}


def refused(site: Site, user: str, *command: str) -> str:
    """Return with which words a command is refused."""
    done = site.tuner(user, *command)
    assert done.returncode == 4, f"{command}: {done.stdout}{done.stderr}"
    return done.stderr


def test_an_account_that_its_user_made_up_shows_a_study_to_nobody(site: Site) -> None:
    """Attack (others): A user's job names an account that the user is not in, for its coordinator
    to see.
    Outcome: The coordinator is told nothing of it.
    """
    # Bob has no association at all: Slurm takes whatever account he names.
    app = "coordinated-made-up"
    run = site.run("true", asked(app), "--account=chemistry", user=BOB)
    assert site.study(app)["account"] == "chemistry", "Slurm says so"
    sacctmgr(site, "add", "user", ALICE, "account=physics")
    sacctmgr(site, "add", "coordinator", "account=chemistry", f"names={ALICE}")
    read_anew(site)
    assert applications(site, ALICE) == []
    assert "no" in refused(site, ALICE, "explain", str(run["job_id"]))
    assert run_ids(site, ALICE) == set()
    # It is the association that makes the difference, and its end.
    sacctmgr(site, "add", "user", BOB, "account=chemistry")
    read_anew(site)
    assert applications(site, ALICE) == [(BOB, app)]
    assert run_ids(site, ALICE) == {run["run_id"]}
    sacctmgr(site, "delete", "user", BOB, "account=chemistry")
    read_anew(site)
    assert applications(site, ALICE) == []
    sacctmgr(site, "delete", "coordinator", "account=chemistry", f"names={ALICE}")


def test_a_coordinator_sees_and_steers_what_members_charge_to_the_account(site: Site) -> None:
    """Attack (others): A present or former coordinator reads or steers what is charged to another
    account, by a stranger or on another cluster, or orders for all that a member has.
    """
    sacctmgr(site, "add", "user", ALICE, "account=physics,optics,chemistry")
    sacctmgr(site, "add", "user", BOB, "account=chemistry")
    sacctmgr(site, "add", "coordinator", "account=physics", f"names={BOB}")
    read_anew(site)
    run = site.run("true", asked(ALICES), "--account=physics")
    below = site.run("true", asked("coordinated-optics"), "--account=optics")
    elsewhere = site.run("true", asked("coordinated-chemistry"), "--account=chemistry")
    own = site.run("true", asked("coordinated-own"), "--account=chemistry", user=BOB)

    # Slurm has who coordinates physics coordinate optics, which is below it.
    shown = {(ALICE, ALICES), (ALICE, "coordinated-optics")}
    bobs = {(BOB, "coordinated-own"), (BOB, "coordinated-made-up")}
    assert set(applications(site, BOB)) == shown | bobs
    assert applications(site, BOB, "--account", "physics") == [(ALICE, ALICES)]
    assert set(applications(site, BOB, "--user", ALICE)) == shown
    seen = run_ids(site, BOB)
    assert {run["run_id"], below["run_id"], own["run_id"]} <= seen
    assert elsewhere["run_id"] not in seen
    (one,) = site.ask(BOB, "history", "--account", "physics")
    assert (one["run_id"], one["user"]) == (run["run_id"], ALICE)
    assert "User" in site.tuner(BOB, "history").stdout, "several users' runs say whose"
    (one,) = site.ask(BOB, "explain", str(run["job_id"]))
    assert one["run"]["run_id"] == run["run_id"]
    assert "no run" in refused(site, BOB, "explain", str(elsewhere["job_id"]))
    study = site.study("coordinated-chemistry", ROOT)["study_id"]
    assert "no study" in refused(site, BOB, "show", str(study))
    pin = ("pin", str(study), "cb_nodes=2", "--why", "mischief")
    assert "no study" in refused(site, BOB, *pin)
    # Alice coordinates nothing: what Bob has is his.
    assert {user for user, _ in applications(site, ALICE)} == {ALICE}

    site.ask(BOB, "pin", ALICES, "cb_nodes=2", "--why", "all of physics does")
    assert site.run("true", asked(ALICES), "--account=physics")["differs"] == {"cb_nodes": 2}
    for user in (ALICE, BOB):
        (line,) = (one for one in site.ask(user, "audit") if one["application"] == ALICES)
        by = (line["action"], line["uid"], line["why"])
        assert by == ("pin", pwd.getpwnam(BOB).pw_uid, "all of physics does")
    site.ask(BOB, "undo", str(line["audit_id"]), "--why", "enough")
    assert site.study(ALICES, ALICE)["pin"] is None
    for command in ("reset", "accept"):
        site.ask(BOB, command, ALICES, "--why", "a test")
    assert site.study(ALICES, BOB)["epoch"] == 2

    # An order about one study, which is then the owner's; about all of a member's it is refused.
    number = str(site.study(ALICES, BOB)["study_id"])
    site.ask(BOB, "freeze", number, "--why", "production")
    assert [one["why"] for one in site.ask(BOB, "audit", "orders")] == ["production"]
    assert site.study(ALICES, ALICE)["ordered"] == "frozen"
    site.ask(ALICE, "freeze", number, "--end", "--why", "not now")
    assert site.study(ALICES, BOB)["ordered"] is None
    site.ask(BOB, "freeze", number, "--why", "production again")
    (line, *_) = site.ask(ALICE, "audit", "--study", number)
    assert line["action"] == "freeze"
    site.ask(ALICE, "undo", str(line["audit_id"]), "--why", "not now either")
    assert site.study(ALICES, BOB)["ordered"] is None
    order = ("freeze", "--user", ALICE, "--why", "mischief", "--yes")
    assert "only admins" in refused(site, BOB, *order)


def test_where_slurmdbd_tells_nothing_the_doctor_says_so_and_what_to_do(site: Site) -> None:
    sacctmgr(site, "add", "coordinator", "account=physics", f"names={BOB}")
    assert "1 coordinate" in read_anew(site)
    with site.parts_stopped("slurmdbd"):
        detail = read_anew(site)
        assert "sacctmgr" in detail, detail
        assert "PrivateData" in detail, detail
        # It holds for a quarter of an hour, so that slurmdbd may be upgraded.
        assert (ALICE, ALICES) in applications(site, BOB)
    assert "1 coordinate" in read_anew(site)

"""``io-autotune doctor`` finds what is wrong with an installation, and says what to do about it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from clusters import cluster_of_its_own
from devcluster import Variant, accounts, files, render
from devcluster.clock import clock_file
from harness import ALICE, ROOT, Json, Site, asked, await_true

WITHIN_SECONDS = "5"
"""For a job that is to get lost: others take two."""
OFF_SECONDS = 30


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster with a clock that jumps and much to be spoilt."""
    with cluster_of_its_own(request, "doctor", variant=Variant(clock=True)) as site:
        site.introduce_nodes()
        yield site


def examined(site: Site, *more: str, user: str = ROOT, healthy: bool = False) -> dict[str, Json]:
    """Return the checks of a doctor, by their names; what is not well says what to do."""
    done = site.tuner(user, "doctor", f"--spool-dir={site.paths.plugin_spool}", "--json", *more)
    assert (done.returncode == 0) is healthy, done.stdout + done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    for check in checks.values():
        assert (check["state"] == "ok") is ("fix" not in check), check
    return checks


def failed(check: Json, detail: str, fix: str) -> None:
    assert check["state"] == "failed", check
    assert detail in check["detail"], check
    assert fix in check["fix"], check


def test_a_job_is_followed_to_its_verdict_and_nothing_is_wrong(site: Site) -> None:
    job = examined(site, "--job", user=ALICE, healthy=True)["test job"]
    assert "was started, reported and judged" in job["detail"]
    checks = examined(site, healthy=True)
    assert {check["state"] for check in checks.values()} == {"ok"}, checks
    for name in (
        *("configuration", "versions", "clock", "schema", "database", "database clock"),
        *("prolog and epilog", "nodes", "nodes' clocks", "nodes' spools", "plugin on nodes"),
        *("plugin", "plugin here and on nodes", "Slurm on nodes", "spool"),
    ):
        assert name in checks, f"{name} is not looked at: {sorted(checks)}"
    assert checks["nodes"]["detail"].startswith("2 nodes"), checks["nodes"]


@contextmanager
def plugstack(site: Site, old: str, new: str) -> Iterator[None]:
    conf = site.paths.plugstack_conf
    before = conf.read_text(encoding="utf-8")
    assert old in before
    conf.write_text(before.replace(old, new), encoding="utf-8")
    try:
        yield
    finally:
        conf.write_text(before, encoding="utf-8")


def test_other_arguments_on_the_login_host_and_on_one_of_the_nodes(site: Site) -> None:
    spool = f"spool_dir={site.paths.plugin_spool}"
    with plugstack(site, spool, f"{spool} submit_deadline_ms=299"):
        failed(
            examined(site)["plugin here and on nodes"],
            "here has submit_deadline_ms=299; n1, n2, of 2 that differ, has nothing more",
            "the same line in plugstack.conf on all hosts",
        )
        site.run("true", asked("doctor"), "--nodelist=n2")
        failed(
            examined(site)["plugin on nodes"],
            "other arguments than on 1 node: n",
            "the same line in plugstack.conf on all hosts",
        )
    site.introduce_nodes()
    assert examined(site, healthy=True)["plugin on nodes"]["state"] == "ok"


def test_a_host_without_the_plugin_loses_the_job_at_its_submission(site: Site) -> None:
    with plugstack(site, "optional ", "# optional "):
        check = examined(site, "--job", user=ALICE)["test job"]
    failed(check, "lost at its submission", "has not loaded the plugin")


def test_a_service_that_nodes_do_not_reach_loses_the_job_at_its_prolog(site: Site) -> None:
    path = site.paths.client_toml
    before = path.read_text(encoding="utf-8")
    users = [f"unix:{site.paths.service_socket}"]
    nowhere = [f"unix:{site.paths.run}/nowhere.sock"]
    files.write(path, render.asking(before, users, nowhere), mode=0o644)
    try:
        check = examined(site, "--job", "--within", WITHIN_SECONDS, user=ALICE)["test job"]
    finally:
        files.write(path, before, mode=0o644)
    failed(check, "lost at its prolog", "does `io-autotune doctor` reach the service")
    await_true("the report to be delivered", lambda: not site.undelivered())
    site.await_asked_again()


def test_a_clock_that_is_off_is_noticed_from_everywhere(site: Site) -> None:
    files.write(clock_file(site.paths), f"+{OFF_SECONDS}\n", mode=0o644)
    try:
        await_true(
            "the service's clock to jump",
            lambda: "fix" in examined_anyhow(site)["clock"],
        )
        site.run("true", asked("doctor"), "--nodelist=n1")
        checks = examined(site)
    finally:
        files.write(clock_file(site.paths), "+0\n", mode=0o644)
    failed(checks["clock"], " s off the service's", "chronyc")
    failed(checks["nodes' clocks"], "n1 (-", "chronyc")
    assert checks["database clock"]["state"] == "ok", "it jumps with the service's"
    await_true(
        "the service's clock to be right", lambda: "fix" not in examined_anyhow(site)["clock"]
    )
    site.introduce_nodes()
    examined(site, healthy=True)


def examined_anyhow(site: Site) -> dict[str, Json]:
    """Return the checks, whether one has failed or not."""
    checks = json.loads(site.tuner(ROOT, "doctor", "--json").stdout)["checks"]
    return {check["name"]: check for check in checks}


def test_a_spool_that_is_not_roots_is_named_by_its_node(site: Site) -> None:
    spool = site.paths.plugin_spool
    shutil.chown(spool, accounts.find(ALICE).uid)
    try:
        job = site.sbatch("true", asked("doctor"), "--nodelist=n1")
        site.started(job)
        check = examined(site)["nodes' spools"]
        site.ended(job)
    finally:
        shutil.chown(spool, "root")
    failed(check, "n1: ", "root's, mode 0700")
    # Its epilog found no spool to report into; the timer would report it once it is overdue.
    site.remove_job_directories()
    site.introduce_nodes()
    examined(site, healthy=True)

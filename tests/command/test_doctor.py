"""What doctor says of the way from here to the service, and by which exit status."""

from __future__ import annotations

import json
import os
from pathlib import Path

from command.jobs import Json
from command.service import ALICE, ROOT, Service


def checks(served: Service, user: str, *arguments: str) -> tuple[int, dict[str, Json]]:
    """Return doctor's exit status and what it finds, by the names of its checks."""
    done = served.tuner(user, *arguments, "--json")
    return done.returncode, {one["name"]: one for one in json.loads(done.stdout)["checks"]}


def test_what_is_well_ends_with_no_failure_and_admins_are_told_more(served: Service) -> None:
    status, of_user = checks(served, ALICE, "doctor")
    assert status == 0, of_user
    assert "for admins only" in of_user["service"]["detail"]
    assert "caches" not in of_user
    status, of_admin = checks(served, ROOT, "doctor")
    assert {"configuration", "munge", "clock", "caches", "runs in flight"} <= set(of_admin)
    assert "outcome source squeue" in of_admin
    failed = {name for name, check in of_admin.items() if check["state"] == "failed"}
    assert (status, failed) == (0, set())
    for check in (*of_user.values(), *of_admin.values()):
        assert (check["state"] == "ok") == ("fix" not in check), check


def test_what_is_not_well_ends_with_a_failure_and_says_what_to_do(
    served: Service, shared: Path
) -> None:
    silent = shared / "silent.toml"
    silent.write_text(served.asking(shared / "nobody.sock"), encoding="utf-8")
    status, found = checks(served, ALICE, "--config", str(silent), "doctor")
    endpoint = found[f"endpoint unix:{shared}/nobody.sock"]
    assert (status, endpoint["state"]) == (1, "failed")
    assert "start io-autotuned there" in endpoint["fix"]
    shown = served.tuner(ALICE, "--config", str(silent), "doctor")
    assert (shown.returncode, endpoint["fix"] in shown.stdout) == (1, True), shown
    status, found = checks(served, ALICE, "--config", str(shared / "none.toml"), "doctor")
    assert (status, found["configuration"]["state"]) == (1, "failed")


def test_a_service_whose_answers_are_not_its_users_is_not_believed(
    served: Service, shared: Path
) -> None:
    other = shared / "other.toml"
    text = served.client_toml.read_text(encoding="utf-8")
    other.write_text(text.replace('"postgres"', '"daemon"'), encoding="utf-8")
    status, found = checks(served, ALICE, "--config", str(other), "doctor")
    assert (status, found["munge"]["state"]) == (1, "failed"), found
    done = served.tuner(ALICE, "--config", str(other), "status")
    assert (done.returncode, done.stdout) == (4, ""), done


def test_reports_that_nobody_takes_are_found(served: Service, shared: Path) -> None:
    spool = shared / "spool"
    spool.mkdir()
    doctor = ("doctor", "--spool-dir", str(spool))
    status, found = checks(served, ROOT, *doctor)
    assert (status, found["spool"]["state"]) == (0, "ok")
    stuck = spool / "1.json"
    stuck.touch()
    os.utime(stuck, (0, 0))
    status, found = checks(served, ROOT, *doctor)
    assert (status, found["spool"]["state"]) == (0, "warning"), "a warning is no failure"
    assert "io-autotune-flush.timer" in found["spool"]["fix"]
    stuck.rename(spool / "1.refused")
    status, found = checks(served, ROOT, *doctor)
    assert (status, found["spool"]["state"]) == (1, "failed")
    assert "has refused 1.refused for good" in found["spool"]["detail"]


def test_a_cache_that_its_judgements_do_not_add_up_to_is_found(served: Service) -> None:
    study = served.run(ALICE, "doctored")["study_id"]
    changed = f"from epochs where epochs.id = tested.epoch_id and epochs.study_id = {study}"
    served.sql(f"update tested set mean = mean * 2 {changed}")
    try:
        status, found = checks(served, ROOT, "doctor")
        assert (status, found["caches"]["state"]) == (1, "failed")
        assert f"study {study}" in found["caches"]["detail"]
    finally:
        served.sql(f"update tested set mean = mean / 2 {changed}")
    assert checks(served, ROOT, "doctor")[1]["caches"]["state"] == "ok"

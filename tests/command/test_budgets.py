"""What the command says of a study whose user has spent the budget for exploring."""

from __future__ import annotations

from command.jobs import End
from command.place import Place
from command.service import ALICE, ROOT, service

APP = "budgets"


def test_a_user_sees_what_is_spent_and_what_that_means_for_the_next_run(where: Place) -> None:
    budgets = {"exploring": {"node_hours.site": 1000.0, "node_hours.user": 0.008}}
    with service(where, "budgets", more=budgets) as bounded:
        for run in bounded.tune(ALICE, APP, lambda _: End(10.0)):
            if run["reason"].startswith("best known"):
                break
        assert "for exploring today, and this run may take" in run["reason"], run
        status = " ".join(bounded.tuner(ALICE, "status", APP).stdout.split())
        assert "of 0.008 node-hours for exploring today" in status, status
        assert "it explores again tomorrow" in status, status
        assert "of 0.008 node-hours are spent today; no room for a run that explores" in status
        assert "exploring, site: 1000 node-hours a day" in status, "what others spend is not said"
        site = " ".join(bounded.tuner(ROOT, "status", APP).stdout.split())
        assert "of 1000 node-hours are spent today" in site, site
        explained = bounded.tuner(ALICE, "explain", str(run["job_id"]), "--details").stdout
        assert "[exploring_budget]" in explained, explained

"""The report says of every study what ``io-autotune status`` says, whatever its jobs go through."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import nightly
import pytest
from devcluster import Variant, files, render
from devcluster.users import SERVICE_USER
from harness import COMPLETE, ROOT, Json, Site, await_true
from services import service_beside

DATABASE = "agreement"
SEED = 3
STUDIES = 24 if COMPLETE else 16
LIVES = 36
"""Of each study, a round."""
ROUNDS = 2
CLIENTS = 8
PATIENT_MS = 60_000
JUDGED_SECONDS = 60.0
STEERED = STUDIES // 8
"""So many studies are accepted, pinned and reset each, between two rounds."""
STUDY_SETTINGS = {
    "baseline_runs": 2,
    "design_points": 4,
    "budget": 8,
    "control_every": 2,
    "control_every_resolved": 2,
    "drift.rest": 10,
    "drift.false_alarms": 10.0,
    "drift.budget": 4,
}
"""So that studies settle, and drift is believed, within a few dozen runs."""


@dataclass(frozen=True)
class Service:
    """An io-autotuned with its own database; outcomes come from a collector."""

    site: Site
    config: Path
    """Of its clients."""

    def ask(self, *arguments: str) -> Json:
        """Run the ``io-autotune`` command as its admin."""
        return self.site.ask(ROOT, f"--config={self.config}", *arguments)

    def live(self, round_: int) -> None:
        """Let jobs of all studies begin and end; wait until every study is assessed."""
        lives = STUDIES * LIVES
        argv = [
            "lives",
            f"--config={self.config}",
            f"--cluster={self.site.cluster_name}",
            f"--seed={SEED}",
            f"--lives={lives}",
            f"--studies={STUDIES}",
            f"--clients={CLIENTS}",
            f"--first-job-id={1 + round_ * lives}",
            f"--deadline-ms={PATIENT_MS}",
            "--failing=60",
            "--told",
            "--mixed=25",
            "--overriding=20",
            "--drifting=50",
            f"--drifting-after={LIVES}",
        ]
        summary = json.loads(self.site.cluster.run_as(ROOT, argv, timeout=120.0).stdout)
        assert not summary["failures"], "some lives failed"
        await_true("every study to be assessed", self.is_quiet, JUDGED_SECONDS)

    def is_quiet(self) -> bool:
        """Tell whether every verdict is given, and every epoch assessed, one without runs too."""
        query = (
            "select (select count(*) from runs"
            " where state = 'in_flight' or changes > judged_changes)"
            " + (select count(*) from epochs where evidence is null)"
        )
        return self.site.sql(query, DATABASE) == [["0"]]


pytestmark = nightly.needs_report


@pytest.fixture
def service(site: Site) -> Iterator[Service]:
    """Start the service."""
    record = replace(site.record(), study_settings=STUDY_SETTINGS, variant=Variant(jobcomp=True))
    text = render.service_toml(site.paths, record)
    text = text.replace(f"/{render.DATABASE}?", f"/{DATABASE}?")
    text = re.sub(r"(?m)^sweep_seconds = .*$", "sweep_seconds = 0.5", text)
    # A run whose outcome comes late is judged before, and again after.
    text = text.replace("[reconcile]\n", "[reconcile]\noutcome_patience_seconds = 0\n")
    # As on a site with one role: the service makes the schema.
    site.sql(f'create database {DATABASE} owner "{SERVICE_USER}"')
    config = site.paths.etc / f"{DATABASE}-client.toml"
    with service_beside(site, DATABASE, text) as unix:
        clients = site.paths.client_toml.read_text(encoding="utf-8")
        clients = render.asking(clients, [f"unix:{unix}"])
        files.write(config, clients, mode=0o644)
        yield Service(site, config)
    site.sql(f"drop database {DATABASE}")


def test_gains_and_findings_of_the_report_are_those_that_status_shows(
    service: Service, tmp_path: Path
) -> None:
    """Jobs end well, fail, run out of memory, are cut short; outcomes come early or late.

    Applications do two works in turn, override what they are given, get slower under what was
    tuned. After each round some are accepted, pinned and reset. Drift is seen within 72 lives of a
    study because its ``rest`` and the studies' budgets are small, and it may raise false alarms.
    """
    random = Random(SEED)
    kinds, verdicts = set(), set()
    for round_ in range(ROUNDS):
        service.live(round_)
        steer(service, random)
        served = service.ask("status")
        assert len(served) == STUDIES
        night = nightly.report(service.site, tmp_path, DATABASE)
        compare(night.document, served)
        kinds |= {each["kind"] for study in served for each in study["assessment"]["findings"]}
        verdicts |= {study["assessment"]["gain"]["verdict"] for study in served}
    # What never occurs is never compared.
    assert kinds >= {"mixed", "quarantine", "drift", "ineffective"}
    assert verdicts >= {"faster", "not_yet"}


def steer(service: Service, random: Random) -> None:
    """Accept, pin and reset studies at random."""
    chosen = [f"load-{number}" for number in random.sample(range(STUDIES), 3 * STEERED)]
    for study in chosen[:STEERED]:
        service.ask("accept", study, "--why", "one application's")
    for study in chosen[STEERED : 2 * STEERED]:
        service.ask("pin", study, "cb_nodes=2", "--why", "it is to be known")
    for study in chosen[2 * STEERED :]:
        service.ask("reset", study, "--why", "other work")


def compare(document: Json, served: list[Json]) -> None:
    """Check what the report shows of every study against what the service answers."""
    assessed = {study["study_id"]: study["assessment"] for study in served}
    objectives = {study["study_id"]: study["objective"] for study in served}
    compared = sum(each["gain"]["control_runs"] > 0 for each in assessed.values())
    assert {study["study_id"] for study in document["studies"]} == assessed.keys()
    for study in document["studies"]:
        study_id = study["study_id"]
        assessment = assessed[study_id]
        gain = {**assessment["gain"], "objective": objectives[study_id]}
        assert study["cleaned"] == assessment.get("cleaned")
        same_gain(study["gain"], gain, document["false_discovery_rate"], compared)
        shown = [each for each in document["findings"] if each["study_id"] == study_id]
        same_findings(shown, assessment["findings"])


def same_gain(gain: Json, served: Json, rate: float, compared: int) -> None:
    """Check a gain; the report may leave one unclaimed: of many studies some look so by chance."""
    if gain["verdict"] != served["verdict"]:
        assert served["verdict"] in ("faster", "slower")
        assert (gain["verdict"], served["evidence"] * rate < compared) == ("not_yet", True)
        assert "looked at together" in gain["reason"]
        served = {**served, "verdict": gain["verdict"], "reason": gain["reason"]}
    assert gain == served


def same_findings(shown: list[Json], served: list[Json]) -> None:
    """Check the findings of a study; the report has more kinds of its own."""
    kinds = ("mixed", "quarantine", "drift", "ineffective")
    found = [(each["kind"], each["what"], each["do"]) for each in shown if each["kind"] in kinds]
    expected = []
    for each in served:
        about = f"{key(each['parametrization'])}: " if "parametrization" in each else ""
        expected.append((each["kind"], about + each["what"], each["do"]))
    assert sorted(found) == sorted(expected)


def key(parametrization: Json) -> str:
    """Return a parametrization as the engine and the report write it."""
    return json.dumps(parametrization, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

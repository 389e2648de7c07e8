"""The report says of every study what ``io-autotune status`` says, whatever its jobs go through.

The service's own tests play the jobs, and have the report made after each round.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

Json = Any
ROOT = Path(__file__).parents[3]
PLAYED = "tests::report::agreement::lives_of_all_kinds_are_judged_and_their_studies_assessed"
STUDIES = 16
ROUNDS = 2


@pytest.fixture
def rounds(tmp_path: Path) -> list[Path]:
    """Let the jobs live; return each round's directory."""
    day = datetime.now().astimezone().date()
    argv = [sys.executable, "-m", "io_autotune_report.command", f"--first={day}", "--processes=1"]
    report = tmp_path / "report"
    where = '--database="$1" --state="$2/state" --nights="$2/nights"'
    report.write_text(f"#!/bin/sh\nexec {shlex.join(argv)} {where}\n")
    report.chmod(0o755)
    told = {"AGREEMENT_ROUNDS": str(tmp_path), "AGREEMENT_REPORT": str(report)}
    # As `make test-programs` has built it, or it is built anew.
    built = ["--release", "--locked", "--workspace", "--config=tests/cargo-test.toml"]
    subprocess.run(
        ["cargo", "test", *built, "--lib", "--", "--exact", PLAYED],
        cwd=ROOT,
        env={**os.environ, **told, "PYTHONPATH": str(ROOT / "analysis" / "report")},
        check=True,
    )
    return [tmp_path / f"round-{number}" for number in range(ROUNDS)]


@pytest.mark.store
def test_gains_and_findings_of_the_report_are_those_that_status_shows(rounds: list[Path]) -> None:
    """Jobs end well, fail, run out of memory, are cut short; outcomes come early or late.

    Applications do two works in turn, override what they are given, get slower under what was
    tuned. After each round some are accepted, pinned and reset. Drift is seen within 72 lives of a
    study because its ``rest`` and the studies' budgets are small, and it may raise false alarms.
    """
    kinds, verdicts = set(), set()
    for directory in rounds:
        served = json.loads((directory / "served.json").read_bytes())
        assert len(served) == STUDIES
        (report,) = directory.glob("nights/2*/report.json")
        compare(json.loads(report.read_bytes()), served)
        kinds |= {each["kind"] for study in served for each in study["assessment"]["findings"]}
        verdicts |= {study["assessment"]["gain"]["verdict"] for study in served}
    # What never occurs is never compared.
    assert kinds >= {"mixed", "quarantine", "drift", "ineffective"}
    assert verdicts >= {"faster", "not_yet"}


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
        # The page has shares of the default's time, and no times.
        gain.pop("compared", None)
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

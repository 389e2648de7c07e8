"""The report says of every study what the service says, whatever has happened to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psycopg
import pytest
from generated_site import Shape, assess, make, write
from generated_site.plan import DAY
from io_autotune_report import command
from io_autotune_report.document import Finding, Report, Study
from io_autotune_report.load.parametrizations import key

pytestmark = pytest.mark.store

SPANS = (20, 41, 60)
"""Days after which the service is asked, and a report is made."""


def served(connection: psycopg.Connection) -> dict[int, dict[str, Any]]:
    """What `status` shows of each study that has a verdict: the service answers what it keeps."""
    rows = connection.execute("select id, assessment from studies where assessment is not null")
    return dict(rows.fetchall())


def report(url: str, directory: Path, day: str) -> Report:
    argv = ["--database", url, "--state", str(directory / "state"), "--processes", "1"]
    argv += ["--nights", str(directory / "nights"), "--first", day]
    assert command.main(argv) == 0
    text = (directory / "nights" / day / "report.json").read_bytes()
    return msgspec.json.decode(text, type=Report)


def same_gain(study: Study, said: dict[str, Any], rate: float, compared: int) -> None:
    gain = msgspec.to_builtins(study.gain)
    if gain["verdict"] != said["verdict"]:
        # Of many studies some look so by chance: what the report alone can say.
        assert said["verdict"] in ("faster", "slower")
        assert (gain["verdict"], said["evidence"] * rate < compared) == ("not_yet", True)
        assert "looked at together" in gain["reason"]
        said = {**said, "verdict": gain["verdict"], "reason": gain["reason"]}
    assert gain == said


def same_findings(shown: list[Finding], said: list[dict[str, Any]]) -> None:
    kinds = ("mixed", "quarantine", "drift", "ineffective")
    found = [(each.kind, each.what, each.do) for each in shown if each.kind in kinds]
    expected = []
    for each in said:
        about = f"{key(each['parametrization'])}: " if "parametrization" in each else ""
        expected.append((each["kind"], about + each["what"], each["do"]))
    assert sorted(found) == sorted(expected)


def test_gains_and_findings_are_those_that_status_shows(
    database: str, other_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that end well, fail, run out of memory, are cut short; revisions, resets, pins.

    Between the nights random studies are accepted as one application's.
    """
    monkeypatch.setitem(os.environ, "TZ", "UTC")
    kinds, verdicts = set(), set()
    for seed, url in ((1, database), (2, other_database)):
        for said, shown in lived(url, tmp_path / str(seed), seed):
            same_findings(shown, said["findings"])
            kinds |= {each["kind"] for each in said["findings"]}
            verdicts.add(said["gain"]["verdict"])
    # What is never said is never compared.
    assert {"quarantine", "mixed"} <= kinds
    assert {"faster", "not_yet"} <= verdicts


def lived(url: str, directory: Path, seed: int) -> Iterator[tuple[dict[str, Any], list[Finding]]]:
    """At each night each study, what the service says of it, and the findings that are listed."""
    random = np.random.default_rng(seed)
    shape = Shape(seed=seed, applications=8, studies=40, runs=4000, days=SPANS[-1])
    year = make(shape)
    after = float("-inf")
    with psycopg.connect(url, autocommit=True) as connection:
        for days in SPANS:
            write(connection, year, after, days * DAY)
            after = days * DAY
            some = random.choice(len(year.studies), 8, replace=False) + 1
            connection.execute(
                "update studies set mixed_accepted_at = now(), mixed_accepted_by = 0,"
                " assessment = null where id = any(%s)",
                [some.tolist()],
            )
            connection.execute(
                "update epochs set evidence = null where study_id = any(%s)", [some.tolist()]
            )
            assess(url)
            known = served(connection)
            told = report(url, directory, (shape.first + timedelta(days=days - 1)).isoformat())
            compared = sum(each["gain"]["control_runs"] > 0 for each in known.values())
            for study in told.studies:
                said = known[study.study_id]
                same_gain(study, said["gain"], told.false_discovery_rate, compared)
                yield said, [each for each in told.findings if each.study_id == study.study_id]

"""Writes docs/measurements/install.md from what the tests saw on each suite.

What each test gave last is kept beside the page, in install.json: a run of some leaves the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

import pytest
from packages.rooms import TREE
from packages.suites import SUITES

PAGE = TREE / "docs/measurements/install.md"
KEPT = PAGE.with_suffix(".json")
HEAD = """# A site that installs packages

`make test-install` writes this page: on hosts of each suite, booted by its systemd, with its Slurm,
munge, PostgreSQL and Prometheus, a test executes the blocks of [install](../install.md),
[packages](../packages.md) and [monitoring](../monitoring.md). Four hosts are one site: the
service's with slurmctld and the database, a submit host, two compute nodes.

- Control groups limit nothing there. Hosts share a kernel, a clock and users' homes.
- Outcomes come from `squeue`; slurmdbd, the collector and auth/slurm are not installed.
- The upgrade is from the newest release that has packages and an older schema; while there is none,
  from the newest such commit.
- The installation by hand is laid by the guide's table, with the bytes of the packages.
- Alerts fire after a second, and not after minutes.
"""


@dataclass(frozen=True)
class Seen:
    """What a test saw on a suite."""

    what: str
    """What it shows."""
    outcome: str
    """pytest's: passed, failed, skipped; or not run."""
    seconds: float
    at: str
    """The day."""
    facts: Mapping[str, str] = field(default_factory=dict)


_seen: dict[str, dict[str, Seen]] = {}


def keep(suite: str, item: pytest.Item, report: pytest.TestReport) -> None:
    """Keep what a test gave on a suite; a part that failed before it counts as the test."""
    facts: dict[str, str] = {}
    for name, value in report.user_properties:
        facts[name] = f"{facts[name]}, {value}" if name in facts else str(value)
    assert isinstance(item, pytest.Function)
    doc = item.function.__doc__
    assert doc, f"{item.name} does not say what it shows"
    today = datetime.now(UTC).date().isoformat()
    seen = Seen(doc.splitlines()[0], report.outcome, round(report.duration, 1), today, facts)
    _seen.setdefault(suite, {})[item.originalname] = seen


def write() -> None:
    """Write the page anew, with what was seen now and what was kept."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for suite, tests in _seen.items():
        kept.setdefault(suite, {}).update({test: asdict(seen) for test, seen in tests.items()})
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    known = {test: seen["what"] for tests in kept.values() for test, seen in tests.items()}
    rows = {
        suite: [
            Seen(**tests[test]) if test in tests else Seen(what, "not run", 0.0, "")
            for test, what in sorted(known.items())
        ]
        for suite, tests in kept.items()
    }
    PAGE.write_text(text(rows), encoding="utf-8")


def text(rows: Mapping[str, Sequence[Seen]]) -> str:
    """Return the page of what each suite gave."""
    parts = [HEAD]
    for suite in SUITES:
        seen = rows.get(suite.name)
        parts.append(f"\n## Debian {suite.release}, {suite.name}\n\n")
        if not seen:
            parts.append("Not run.\n")
            continue
        parts.append(f"On {max(each.at for each in seen)}.\n\n")
        parts.append("| what | outcome | seconds | seen |\n| --- | --- | --- | --- |\n")
        for each in seen:
            facts = "; ".join(f"{name}: {value}" for name, value in each.facts.items())
            parts.append(f"| {each.what} | {each.outcome} | {each.seconds:.0f} | {facts} |\n")
    return "".join(parts)

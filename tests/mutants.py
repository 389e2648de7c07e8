"""The page of mutation testing, from what cargo-mutants wrote.

python3 tests/mutants.py OUTCOMES PAGE
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

KINDS = {
    "CaughtMutant": "seen by a test",
    "MissedMutant": "seen by none",
    "Timeout": "a test did not end",
    "Unviable": "not compiled",
}
"""What can become of a change, in cargo-mutants' words and in ours."""


def page(outcomes: list[dict[str, Any]], date: str, commit: str) -> str:
    """Return the page of one run."""
    tried = [one for one in outcomes if one["scenario"] != "Baseline"]
    counts = Counter(one["summary"] for one in tried)
    missed = sorted(_name(one) for one in tried if one["summary"] == "MissedMutant")
    rows = [f"| {words} | {counts[kind]} |" for kind, words in KINDS.items()]
    return "\n".join(
        [
            "# Changes of the service that no test sees",
            "",
            f"`make test-mutants` wrote it for {commit} of {date}. It changes one place at a",
            "time of the service's decisions, access, sweeps and merging (`.cargo/mutants.toml`",
            "names the files), and runs the service's tests. A night tries a fourteenth of the",
            "changes, so that a fortnight tries all.",
            "",
            "| what became of a change | changes |",
            "| --- | ---: |",
            *rows,
            "",
            "## Seen by none",
            "",
            *([f"- `{name}`" for name in missed] or ["None."]),
            "",
        ]
    )


def _name(outcome: dict[str, Any]) -> str:
    name: str = outcome["scenario"]["Mutant"]["name"]
    return name.replace("`", "'")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def main(outcomes: Path, written: Path) -> None:
    """Write the page."""
    found = json.loads(outcomes.read_text(encoding="utf-8"))["outcomes"]
    commit = _git("log", "-1", "--format=%h").strip()
    date = _git("log", "-1", "--format=%cs").strip()
    written.write_text(page(found, date, commit), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

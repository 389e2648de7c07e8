"""What workflows and CONTRIBUTING.md call is there; a decision record is whole and in the index."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = ROOT / "docs" / "decisions"


def targets() -> set[str]:
    """Return the Makefile's targets."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):(?!=)", text, re.MULTILINE))


def called(path: Path) -> set[str]:
    """Return the targets that a file says to make, in code and in `run:`."""
    text = path.read_text(encoding="utf-8")
    return set(re.findall(r"(?:`|run: |exec )make ([a-z-]+)", text))


def test_each_target_that_is_called_is_there() -> None:
    files = [*ROOT.glob(".github/**/*.yml"), ROOT / ".ci" / "run", ROOT / "CONTRIBUTING.md"]
    missing = {
        f"{path.relative_to(ROOT)}: make {target}"
        for path in files
        for target in called(path) - targets()
    }
    assert not missing
    assert {"test", "advisories"} <= set().union(*map(called, files))


def test_each_decision_says_why_and_what_follows() -> None:
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    records = sorted(DECISIONS.glob("[0-9]*.md"))
    assert records
    numbers = [int(record.name[:4]) for record in records]
    assert numbers == list(range(len(records)))
    for record in records:
        lines = record.read_text(encoding="utf-8").splitlines()
        headings = [line for line in lines if line.startswith("## ")]
        assert headings == ["## Context", "## Decision", "## Consequences"], record.name
        assert all(len(line) <= 100 for line in lines), record.name
        title = lines[0].removeprefix("# ")
        assert f"[{title}]({record.name})" in index

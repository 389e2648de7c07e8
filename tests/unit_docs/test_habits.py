"""What workflows and CONTRIBUTING.md call is there; a decision record is whole and listed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from unit_docs.targets import called, there

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = ROOT / "docs" / "decisions"


CODE = r"`|``|run: |exec |^ {4}"
"""What stands before a call."""
HISTORY = re.compile(r"CHANGELOG\.md|docs/decisions/")
"""Pages about what was."""


def asked_for(path: Path) -> set[str]:
    """Return the targets that a file says to make, in code and in `run:`."""
    return called(path.read_text(encoding="utf-8"), CODE)


def test_each_target_that_is_called_is_there() -> None:
    workflows = [*ROOT.glob(".github/**/*.yml"), ROOT / ".ci" / "run"]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md", "analysis/*.py"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    pages = [ROOT / name for name in listed.stdout.splitlines() if not HISTORY.match(name)]
    files = [path for path in (*workflows, *pages) if path.exists()]
    missing = {
        f"{path.relative_to(ROOT)}: make {target}"
        for path in files
        for target in asked_for(path) - there()
    }
    assert not missing
    asked = set().union(*map(asked_for, files))
    assert {"test", "advisories", "-C analysis test", "-C analysis papers-report"} <= asked


def test_a_call_is_read_over_the_end_of_a_line() -> None:
    text = "`make -C analysis\nsettled` and `make test`; make lint\n    make -C analysis drift"
    assert called(text, CODE) == {"-C analysis settled", "test", "-C analysis drift"}


def test_each_decision_says_what_forced_it_and_what_we_do() -> None:
    index = (DECISIONS.parent / "SUMMARY.md").read_text(encoding="utf-8")
    records = sorted(DECISIONS.glob("[0-9]*.md"))
    assert records
    numbers = [record.name[:4] for record in records]
    assert numbers == sorted(set(numbers)), "each number is given once"
    for number, record in zip(numbers, records, strict=True):
        head, *paragraphs = record.read_text(encoding="utf-8").strip().split("\n\n")
        assert len(paragraphs) >= 2, f"{record.name}: what forced it, then what we do and why"
        title = head.removeprefix("# ")
        assert f"[{number}: {title}](decisions/{record.name})" in index

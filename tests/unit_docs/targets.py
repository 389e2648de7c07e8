"""What `make` and `make -C analysis` can be asked for, and what a text asks them for."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CALL = r"make\s+(-C\s+analysis\s+)?([a-z][a-z-]+)"
"""A call in a text, which may go on in the next line."""


def targets(makefile: Path) -> set[str]:
    """Return a Makefile's targets."""
    text = makefile.read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):(?!=)", text, re.MULTILINE))


def there() -> set[str]:
    """Return all calls that are answered, as `called` has them."""
    research = {f"-C analysis {target}" for target in targets(ROOT / "analysis" / "Makefile")}
    return targets(ROOT / "Makefile") | research


def called(text: str, before: str) -> set[str]:
    """Return what a text says to make, where one of these stands before the word."""
    calls = re.findall(rf"(?:{before}){CALL}", text, re.MULTILINE)
    return {f"-C analysis {target}" if where else target for where, target in calls}

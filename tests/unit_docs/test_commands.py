"""No text tells a command in a spelling that is only taken for a while yet."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPELLING = ROOT / "tuner-service" / "cli" / "src" / "spelling.rs"
HISTORY = re.compile(r"^CHANGELOG\.md:|^docs/(decisions|measurements)/")
"""Pages about what was."""


def moved() -> list[str]:
    table = SPELLING.read_text(encoding="utf-8").split("];")[0]
    return re.findall(r'^    \("([a-z-]+)", &\[', table, re.MULTILINE)


def test_each_command_is_told_in_todays_spelling() -> None:
    old = moved()
    assert {"unpin", "orders", "man"} <= set(old)
    pattern = rf"io-autotune (?:-M \w+ |--config \S+ )?(?:{'|'.join(old)})\b(?!-)"
    found = subprocess.run(
        ["git", "grep", "--untracked", "-n", "-I", "-P", pattern],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    lines = [line for line in found.stdout.splitlines() if not HISTORY.match(line)]
    told = [line for line in lines if not line.startswith(str(SPELLING.relative_to(ROOT)))]
    assert not told, "\n".join(told)
    assert lines, "the old spellings are found where they are read"

"""What the workflows run from elsewhere is named by what it is, and not by a tag that may move."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".github").rglob("*.yml"))


def _values(key: str) -> list[str]:
    found = []
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        found += re.findall(rf"^\s*(?:- )?{key}: (\S+)", text, flags=re.MULTILINE)
    return found


def test_every_action_is_named_by_its_commit() -> None:
    """An action's tag can be moved to other code; its commit cannot."""
    actions = [action for action in _values("uses") if not action.startswith("./")]
    assert len(actions) > 4
    assert [a for a in actions if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", a)] == []


def test_every_image_is_named_by_its_digest() -> None:
    """An image's tag is another image tomorrow."""
    images = _values("image")
    assert len(images) > 2
    assert [i for i in images if not re.fullmatch(r"[\w./-]+:\w+@sha256:[0-9a-f]{64}", i)] == []


def test_nothing_that_is_downloaded_is_run_unseen() -> None:
    """What comes by the network is checked before a shell runs it."""
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*(?:\\\n\s*)?(?:ba)?sh\b", text), path
        assert len(re.findall(r"\bcurl -", text)) <= text.count("sha256sum --check"), path

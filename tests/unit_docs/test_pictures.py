"""The picture of a gain is of the worked example, and is told alike where it is shown."""

from __future__ import annotations

from pathlib import Path

import gain_picture

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = gain_picture.read(gain_picture.EXAMPLE.read_text("utf-8"))


def test_the_picture_of_the_gain_is_of_the_worked_example() -> None:
    assert gain_picture.PICTURE.read_text("utf-8") == gain_picture.drawn(EXAMPLE), "make pictures"


def test_who_does_not_see_the_picture_reads_the_same_figures() -> None:
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        assert f"![{EXAMPLE.sentence()}](" in page.read_text("utf-8"), page

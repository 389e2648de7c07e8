"""The pictures of gains are of their pages, and are told alike where they are shown."""

from __future__ import annotations

from pathlib import Path

import field_picture
import gain_picture

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = gain_picture.read(gain_picture.EXAMPLE.read_text("utf-8"))


def test_the_picture_of_the_gain_is_of_the_worked_example() -> None:
    assert gain_picture.PICTURE.read_text("utf-8") == gain_picture.drawn(EXAMPLE), "make pictures"


def test_who_does_not_see_the_picture_reads_the_same_figures() -> None:
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        assert f"![{EXAMPLE.sentence()}](" in page.read_text("utf-8"), page


def test_the_picture_of_the_field_trial_is_of_its_page() -> None:
    applications = field_picture.read(field_picture.PAGE.read_text("utf-8"))
    assert field_picture.PICTURE.read_text("utf-8") == field_picture.drawn(applications), (
        "make pictures"
    )
    told = field_picture.sentence(applications)
    assert f"![{told}](" in (ROOT / "README.md").read_text("utf-8")

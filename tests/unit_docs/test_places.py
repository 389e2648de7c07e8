"""Where a newcomer finds things: questions, and the places that answer them.

Readers who had not seen the tree answered `places.tsv` by reading alone. The test keeps its answers
true when files move.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("places.tsv")


def places() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.parametrize("place", places(), ids=lambda place: place["answer"])
def test_each_question_has_a_place_that_answers_it(place: dict[str, str]) -> None:
    answer = ROOT / place["answer"]
    files = [answer] if answer.is_file() else sorted(answer.glob("**/*.rs"))
    assert files, f"{place['answer']} is gone"
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert place["has"] in text, f"{place['answer']} has no {place['has']!r}"

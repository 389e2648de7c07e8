"""The page of Ax's transfer learning beside ours."""

from typing import Any

from ax_transfer.life import LOOKS, Life
from ax_transfer.page import render


def _ours(pattern: str, recommended: float) -> dict[str, Any]:
    figures = ("recommended", "average", "harm")
    life = {figure: [recommended] * len(LOOKS) for figure in figures}
    learnt = {"learnt": [{"parametrization": {"a": 1}, "log_ratio": 0.0, "runs": 2.0}] * 7}
    return {
        "pattern": pattern,
        "held_out": pattern == "two",
        "others": [learnt],
        "from_nobody": [life],
        "from_others": [life, life],
        "unbounded": [life],
    }


def test_ratios_are_of_means_in_pairs_with_students_interval() -> None:
    ours = [_ours("one", 1.1), _ours("two", 1.1), _ours("three", 1.1)]
    recommended = {"one": 1.1, "two": 2.2, "three": 0.55}
    ax = {
        name: [Life([over] * len(LOOKS), [1.0] * len(LOOKS), [0.5] * len(LOOKS), 30.0)] * 4
        for name, over in recommended.items()
    }
    page = render(ours, ax, {"ax-platform": "1"})
    # Of ln 1, -ln 2 and ln 2: 0 +- 4.303 ln 2 / sqrt(3).
    ratio = "1.000 (0.179..5.595)"
    assert f"| ours, a site's study | {' | '.join([ratio] * len(LOOKS))} |" in page
    assert "| two | held out | Ax's transfer | 2.200 |" in page
    assert "7 points of each" in page
    assert "4 studies of each" in page
    assert "takes 30 s of a processor" in page

"""Figures as small as a word: an interval, a share, a run's mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from io_autotune_report.render.page import words
from io_autotune_report.render.page.figures.runs import MARKS
from io_autotune_report.render.page.svg import Drawing, Scale

if TYPE_CHECKING:
    from collections.abc import Iterable

    from markupsafe import Markup

    from io_autotune_report.document import Gain

_WIDTH, _HEIGHT = 92, 18
_WIDEST = 0.6
"""One wild study must not flatten the others."""


def domain(gains: Iterable[Gain]) -> tuple[float, float]:
    """The common scale of a table's intervals."""
    ends = [
        end
        for gain in gains
        for end in (gain.low, gain.high)
        if end is not None and words.known(end)
    ]
    low = max(-_WIDEST, min([0.0, *ends]))
    high = min(_WIDEST, max([0.0, *ends]))
    return (low, high) if high > low else (-0.1, 0.1)


def interval(gain: Gain, ends: tuple[float, float]) -> Markup | None:
    """A gain's interval, with a dot if it is claimed."""
    low, high = gain.low, gain.high
    if low is None or high is None or not (words.known(low) and words.known(high)):
        return None
    drawing = Drawing(_WIDTH, _HEIGHT)
    x = Scale(*ends, 5, _WIDTH - 5)
    drawing.line((x(0), 0), (x(0), _HEIGHT), "zero")
    css = gain.verdict if words.claims(gain) else "open"
    middle = _HEIGHT / 2
    drawing.add(
        "rect",
        x=x(low),
        y=middle - 2.5,
        width=max(2.0, x(high) - x(low)),
        height=5,
        rx=2,
        class_=f"range {css}",
    )
    if words.claims(gain) and gain.share is not None:
        drawing.add("circle", cx=x(gain.share), cy=middle, r=4, class_=f"dot {css}")
    return drawing.mini(words.less_or_more(low, high), "interval")


def share(number: float | None, label: str) -> Markup | None:
    """A share of one as a bar."""
    if number is None or not words.known(number):
        return None
    drawing = Drawing(64, 10)
    drawing.add("rect", x=0, y=0, width=64, height=10, class_="trough")
    drawing.add("rect", x=0, y=0, width=64 * min(max(number, 0.0), 1.0), height=10, class_="fill")
    return drawing.mini(f"{label}: {words.percent(number, 0)}", "share")


def mark(name: str) -> Markup:
    """A run's mark, for the legend."""
    drawing = Drawing(14, 14)
    drawing.add("path", d=MARKS[name].replace("m{x} {y}", "M7 7"), class_=f"mark {name}")
    return drawing.mini(f"mark of {name} runs", "legend-mark")

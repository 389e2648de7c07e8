"""Frame, grid and labels that the figures with two axes share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from io_autotune_report.render.page.svg import Drawing, Scale, decades, ticks

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 360
HEIGHT = 220
"""As wide as a phone: text is never scaled down."""
LEFT, RIGHT, TOP, BOTTOM = 50, 10, 24, 36

_DECADES_FROM = 12
"""Vertical axes whose ends are further apart are logarithmic."""


@dataclass(frozen=True)
class Axes:
    """A drawing with its two scales."""

    drawing: Drawing
    x: Scale
    y: Scale


def axes(
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    labels: tuple[str, str],
    say: Callable[[float], str],
    *,
    log: bool = False,
    tight: bool = False,
    height: int = HEIGHT,
    below: int = 0,
) -> Axes:
    """A frame and grid; ``say`` words the vertical ticks, and ``tight`` begins at the numbers.

    ``below`` leaves room between the grid and the horizontal labels.
    """
    drawing = Drawing(WIDTH, height + below)
    low, high = y_range
    log = log and low > 0 and high / low > _DECADES_FROM
    marks = decades(low, high) if log else ticks(low, high)
    if tight:
        marks = [mark for mark in marks if mark >= low]
    y = Scale(min(low, marks[0]) if tight else marks[0], marks[-1], height - BOTTOM, TOP, log=log)
    x = Scale(*x_range, LEFT + 4, WIDTH - RIGHT)
    for mark in marks:
        drawing.line((LEFT, y(mark)), (WIDTH - RIGHT, y(mark)), "grid")
        drawing.text(LEFT - 6, y(mark) + 4, say(mark), text_anchor="end")
    drawing.text(0, 12, labels[1], class_="axis")
    drawing.text(WIDTH - RIGHT, drawing.height - 4, labels[0], class_="axis", text_anchor="end")
    return Axes(drawing, x, y)


def number_marks(axes: Axes, marks: list[float], words: Callable[[float], str]) -> None:
    """Labels under the horizontal axis, the outer ones drawn inwards."""
    drawing = axes.drawing
    for mark in marks:
        if not axes.x.low <= mark <= axes.x.high:
            continue
        x = axes.x(mark)
        anchor = "end" if x > WIDTH - RIGHT - 20 else "middle"
        drawing.text(x, drawing.height - BOTTOM + 16, words(mark), text_anchor=anchor)

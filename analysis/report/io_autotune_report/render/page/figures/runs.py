"""A study's runs, one mark each."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from io_autotune_report.render.page import words
from io_autotune_report.render.page.figures.axes import BOTTOM, TOP, axes, number_marks
from io_autotune_report.render.page.svg import place, ticks

if TYPE_CHECKING:
    from markupsafe import Markup

    from io_autotune_report.document import RunPoint, Study

MARKS = {
    "default": "m{x} {y}m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
    "tuned": "m{x} {y}m0-4l4 4-4 4-4-4z",
    "exploring": "m{x} {y}m-2.6-2.6l5.2 5.2m0-5.2l-5.2 5.2",
}
"""Marks that are told apart without colour."""

_OUTLIER = "m{x} {y}m-6.5 0a6.5 6.5 0 1 0 13 0a6.5 6.5 0 1 0-13 0z"
_DEFAULT_ROLES = ("baseline", "control", "observe")


def kind(point: RunPoint) -> str:
    """Whether a run is the default's, tuned, or of before the choice."""
    if point.chosen:
        return "tuned"
    return "default" if point.role in _DEFAULT_ROLES else "exploring"


def runs(study: Study) -> Markup | None:
    """Elapsed by the runs' order; nothing where nothing was measured."""
    points = [point for point in study.points if words.known(point.elapsed) and point.elapsed > 0]
    if not points:
        return None
    ordinals = [point.ordinal for point in points]
    times = [point.elapsed for point in points]
    first, last = min(ordinals), max(ordinals)
    frame = axes(
        (first, max(last, first + 1)),
        (min(times), max(times)),
        ("run", "elapsed, seconds"),
        words.time,
        log=True,
    )
    number_marks(frame, [mark for mark in ticks(first, last) if mark == int(mark)], _whole)
    chosen = [point.ordinal for point in points if point.chosen]
    if chosen and min(chosen) > first:
        x = frame.x(min(chosen) - 0.5)
        frame.drawing.line((x, TOP), (x, frame.drawing.height - BOTTOM), "since")
        frame.drawing.text(
            min(x, frame.drawing.width - 150),
            frame.drawing.height - 4,
            f"chosen from run {words.count(min(chosen))}",
        )
    for name, shape in {"exploring": "", "default": "", "tuned": "", "outlier": ""}.items():
        marks = shape + "".join(
            (_OUTLIER if name == "outlier" else MARKS[name]).replace(
                "m{x} {y}", f"M{place(frame.x(point.ordinal))} {place(frame.y(point.elapsed))}"
            )
            for point in points
            if (point.outlier if name == "outlier" else kind(point) == name)
        )
        if marks:
            frame.drawing.add("path", d=marks, class_=f"mark {name}")
    return frame.drawing.figure(
        f"runs-{study.study_id:d}", "Runs, default against tuned", describe(points)
    )


def describe(points: list[RunPoint]) -> str:
    """What the figure shows, for those who cannot see it."""
    said = []
    for name, word in (
        ("default", "of the default"),
        ("tuned", "tuned"),
        ("exploring", "exploring or with the best by then"),
    ):
        times = sorted(point.elapsed for point in points if kind(point) == name)
        if times:
            middle = statistics.geometric_mean(times)
            said.append(
                f"{words.count(len(times))} {word}, {words.time(times[0])} to "
                f"{words.seconds(times[-1])}, geometric mean {words.seconds(middle)}"
            )
    outliers = sum(point.outlier for point in points)
    return f"Elapsed by run. {'; '.join(said)}; {words.count(outliers)} beyond Tukey's fences."


def _whole(mark: float) -> str:
    return words.count(int(mark))

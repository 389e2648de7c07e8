"""How the lowest mean known came down, run by run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from io_autotune_report.render.page import words
from io_autotune_report.render.page.figures.axes import LEFT, axes, number_marks
from io_autotune_report.render.page.svg import Drawing, Scale, ticks

if TYPE_CHECKING:
    from markupsafe import Markup

    from io_autotune_report.document import Study

_SPARK = (96, 20)
_SPARK_POINTS = 24


def _points(study: Study) -> list[tuple[int, float]]:
    return [(runs, ratio) for runs, ratio in study.convergence if words.known(ratio) and ratio > 0]


def _steps(points: list[tuple[int, float]], last: int) -> list[tuple[float, float]]:
    stairs: list[tuple[float, float]] = []
    for runs, ratio in points:
        if stairs:
            stairs.append((runs, stairs[-1][1]))
        stairs.append((runs, ratio))
    stairs.append((last, stairs[-1][1]))
    return stairs


def describe(study: Study) -> str:
    """Where the lowest mean stands against the default's."""
    points = _points(study)
    last, final = points[-1]
    return (
        f"After {words.count(last)} runs the lowest mean known is {words.percent(final, 0)} of the "
        f"default's."
    )


def convergence(study: Study) -> Markup | None:
    """The lowest mean over the default's."""
    points = _points(study)
    if not points:
        return None
    ratios = [ratio for _, ratio in points]
    last = max(points[-1][0], points[0][0] + 1)
    frame = axes(
        (points[0][0], last),
        (min([*ratios, 0.95]), max([*ratios, 1.0])),
        ("runs", "lowest mean known, share of the default's"),
        lambda mark: words.percent(mark, 0),
    )
    number_marks(
        frame,
        [mark for mark in ticks(points[0][0], last) if mark == int(mark)],
        lambda mark: words.count(int(mark)),
    )
    level = frame.y(1.0)
    frame.drawing.line((LEFT, level), (frame.drawing.width - 10, level), "line default dashed")
    frame.drawing.text(
        frame.drawing.width - 10, level - 5, "default", class_="note default", text_anchor="end"
    )
    stairs = [(frame.x(runs), frame.y(ratio)) for runs, ratio in _steps(points, last)]
    frame.drawing.path(stairs, "line tuned")
    return frame.drawing.figure(f"convergence-{study.study_id:d}", "Convergence", describe(study))


def sparkline(study: Study) -> Markup | None:
    """The same as small as a word, against a line for the default."""
    points = _points(study)
    if not points:
        return None
    width, height = _SPARK
    last = max(points[-1][0], points[0][0] + 1)
    stride = max(1, len(points) // _SPARK_POINTS)
    kept = [*points[:-1:stride], points[-1]]
    drawing = Drawing(width, height)
    x = Scale(points[0][0], last, 1, width - 4)
    low = min(0.9, *(ratio for _, ratio in points))
    high = max(1.0, *(ratio for _, ratio in points))
    y = Scale(low, high, height - 4, 4)
    drawing.line((0, y(1.0)), (width, y(1.0)), "line default dashed thin")
    stairs = [(x(runs), y(ratio)) for runs, ratio in _steps(kept, last)]
    drawing.path(stairs, "line tuned thin")
    drawing.add("circle", cx=stairs[-1][0], cy=stairs[-1][1], r=2.4, class_="dot tuned")
    return drawing.mini(describe(study), "spark")

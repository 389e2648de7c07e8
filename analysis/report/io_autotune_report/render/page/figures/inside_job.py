"""What an agent inside a job did: the path's bandwidth, and the levers' ways below it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from io_autotune_report.render.page import words
from io_autotune_report.render.page.figures.axes import BOTTOM, LEFT, RIGHT, axes, number_marks
from io_autotune_report.render.page.svg import Scale, ticks

if TYPE_CHECKING:
    from markupsafe import Markup

    from io_autotune_report.document import InsideJob, Study
    from io_autotune_report.render.page.figures.axes import Axes

_LANE = 46
"""The height of a lever's part."""
_NAME = 24
"""The most characters of a lever's name: what a phone is wide."""
_MB = 1e6


def inside_job(study: Study) -> Markup | None:
    """Bandwidth and levers over the job's time; nothing where no period has passed."""
    told = study.inside_job
    if told is None or not told.entries:
        return None
    ends = [entry.seconds for entry in told.entries]
    speeds = [entry.bandwidth / _MB for entry in told.entries]
    lanes = len(told.levers) * _LANE
    frame = axes(
        (0.0, ends[-1]),
        (0.0, max(speeds)),
        ("seconds since the job began", "MB/s"),
        lambda mark: words.short_value(round(mark, 3)),
        below=lanes,
    )
    number_marks(frame, ticks(0.0, ends[-1]), lambda mark: words.count(round(mark)))
    frame.drawing.path(_stairs(frame, ends, [frame.y(speed) for speed in speeds]), "line tuned")
    for place, name in enumerate(told.levers):
        top = frame.drawing.height - BOTTOM - lanes + place * _LANE + 12
        _lever(frame, told, place, name, top)
    return frame.drawing.figure(f"inside-job-{study.study_id:d}", "Inside a job", describe(told))


def _held(told: InsideJob, place: int) -> list[int]:
    """What a lever was at in each entry: what is set at a period's end holds in the next one."""
    return [told.began[place], *(entry.values[place] for entry in told.entries[:-1])]


def _lever(frame: Axes, told: InsideJob, place: int, name: str, top: float) -> None:
    """Draw a lever as stairs: it is doubled and halved, and holds from a period's end on."""
    held = _held(told, place)
    logs = [math.log2(max(value, 1)) for value in held]
    low, high = min(logs), max(logs)
    height = Scale(low, high, top + _LANE - 18, top + 6)
    drawing = frame.drawing
    # lctl's names have the setting last.
    short = words.plain(name.rsplit(".", 1)[-1])[:_NAME]
    drawing.text(LEFT, top, f"{short}: {_range(held)}", class_="note")
    began = height(logs[0])
    drawing.line((LEFT, began), (drawing.width - RIGHT, began), "line default dashed thin")
    ends = [entry.seconds for entry in told.entries]
    drawing.path(_stairs(frame, ends, [height(log) for log in logs]), "line tuned thin")


def _stairs(frame: Axes, ends: list[float], heights: list[float]) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    began = 0.0
    for end, height in zip(ends, heights, strict=True):
        points += [(frame.x(began), height), (frame.x(end), height)]
        began = end
    return points


def _range(held: list[int]) -> str:
    if len(set(held)) == 1:
        return f"{words.count(held[0])}, never moved"
    return f"{words.count(min(held))} to {words.count(max(held))}, at last {words.count(held[-1])}"


def describe(told: InsideJob) -> str:
    """What the figure shows, for those who cannot see it."""
    moves = sum(entry.moves for entry in told.entries)
    speeds = [entry.bandwidth / _MB for entry in told.entries]
    levers = "; ".join(
        f"{words.plain(name)}: {_range(_held(told, place))}"
        for place, name in enumerate(told.levers)
    )
    return (
        f"{told.policy} on {words.plain(told.node)} in run {words.count(told.ordinal)}:"
        f" {words.count(moves)} moves, {words.short_value(round(min(speeds), 1))} to"
        f" {words.short_value(round(max(speeds), 1))} MB/s. {levers}."
    )

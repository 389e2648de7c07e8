"""A Gaussian process's expectation over two parameters, as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from io_autotune_report.render.page import words
from io_autotune_report.render.page.svg import Drawing, place

if TYPE_CHECKING:
    from markupsafe import Markup

    from io_autotune_report.document import Study, Surface, Value

CLASSES = 7
"""Colours; the quickest is the strongest."""

_WIDTH = 360
_LEFT, _TOP, _RIGHT = 78, 26, 6
_CELLS_HEIGHT = 168
_FOOT = 66
_NUMBERED = 8
"""Columns of a map that says each cell's number."""
_LABEL_CHARACTERS = 11
_ROWS_LABELLED = 12
_COLUMN_PIXELS = 34


def surface(study: Study, index: int) -> Markup | None:
    """A heat map, if it has a cell."""
    shown = study.surfaces[index]
    cells = [time for row in shown.elapsed for time in row if words.known(time)]
    if not cells or not shown.x_values or not shown.y_values:
        return None
    low, high = min(cells), max(cells)
    columns, rows = len(shown.x_values), len(shown.y_values)
    wide = (_WIDTH - _LEFT - _RIGHT) / columns
    tall = _CELLS_HEIGHT / rows
    drawing = Drawing(_WIDTH, _TOP + _CELLS_HEIGHT + _FOOT)
    drawing.text(0, 12, f"{_cut(shown.y, 24)} \u2193", class_="axis")
    _cells(drawing, shown, (low, high), (wide, tall))
    _labels(drawing, shown, (wide, tall))
    _measured(drawing, shown, (wide, tall), numbered=columns <= _NUMBERED)
    _chosen(drawing, study, shown, (wide, tall))
    _scale(drawing, low, high)
    return drawing.figure(
        f"surface-{study.study_id:d}-{index:d}",
        f"Expected elapsed by {words.plain(shown.x)} and {words.plain(shown.y)}",
        describe(shown),
    )


def describe(shown: Surface) -> str:
    """The quickest and the slowest corner, in words."""
    cells = [
        (time, x, y)
        for row, y in zip(shown.elapsed, shown.y_values, strict=False)
        for time, x in zip(row, shown.x_values, strict=False)
        if words.known(time)
    ]
    (low, low_x, low_y), (high, high_x, high_y) = min(cells, key=_time), max(cells, key=_time)
    x, y = words.plain(shown.x), words.plain(shown.y)
    return (
        f"What a Gaussian process expects, the other parameters as chosen: from "
        f"{words.seconds(low)} at {x} {words.value(low_x)}, {y} {words.value(low_y)} to "
        f"{words.seconds(high)} at {x} {words.value(high_x)}, {y} {words.value(high_y)}."
    )


def _time(cell: tuple[float, Value, Value]) -> float:
    return cell[0]


def _step(time: float, low: float, high: float) -> int:
    """0 for the slowest, the last for the quickest."""
    if not high > low:
        return CLASSES // 2
    return min(CLASSES - 1, int(CLASSES * (high - time) / (high - low)))


def _cells(
    drawing: Drawing,
    shown: Surface,
    ends: tuple[float, float],
    size: tuple[float, float],
) -> None:
    """A path for each colour, and numbers where they fit."""
    wide, tall = size
    paths = [""] * CLASSES
    numbers = []
    for row, times in enumerate(shown.elapsed[: len(shown.y_values)]):
        for column, time in enumerate(times[: len(shown.x_values)]):
            if not words.known(time):
                continue
            step = _step(time, *ends)
            x, y = _LEFT + column * wide, _TOP + row * tall
            paths[step] += f"M{place(x)} {place(y)}h{place(wide)}v{place(tall)}H{place(x)}z"
            numbers.append((x + wide / 2, y + tall / 2 + 4, words.time(time), f"on heat-{step}"))
    for step, path in enumerate(paths):
        if path:
            drawing.add("path", d=path, class_=f"heat heat-{step}")
    if len(shown.x_values) <= _NUMBERED and len(shown.y_values) <= _NUMBERED:
        for x, y, number, css in numbers:
            drawing.text(x, y, number, class_=css, text_anchor="middle")


def _labels(drawing: Drawing, shown: Surface, size: tuple[float, float]) -> None:
    wide, tall = size
    stride = -(-len(shown.y_values) // _ROWS_LABELLED)
    for row in range(0, len(shown.y_values), stride):
        label = _cut(words.short_value(shown.y_values[row]), _LABEL_CHARACTERS)
        drawing.text(_LEFT - 6, _TOP + (row + 0.5) * tall + 4, label, text_anchor="end")
    stride = max(1, -(-_COLUMN_PIXELS // max(1, int(wide))))
    below = _TOP + _CELLS_HEIGHT + 15
    for column in range(0, len(shown.x_values), stride):
        label = _cut(words.short_value(shown.x_values[column]), max(4, int(wide * stride / 6.6)))
        drawing.text(_LEFT + (column + 0.5) * wide, below, label, text_anchor="middle")
    drawing.text(
        _WIDTH - _RIGHT, below + 16, f"{_cut(shown.x, 36)} \u2192", class_="axis", text_anchor="end"
    )


def _centre(shown: Surface, x: Value | None, y: Value | None) -> tuple[int, int] | None:
    if x in shown.x_values and y in shown.y_values:
        return shown.x_values.index(x), shown.y_values.index(y)
    return None


def _measured(
    drawing: Drawing, shown: Surface, size: tuple[float, float], *, numbered: bool
) -> None:
    """Dots where runs were made, aside of numbers."""
    wide, tall = size
    for x, y, _, runs in shown.runs:
        cell = _centre(shown, x, y)
        if cell is None or runs < 1:
            continue
        across, down = (0.12, 0.2) if numbered else (0.5, 0.5)
        drawing.add(
            "circle",
            cx=_LEFT + (cell[0] + across) * wide,
            cy=_TOP + (cell[1] + down) * tall,
            r=min(2.0, min(wide, tall) / 4),
            class_="measured",
        )


def _chosen(drawing: Drawing, study: Study, shown: Surface, size: tuple[float, float]) -> None:
    settings = {parameter.name: parameter.chosen for parameter in study.parameters}
    cell = _centre(shown, settings.get(shown.x), settings.get(shown.y))
    if cell is None:
        return
    wide, tall = size
    drawing.add(
        "rect",
        x=_LEFT + cell[0] * wide + 1.5,
        y=_TOP + cell[1] * tall + 1.5,
        width=max(1.0, wide - 3),
        height=max(1.0, tall - 3),
        class_="chosen",
    )


def _scale(drawing: Drawing, low: float, high: float) -> None:
    y = drawing.height - 16
    for step in range(CLASSES):
        drawing.add(
            "rect", x=_LEFT + step * 16, y=y, width=16, height=10, class_=f"heat heat-{step}"
        )
    drawing.text(_LEFT - 6, y + 9, words.seconds(high), text_anchor="end")
    drawing.text(_LEFT + CLASSES * 16 + 6, y + 9, words.seconds(low))
    x = _WIDTH - _RIGHT - 60
    drawing.add("rect", x=x, y=y - 1, width=14, height=12, class_="chosen")
    drawing.text(_WIDTH - _RIGHT, y + 9, "chosen", text_anchor="end")


def _cut(text: str, characters: int) -> str:
    text = words.plain(text)
    return text if len(text) <= characters else f"{text[: characters - 1]}\u2026"

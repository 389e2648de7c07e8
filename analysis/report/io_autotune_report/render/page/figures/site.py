"""Figures of the whole site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from io_autotune_report.render.page import words
from io_autotune_report.render.page.figures.axes import BOTTOM, LEFT, RIGHT, axes
from io_autotune_report.render.page.svg import Drawing, Scale, place

if TYPE_CHECKING:
    from markupsafe import Markup

    from io_autotune_report.document import NodeHours

_LEDGER_WIDTH = 360
_ROW = 26
_POINTS = 400


def history(nights: list[tuple[str, float]]) -> Markup | None:
    """Node-hours saved by night, from the second on."""
    known = [(night, saved) for night, saved in nights if words.known(saved)]
    if len(known) < 2:  # noqa: PLR2004
        return None
    stride = -(-len(known) // _POINTS)
    kept = known[-1::-stride][::-1]
    saved = [hours for _, hours in kept]
    unit = words.node_unit(*saved)
    days = [words.ordinal(night) for night, _ in kept]
    frame = axes(
        (days[0], max(days[-1], days[0] + 1)),
        (min(0.0, *saved), max(0.0, *saved)),
        ("", f"{unit} saved up to each night"),
        lambda hours: words.node_amount(hours, unit),
        height=200,
        tight=True,
    )
    points = [(frame.x(day), frame.y(hours)) for day, hours in zip(days, saved, strict=True)]
    zero = place(frame.y(0))
    line = "L".join(f"{place(x)} {place(y)}" for x, y in points)
    frame.drawing.add(
        "path",
        d=f"M{place(points[0][0])} {zero}L{line}L{place(points[-1][0])} {zero}z",
        class_="area tuned",
    )
    frame.drawing.line((LEFT, frame.y(0)), (frame.drawing.width - RIGHT, frame.y(0)), "zero")
    frame.drawing.path(points, "line tuned")
    frame.drawing.add("circle", cx=points[-1][0], cy=points[-1][1], r=3.5, class_="dot tuned")
    foot = frame.drawing.height - BOTTOM + 16
    frame.drawing.text(LEFT, foot, words.day(kept[0][0]))
    frame.drawing.text(frame.drawing.width - RIGHT, foot, words.day(kept[-1][0]), text_anchor="end")
    return frame.drawing.figure(
        "history",
        "Node time saved over the nights",
        f"From {words.node_time(known[0][1])} on {words.day(known[0][0])} to "
        f"{words.node_time(known[-1][1])} on {words.day(known[-1][0])}.",
    )


def ledger(hours: NodeHours) -> Markup | None:
    """What was saved as a sum: chosen, less exploring, less controls."""
    if hours.saved is None or not words.known(hours.saved):
        return None
    chosen, exploring, controls = hours.by_chosen, hours.exploring, hours.controls
    if chosen is None or exploring is None or controls is None:
        return None
    if not all(words.known(part) for part in (chosen, exploring, controls)):
        return None
    rows = [
        ("tuned runs", 0.0, chosen, "tuned", chosen),
        ("exploring", chosen, chosen - exploring, "exploring", -exploring),
        ("control runs", chosen - exploring, hours.saved, "default", -controls),
        ("saved in all", 0.0, hours.saved, "sum", hours.saved),
    ]
    unit = words.node_unit(chosen, exploring, controls, hours.saved)
    ends = [end for _, start, stop, _, _ in rows for end in (start, stop)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    drawing = Drawing(_LEDGER_WIDTH, _ROW * len(rows))
    x = Scale(low, high if high > low else low + 1, 92, _LEDGER_WIDTH - 78)
    for index, (label, start, stop, css, part) in enumerate(rows):
        y = index * _ROW
        if css == "sum":
            drawing.line((0, y + 1), (_LEDGER_WIDTH, y + 1), "rule")
        drawing.text(0, y + 17, label, class_="strong" if css == "sum" else None)
        left, right = sorted((x(start), x(stop)))
        drawing.add(
            "rect",
            x=left,
            y=y + 7,
            width=max(1.0, right - left),
            height=12,
            class_=f"bar {css}",
        )
        say = words.node_amount if css == "sum" else words.signed_amount
        said = say(part, unit)
        drawing.text(
            _LEDGER_WIDTH,
            y + 17,
            said,
            text_anchor="end",
            class_="strong" if css == "sum" else None,
        )
    drawing.line((x(0), 4), (x(0), _ROW * len(rows)), "zero")
    return drawing.figure(
        "ledger",
        f"Where the {unit} come from",
        f"Tuned runs {words.signed_amount(chosen, unit)}, "
        f"exploring {words.signed_amount(-exploring, unit)}, "
        f"control runs {words.signed_amount(-controls, unit)}; "
        f"in all {words.signed_amount(hours.saved, unit)}.",
    )


def verdicts(counts: dict[str, int]) -> Markup | None:
    """How many studies have which verdict, as one bar."""
    total = sum(counts.values())
    if not total:
        return None
    drawing = Drawing(720, 12)
    x = 0.0
    for verdict, number in counts.items():
        wide = 720 * number / total
        if wide:
            drawing.add(
                "rect",
                x=x,
                y=0,
                width=max(0.5, wide - 2),
                height=12,
                class_=f"verdict-bar {verdict}",
            )
        x += wide
    said = ", ".join(
        f"{words.count(number)} {words.VERDICTS[verdict]}" for verdict, number in counts.items()
    )
    return drawing.figure("verdicts", "Studies by verdict", f"{said}.", "flat")

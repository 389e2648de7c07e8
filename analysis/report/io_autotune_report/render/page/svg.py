"""A small SVG writer: it escapes all and writes no ``style``, which the page's policy refuses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Iterable

    Attribute = str | float | None


_FEW_DECADES = 3


def place(number: float) -> str:
    """A coordinate, to a tenth of a pixel."""
    text = f"{number:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


class Drawing:
    """A figure that grows element by element."""

    def __init__(self, width: float, height: float) -> None:
        """An empty one of that many units."""
        self.width = width
        self.height = height
        self._parts: list[Markup] = []

    def add(self, tag: str, content: str | None = None, **attributes: Attribute) -> None:
        """Add an element: ``text_anchor`` is text-anchor, None is left out."""
        self._parts.append(_element(tag, None if content is None else escape(content), attributes))

    def text(self, x: float, y: float, content: str, **attributes: Attribute) -> None:
        """A line of text."""
        self.add("text", content, x=x, y=y, **attributes)

    def line(self, start: tuple[float, float], end: tuple[float, float], css: str) -> None:
        """A straight line."""
        self.path([start, end], css)

    def path(self, points: Iterable[tuple[float, float]], css: str) -> None:
        """An open line through points."""
        steps = "L".join(f"{place(x)} {place(y)}" for x, y in points)
        if steps:
            self.add("path", d=f"M{steps}", class_=css)

    def figure(self, key: str, title: str, description: str, css: str = "") -> Markup:
        """The SVG with a title and a description."""
        return _element(
            "svg",
            _element("title", escape(title), {"id": f"{key}-title"})
            + _element("desc", escape(description), {"id": f"{key}-desc"})
            + Markup("").join(self._parts),
            {
                "class_": f"figure {css}".strip(),
                "viewBox": f"0 0 {place(self.width)} {place(self.height)}",
                "role": "img",
                "aria_labelledby": f"{key}-title",
                "aria_describedby": f"{key}-desc",
            },
        )

    def mini(self, label: str, css: str) -> Markup:
        """The SVG in its own size."""
        return _element(
            "svg",
            Markup("").join(self._parts),
            {
                "class_": f"mini {css}".strip(),
                "viewBox": f"0 0 {place(self.width)} {place(self.height)}",
                "width": self.width,
                "height": self.height,
                "role": "img",
                "aria_label": label,
            },
        )


def _element(tag: str, content: Markup | None, attributes: dict[str, Attribute]) -> Markup:
    written = Markup("").join(
        Markup(' {}="{}"').format(
            name.rstrip("_").replace("_", "-"),
            place(setting) if isinstance(setting, int | float) else setting,
        )
        for name, setting in attributes.items()
        if setting is not None
    )
    if content is None:
        return Markup("<{}{}/>").format(Markup(tag), written)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), written, content)


class Scale:
    """From numbers to pixels, linear or logarithmic."""

    def __init__(
        self, low: float, high: float, start: float, end: float, *, log: bool = False
    ) -> None:
        """``low`` is at ``start``, ``high`` at ``end``."""
        self.low, self.high, self.log = low, high, log
        self._start, self._end = start, end

    def __call__(self, number: float) -> float:
        """A pixel, cut at the ends."""
        low, high, number = self.low, self.high, min(max(number, self.low), self.high)
        if self.log:
            low, high, number = math.log(low), math.log(high), math.log(number)
        share = (number - low) / (high - low) if high > low else 0.5
        return self._start + share * (self._end - self._start)


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Ticks of 1, 2 or 5 times a power of ten that enclose the range."""
    if not high > low:
        low, high = low - abs(low) / 10 - 0.5, high + abs(high) / 10 + 0.5
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, last + 1)]


def decades(low: float, high: float) -> list[float]:
    """Logarithmic ticks: 1, 2, 5 times powers of ten, or powers alone."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    few = (1, 2, 5) if last - first <= _FEW_DECADES else (1,)
    all_of_them = [factor * 10.0**power for power in range(first, last + 1) for factor in few]
    below = [tick for tick in all_of_them if tick <= low]
    above = [tick for tick in all_of_them if tick >= high]
    return [tick for tick in all_of_them if below[-1] <= tick <= above[0]]

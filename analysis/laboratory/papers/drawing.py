"""Line charts, as SVG."""

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 20, 40
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777")


def lines(series: Mapping[str, Sequence[float]], across: str, up: str) -> str:
    """Each series by its place from 1; all begin at the axis of the least value."""
    values = [value for of in series.values() for value in of]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    longest = max(len(of) for of in series.values())

    def x(place: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * place / max(longest - 1, 1)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / span

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        "<style>text {font: 12px sans-serif}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="black"/>',
        f'<text x="{LEFT}" y="{HEIGHT - 8}">{escape(across)}, 1 to {longest}</text>',
        f'<text x="{LEFT}" y="{TOP - 6}">{escape(up)}</text>',
    ]
    parts += [
        f'<text x="{LEFT - 6}" y="{y(value) + 4:.0f}" text-anchor="end">{value:.3g}</text>'
        for value in (low, low + span / 2, high)
    ]
    for nth, (name, of) in enumerate(series.items()):
        colour = COLOURS[nth % len(COLOURS)]
        path = " ".join(f"{x(place):.1f},{y(value):.1f}" for place, value in enumerate(of))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT + 8}" y="{TOP + 16 * nth + 8}" fill="{colour}">'
            f"{escape(name)}</text>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"

"""Draws docs/images/gain.svg, what the worked example gained: python3 tests/gain_picture.py."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "docs" / "example.md"
PICTURE = ROOT / "docs" / "images" / "gain.svg"

LEFT = 150.0
"""Where the bars begin."""
LONGEST = 505.4
"""The width of the default's bar."""
HEIGHT = 38
CAP = 8
"""Half the height of an interval's ends."""


@dataclass(frozen=True)
class Row:
    """A row of the example's table: runs, and seconds with their interval."""

    name: str
    runs: int
    elapsed: str
    low: str
    high: str


@dataclass(frozen=True)
class Example:
    """What `status` said in docs/example.md."""

    default: Row
    tuned: Row
    gain: str
    low: str
    high: str
    explored: int

    def sentence(self) -> str:
        """Return the picture's text for who does not see it."""
        return (
            f"A checkpoint takes {self.default.elapsed} s with the default and"
            f" {self.tuned.elapsed} s tuned: {self.gain} % less"
        )


def read(page: str) -> Example:
    """Read the example's page."""

    def row(name: str) -> Row:
        found = re.search(rf"^{name} +(\d+) +([\d.]+) +([\d.]+) \.\. ([\d.]+) ", page, re.MULTILINE)
        assert found, f"docs/example.md has no row of {name}"
        return Row(name, int(found[1]), found[2], found[3], found[4])

    gain = re.search(r"take ([\d.]+) % less time than the default \(([\d.]+) to ([\d.]+) %", page)
    explored = re.search(r"(\d+) of \d+ exploring runs done", page)
    assert gain, "docs/example.md has no gain"
    assert explored, "docs/example.md does not say how many runs explored"
    return Example(
        row("default"), row("tuned"), gain[1], gain[2], gain[3], explored=int(explored[1])
    )


def drawn(example: Example) -> str:
    """Return the picture."""
    scale = LONGEST / float(example.default.elapsed)
    bars = [
        _bar(row, top, colour, scale)
        for row, top, colour in (
            (example.default, 90, "#6b7480"),
            (example.tuned, 148, "#0b5cab"),
        )
    ]
    default, tuned = example.default, example.tuned
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 250" role="img" aria-labelledby="t d"
     font-family="system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif">
  <title id="t">A checkpoint job with the default and tuned</title>
  <desc id="d">With the default a run takes {default.elapsed} s ({default.low} to {default.high}), \
tuned {tuned.elapsed} s ({tuned.low} to {tuned.high}):
  {example.gain} % less time.</desc>
  <!-- Drawn by tests/gain_picture.py from docs/example.md. -->
  <rect x="0.5" y="0.5" width="759" height="249" rx="8" fill="#fcfcfb" stroke="#c8ccd0"/>
  <text x="24" y="36" font-size="19" font-weight="700" fill="#1b1f23">Tuned runs take \
{example.gain} % less time than the default</text>
  <text x="24" y="59" font-size="14" fill="#4f5660">A checkpoint of 4 MPI ranks into one shared \
file, chosen after {example.explored} exploring runs</text>
{"".join(bars)}
  <text x="24" y="224" font-size="13" fill="#4f5660">Elapsed time of a typical run, with 95 % \
intervals. The gain's own interval: {example.low} to {example.high} % less time.</text>
</svg>
"""


def _bar(row: Row, top: int, colour: str, scale: float) -> str:
    width, middle = scale * float(row.elapsed), top + HEIGHT // 2
    low, high = (f"{LEFT + scale * float(end):.1f}" for end in (row.low, row.high))
    cap = f"{middle - CAP}v{2 * CAP}"
    return f"""
  <text x="24" y="{middle - 2}" font-size="16" fill="#1b1f23">{row.name}</text>
  <text x="24" y="{middle + 16}" font-size="13" fill="#4f5660">{row.runs} runs</text>
  <rect x="{LEFT:.0f}" y="{top}" width="{width:.1f}" height="{HEIGHT}" fill="{colour}"/>
  <path d="M{low} {middle}H{high}M{low} {cap}M{high} {cap}" stroke="#1b1f23" stroke-width="2"/>
  <text x="{float(high) + 14:.0f}" y="{middle + 6}" font-size="17" font-weight="700" \
fill="#1b1f23">{row.elapsed} s</text>
"""


if __name__ == "__main__":
    PICTURE.write_text(drawn(read(EXAMPLE.read_text("utf-8"))), "utf-8")

"""Draws docs/images/field-trial.svg, what real programs gained: python3 tests/field_picture.py."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "measurements" / "field-trial.md"
PICTURE = ROOT / "docs" / "images" / "field-trial.svg"

LEFT = 200.0
"""Where the bars begin."""
LONGEST = 300.0
"""The width of a bar as long as the default's time."""
TOP = 92
COLUMNS = 8
"""Of the page's table."""
STEP = 30
HEIGHT = 18
CLAIMED, OTHER = "#0b5cab", "#9aa3ad"


@dataclass(frozen=True)
class Application:
    """A program of the page's table: how many times faster the study's choice is."""

    name: str
    times: float
    low: float
    high: float
    claimed: bool

    def told(self) -> str:
        """Return the figure, as beside the bar."""
        return f"{self.times:.2f} times faster ({self.low:.2f} to {self.high:.2f})"


def read(page: str) -> list[Application]:
    """Return what was measured, most gained first."""
    applications = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = re.match(r"\[([\w-]+)\]\(#", cells[0])
        if name is None or len(cells) != COLUMNS:
            continue
        choice = re.fullmatch(r"\*\*([\d.]+)\*\* \(([\d.]+) to ([\d.]+)\)", cells[5])
        figures = (1.0, 1.0, 1.0)
        if choice is not None:
            figures = (float(choice[1]), float(choice[2]), float(choice[3]))
        elif cells[5] != "the default":
            continue
        applications.append(Application(name[1], *figures, claimed=cells[7].startswith("faster")))
    assert applications, "the field trial's page has no measured application"
    return sorted(applications, key=lambda one: -one.times)


def sentence(applications: list[Application]) -> str:
    """Return the picture's text for who does not see it."""
    claimed = [one for one in applications if one.claimed]
    return (
        f"A gain is claimed for {len(claimed)} of {len(applications)} real programs: they run"
        f" {claimed[-1].times:.1f} to {claimed[0].times:.1f} times faster"
    )


def drawn(applications: list[Application]) -> str:
    """Return the picture."""
    bottom = TOP + STEP * len(applications)
    bars = "".join(_bar(one, TOP + STEP * place) for place, one in enumerate(applications))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {bottom + 62}" role="img" \
aria-labelledby="t d"
     font-family="system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif">
  <title id="t">What real programs gained in the field trial</title>
  <desc id="d">{"; ".join(f"{one.name}: {one.told()}" for one in applications)}.</desc>
  <!-- Drawn by tests/field_picture.py from docs/measurements/field-trial.md. -->
  <rect x="0.5" y="0.5" width="759" height="{bottom + 61}" rx="8" fill="#fcfcfb" stroke="#c8ccd0"/>
  <text x="24" y="36" font-size="19" font-weight="700" fill="#1b1f23">What a run takes with the \
settings that its study chose</text>
  <text x="24" y="59" font-size="14" fill="#4f5660">Real programs on S3, GlusterFS and a slow \
disk, beside the default's time (the line)</text>
  <path d="M{LEFT + LONGEST:.0f} {TOP - 8}V{bottom}" stroke="#1b1f23" stroke-dasharray="4 3"/>
{bars}
  <rect x="24" y="{bottom + 14}" width="12" height="12" fill="{CLAIMED}"/>
  <text x="42" y="{bottom + 25}" font-size="13" fill="#4f5660">the study claims a gain</text>
  <rect x="212" y="{bottom + 14}" width="12" height="12" fill="{OTHER}"/>
  <text x="230" y="{bottom + 25}" font-size="13" fill="#4f5660">it claims none</text>
  <text x="24" y="{bottom + 46}" font-size="13" fill="#4f5660">In brackets: 95 % intervals, of \
runs in blocks after the study.</text>
</svg>
"""


def _bar(one: Application, top: int) -> str:
    width = LONGEST / one.times
    colour = CLAIMED if one.claimed else OTHER
    # Beside the bar, but never across the line of the default's time.
    beside = LEFT + max(width, LONGEST) + 12
    return f"""
  <text x="24" y="{top + 14}" font-size="15" fill="#1b1f23">{one.name}</text>
  <rect x="{LEFT:.0f}" y="{top}" width="{width:.1f}" height="{HEIGHT}" fill="{colour}"/>
  <text x="{beside:.0f}" y="{top + 14}" font-size="13" fill="#1b1f23">{one.told()}</text>"""


if __name__ == "__main__":
    PICTURE.write_text(drawn(read(PAGE.read_text("utf-8"))), "utf-8")

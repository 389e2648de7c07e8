"""Pictures of the page for docs/report.md: python -m screenshots FOLDER.

Of a report's page if there is one (--page, such as `make report-demo` makes), else of the sample's.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from pathlib import Path

import sample_report
from browser import browser
from io_autotune_report.render import page

_PLAIN_NAMES = 9
"""The sample's studies before those with hostile and overlong names."""

SHOWN = "report.sha256"
"""The file beside the pictures that says of which page they are."""


def sample() -> str:
    """The page that docs/images shows."""
    return page.render(sample_report.report(studies=_PLAIN_NAMES))


def digest(html: str) -> str:
    """A page's line of SHOWN."""
    return hashlib.sha256(html.encode()).hexdigest() + "\n"


def main() -> None:
    """Writes report-light.png, report-dark.png, report-narrow.png, and of which page they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--page", type=Path, help="a report's index.html")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        shown = arguments.page
        if shown is None:
            shown = Path(scratch) / "index.html"
            shown.write_text(sample(), "utf-8")
            (arguments.folder / SHOWN).write_text(digest(sample()), "utf-8")
        for name, picture in pictures(shown.resolve(), Path(scratch)).items():
            (arguments.folder / f"report-{name}.png").write_bytes(picture)


def pictures(shown: Path, home: Path) -> dict[str, bytes]:
    """The total in light, one study's details in dark, and a phone's first screen."""
    with browser(home) as window:
        window.show(shown)
        light = window.screenshot(1240)
        window.show(shown, dark=True)
        top = window.run(
            "const claimed = document.querySelector('.study:has(summary .faster):has(.figures)')"
            " ?? document.querySelector('.study');"
            "if (!claimed) return 0;"
            "claimed.open = true;"
            "return Math.floor(claimed.getBoundingClientRect().top + scrollY)"
        )
        dark = window.screenshot(1240, top=int(top))
        window.show(shown, width=390, height=844)
        narrow = window.screenshot(1300, scale=1.5)
    return {"light": light, "dark": dark, "narrow": narrow}


if __name__ == "__main__":
    main()

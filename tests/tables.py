"""Tables of the pages that tests write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown, a line end behind each row."""
    lines = [header, ["---"] * len(header), *rows]
    shown = [[str(cell).replace("|", "&#124;").replace("\n", " ") for cell in row] for row in lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in shown)

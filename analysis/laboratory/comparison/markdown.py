"""Markdown tables and numbers."""

from collections.abc import Iterable, Sequence
from decimal import Decimal


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """The lines of a table; all columns but the first `left` are right-aligned."""
    marks = ["---" if place < left else "---:" for place in range(len(head))]
    return [_row(head), _row(marks), *(_row(cells) for cells in rows)]


def number(value: float | None, digits: int = 3) -> str:
    """A number with this many significant digits, without exponent; a dash for None."""
    if value is None:
        return "-"
    if value == 0.0:
        return "0"
    return f"{Decimal(f'{value:.{digits}g}'):f}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"

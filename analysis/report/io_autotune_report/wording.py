"""Figures in sentences."""

from __future__ import annotations


def per_cent(share: float, digits: int = 0) -> str:
    """A share as a percentage, 0.12 as ``12 %``."""
    return f"{100 * share:.{digits}f} %"

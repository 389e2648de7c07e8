"""Figures in sentences."""

from __future__ import annotations


def per_cent(share: float, digits: int = 0) -> str:
    """A share as a percentage, 0.12 as ``12 %``."""
    return f"{100 * share:.{digits}f} %"


_UNITS = {"node-seconds": 3600.0, "node-minutes": 60.0, "node-hours": 1.0}
"""So many to a node-hour."""
_ENOUGH = {"node-seconds": 120 / 3600, "node-minutes": 2.0}
"""Node-hours from which the next unit is said, as by ``io-autotune status``."""
_DECIMAL_BELOW = 9.95


def node_unit(hours: float) -> str:
    """The unit in which a node's time is said."""
    return next((unit for unit, enough in _ENOUGH.items() if abs(hours) < enough), "node-hours")


def node_amount(hours: float, unit: str) -> str:
    """A node's time in a unit, without it: a decimal below ten."""
    # Nothing is never -0.
    number = hours * _UNITS[unit] + 0.0
    text = f"{number:,.{1 if abs(number) < _DECIMAL_BELOW else 0}f}"
    return text[1:] if text == "-0.0" else text


def node_time(hours: float) -> str:
    """A node's time with its unit, as ``io-autotune`` says it."""
    unit = node_unit(hours)
    return f"{node_amount(hours, unit)} {unit}"

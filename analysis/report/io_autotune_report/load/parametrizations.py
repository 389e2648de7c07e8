"""Parametrizations and spaces from JSON."""

from __future__ import annotations

import json
from typing import Any

from io_autotune_report.document import Value

BEYOND = 2.0**63
"""Whole numbers below it have no fraction, as in the engine."""


def key(parametrization: dict[str, Any]) -> str:
    """Sorted JSON without blanks, as the engine's ``Parametrization::key``."""
    canonical = {name: _canonical(value) for name, value in parametrization.items()}
    return json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _canonical(value: Value) -> Value:
    if isinstance(value, float) and value.is_integer() and -BEYOND <= value < BEYOND:
        return int(value)
    return value


def parameters(space: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON as it is stored
    """Of a space: a list, or an object if it has constraints."""
    return space["parameters"] if isinstance(space, dict) else space


def default(space: Any) -> dict[str, Value]:  # noqa: ANN401 - JSON as it is stored
    """The default, of the parameters that exist under it."""
    values: dict[str, Value] = {}
    for parameter in parameters(space):
        when = parameter.get("when")
        if when is None or (
            when["parameter"] in values and values[when["parameter"]] in when["is"]
        ):
            values[parameter["name"]] = _canonical(parameter["default"])
    return values

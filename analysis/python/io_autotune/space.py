"""What can be tuned: parameters, their values, conditions and constraints.

>>> level = Int(1, 19, default=3)
>>> rate = Float(1e-4, 1e-1, log=True, levels=7)
>>> list(rate.values)
[0.0001, 0.000316228, 0.001, 0.00316228, 0.01, 0.0316228, 0.1]
>>> Float(0, 1, levels=5, default=0.3).default
0.3
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from io_autotune.errors import SpaceError

When = Mapping[str, Any]
Params = dict[str, Any]


def _toml(value: object) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(key)} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return json.dumps(value).replace("\x7f", "\\u007f")


def _label(value: object) -> str | int | float:
    """Return what stands for a value in the engine, which has numbers and words."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, (int, float, str)) else str(value)


@dataclass(frozen=True)
class Parameter:
    """A parameter: its values, its default, and when it exists (`when={"cache": "on"}`)."""

    kind: str
    values: Sequence[Any]
    default: Any
    when: When | None = None

    def encode(self, value: object) -> str | int | float:
        """Return what stands for a value; raises `SpaceError` if it has no such value."""
        if not any(value == one and isinstance(one, bool) == isinstance(value, bool)
                   for one in self.values):  # fmt: skip
            raise SpaceError(f"{value!r} is none of its values: {_few(self.values)}")
        return _label(value)

    def decode(self, label: object) -> object:
        """Return the value that this stands for."""
        return next(value for value in self.values if _label(value) == label)

    def domain(self) -> dict[str, object]:
        """Return how the engine is told of the values."""
        return {"values": [_label(value) for value in self.values]}


@dataclass(frozen=True)
class _Integers(Parameter):
    values: range

    def domain(self) -> dict[str, object]:
        return {"min": self.values[0], "max": self.values[-1], "step": self.values.step}

    def decode(self, label: object) -> object:
        return label


def _few(values: Sequence[object], shown: int = 12) -> str:
    some = ", ".join(map(repr, values[:shown]))
    return some + (f", ... ({len(values)} in all)" if len(values) > shown else "")


def several(values: object) -> Iterable[object]:
    """Return values of which one may stand alone."""
    return values if isinstance(values, (list, tuple, set)) else [values]


def _parameter(
    cls: type[Parameter], kind: str, values: Sequence[Any], default: object, when: When | None
) -> Parameter:
    """Return a parameter whose default, if none is given, is the middle value or first category."""
    if not values:
        raise SpaceError("a parameter needs at least one value")
    if default is None:
        default = values[0 if kind == "categories" else (len(values) - 1) // 2]
    parameter = cls(kind, values, default, when)
    parameter.encode(default)
    return parameter


def Int(  # noqa: N802 - it reads as a type
    low: int, high: int, step: int = 1, *, default: int | None = None, when: When | None = None
) -> Parameter:
    """Whole numbers from `low` to `high` in even steps.

    >>> Int(1, 19, default=30)
    Traceback (most recent call last):
    io_autotune.errors.SpaceError: 30 is none of its values: 1, 2, 3, 4, ... (19 in all)
    """
    if step < 1 or low > high:
        raise SpaceError(f"Int({low}, {high}, {step}): low is at most high, and step at least 1")
    return _parameter(_Integers, "integer", range(low, high + 1, step), default, when)


def Float(  # noqa: N802
    low: float,
    high: float,
    *,
    log: bool = False,
    levels: int = 51,
    default: float | None = None,
    when: When | None = None,
) -> Parameter:
    """Numbers from `low` to `high` as so many levels, evenly spaced, or evenly in their logarithm.

    The search is over levels: ask for as many as make a difference. The default is one besides.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low <= high and levels >= 1):
        raise SpaceError(f"Float({low}, {high}, levels={levels}): low <= high, and levels >= 1")
    if log and low <= 0:
        raise SpaceError(f"Float({low}, {high}, log=True): low must be above zero")
    ends = (math.log(low), math.log(high)) if log else (low, high)
    steps = [ends[0] + (ends[1] - ends[0]) * i / max(levels - 1, 1) for i in range(levels)]
    # Few digits are easy to read; a narrow range needs more to have its levels.
    narrow = max(abs(low), abs(high)) / (high - low) if high > low else 1.0
    digits = 6 + math.floor(math.log10(min(max(narrow, 1.0), 1e11)))
    inner = [float(f"{math.exp(step) if log else step:.{digits}g}") for step in steps]
    values = sorted({min(max(one, low), high) for one in [float(low), *inner[1:-1], float(high)]})
    if default is not None and low <= default <= high:
        values = sorted({*values, float(default)})
    return _parameter(Parameter, "ordered", values, default, when)


def nearest(values: Sequence[float], value: float, *, log: bool = False) -> float:
    """Return the nearest of some values.

    >>> nearest([1.0, 10.0, 100.0], 40.0, log=True)
    100.0
    """
    scale = math.log if log and value > 0 else float
    return min(values, key=lambda one: abs(scale(one) - scale(value)))


def Ordered(  # noqa: N802
    values: Iterable[Any], *, default: object = None, when: When | None = None
) -> Parameter:
    """A list in a meaningful order, such as `["64K", "1M", "16M"]`: neighbours behave alike."""
    return _parameter(Parameter, "ordered", list(values), default, when)


def Categorical(  # noqa: N802
    values: Iterable[Any], *, default: object = None, when: When | None = None
) -> Parameter:
    """A set without order. The default is the first."""
    return _parameter(Parameter, "categories", list(values), default, when)


class Space:
    """Parameters by name, and constraints between them."""

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        constraints: Iterable[str | Mapping[str, Any]] = (),
    ) -> None:
        """A constraint is `"a <= b"` (or `<`, `>`, `>=`, `==`, `!=`), or `{"forbid": {...}}`."""
        self.parameters = dict(parameters)
        self.constraints = [self._constraint(one) for one in constraints]

    def _constraint(self, constraint: str | Mapping[str, Any]) -> dict[str, object]:
        if isinstance(constraint, str):
            match constraint.split():
                case [left, op, right]:
                    number = right.lstrip("-").isdigit()
                    return {"left": left, "op": op, "right": int(right) if number else right}
            raise SpaceError(f'constraint {constraint!r}: write it as "a <= b", with spaces')
        forbidden = constraint.get("forbid")
        if not isinstance(forbidden, Mapping):
            return dict(constraint)
        return {"forbid": {name: self._labels(name, values) for name, values in forbidden.items()}}

    def _labels(self, name: str, values: object) -> list[str | int | float]:
        if name not in self.parameters:
            raise SpaceError(
                f"there is no parameter {name!r}: there are {', '.join(self.parameters)}"
            )
        return [self.parameters[name].encode(value) for value in several(values)]

    def toml(self) -> str:
        """Return the space as the file that `io-autotune optimize --space` reads."""
        lines = [f"constraints = {_toml(self.constraints)}"]
        for name, parameter in self.parameters.items():
            fields = {"name": name, "kind": parameter.kind, **parameter.domain()}
            fields["default"] = parameter.encode(parameter.default)
            if parameter.when:
                if len(parameter.when) != 1:
                    raise SpaceError(f"{name}: when names one other parameter, as in {{'a': 'on'}}")
                other, values = next(iter(parameter.when.items()))
                fields["when"] = {"parameter": other, "is": self._labels(other, values)}
            lines += [
                "[[parameters]]",
                *(f"{key} = {_toml(value)}" for key, value in fields.items()),
            ]
        return "\n".join(lines) + "\n"

    def decode(self, labels: Mapping[str, object]) -> Params:
        """Return the values that the engine's stand for, in the order of the space."""
        known = self.parameters.items()
        return {name: one.decode(labels[name]) for name, one in known if name in labels}

    def encode(self, params: Mapping[str, object]) -> dict[str, str | int | float]:
        """Return what stands for these values."""
        for name in params:
            self._labels(name, [params[name]])
        return {name: self.parameters[name].encode(value) for name, value in params.items()}

"""Dataclasses from their JSON, and JSON in text."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Kind = TypeVar("Kind")


def decode(kind: type[Kind], value: Any) -> Kind:  # noqa: ANN401 - it is JSON
    """The object of a dataclass that ``dataclasses.asdict`` made ``value`` of.

    Raises:
        KeyError, TypeError, ValueError: it is not of that form.
    """
    return _decoder(kind)(value)


def dumps(value: Any) -> str:  # noqa: ANN401 - it is JSON
    """JSON in one line. What is not a number is refused: JSON has none for it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401, PLR0911 - a type; a form each
    if is_dataclass(kind):
        return _of_dataclass(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list:
        item = _decoder(arguments[0])
        return lambda value: [item(each) for each in value]
    if origin is tuple:
        if arguments[1:] == (...,):
            each_item = _decoder(arguments[0])
            return lambda value: tuple(each_item(each) for each in value)
        items = [_decoder(argument) for argument in arguments]
        return lambda value: tuple(item(each) for item, each in zip(items, value, strict=True))
    if origin is dict:
        item = _decoder(arguments[1])
        return lambda value: {name: item(each) for name, each in value.items()}
    if origin in (Union, types.UnionType) and any(map(is_dataclass, arguments)):
        (inner,) = (each for each in arguments if each is not type(None))
        decoder = _decoder(inner)
        return lambda value: None if value is None else decoder(value)
    if origin is Literal:
        return lambda value: arguments[arguments.index(value)]
    # Numbers, words, flags, and what may be one of several of them.
    return lambda value: value


def _of_dataclass(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - a dataclass
    hints = get_type_hints(kind, localns=dict(vars(kind)))
    decoders = {each.name: _decoder(hints[each.name]) for each in fields(kind)}

    def decoder(value: dict[str, Any]) -> Any:  # noqa: ANN401 - of that kind
        unknown = value.keys() - decoders.keys()
        if unknown:
            raise ValueError(f"{kind.__name__} has no field {', '.join(sorted(unknown))}")
        return kind(**{name: item(value[name]) for name, item in decoders.items()})

    return decoder

"""The JSON Schema of a report's JSON, made from the document's classes and what they say.

``python -m io_autotune_report.render.schema`` prints it; docs/report.schema.json is its output.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import types
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from io_autotune_report import document

_PLAIN = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
}


def schema() -> dict[str, Any]:
    """The schema; it allows no field that the document does not have."""
    definitions: dict[str, Any] = {}
    top = _of_class(document.Report, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": document.SCHEMA,
        "description": inspect.getdoc(document),
        **top,
        "$defs": dict(sorted(definitions.items())),
    }


def _of_class(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    said = _said_of_fields(kind)
    hints = get_type_hints(kind, localns=dict(vars(kind)))
    properties = {}
    for each in fields(kind):
        known = _of(hints[each.name], definitions)
        if each.name in said:
            known = {"description": said[each.name], **known}
        properties[each.name] = known
    if kind is document.Report:
        properties["schema"] = {"const": document.SCHEMA}
    return {
        "description": inspect.getdoc(kind),
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401, PLR0911 - a type
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if is_dataclass(kind):
        name = kind.__qualname__
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = _of_class(kind, definitions)
        return {"$ref": f"#/$defs/{name}"}
    if origin is list:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin is tuple:
        return {
            "type": "array",
            "prefixItems": [_of(argument, definitions) for argument in arguments],
            "minItems": len(arguments),
            "maxItems": len(arguments),
        }
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of(argument, definitions) for argument in arguments]}
    raise TypeError(f"the document has a field of {kind}, which the schema cannot say")


def _said_of_fields(kind: type) -> dict[str, str]:
    """The texts that stand below fields."""
    (source,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body
    if not isinstance(source, ast.ClassDef):
        raise TypeError(f"{kind} is no class")
    said = {}
    for one, following in zip(source.body, source.body[1:], strict=False):
        if (
            isinstance(one, ast.AnnAssign)
            and isinstance(one.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            said[one.target.id] = inspect.cleandoc(str(following.value.value))
    return said


def main() -> None:
    """Print it."""
    json.dump(schema(), sys.stdout, indent=2, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()

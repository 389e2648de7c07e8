"""Prints docs/report.schema.json, from the document's classes."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from typing import Any

import msgspec

from io_autotune_report import document


def schema() -> dict[str, Any]:
    """All fields are required, no others allowed."""
    top = document.Report.__name__
    _, definitions = msgspec.json.schema_components(
        [document.Report], ref_template="#/$defs/{name}"
    )
    for kind in _classes(ast.parse(inspect.getsource(document))):
        if (known := definitions.get(kind.name)) is not None:
            known["description"] = ast.get_docstring(kind)
            known["required"] = list(known["properties"])
            known["additionalProperties"] = False
            for name, said in _said_of_fields(kind).items():
                known["properties"][name] = {"description": said, **known["properties"][name]}
            for each in known["properties"].values():
                each.pop("default", None)
    definitions[top]["properties"]["schema"] = {"const": document.SCHEMA}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **definitions.pop(top),
        "title": document.SCHEMA,
        "$defs": dict(sorted(definitions.items())),
    }


def _classes(source: ast.Module) -> list[ast.ClassDef]:
    return [node for node in ast.walk(source) if isinstance(node, ast.ClassDef)]


def _said_of_fields(kind: ast.ClassDef) -> dict[str, str]:
    """The texts that stand below fields."""
    return {
        one.target.id: inspect.cleandoc(following.value.value)
        for one, following in zip(kind.body, kind.body[1:], strict=False)
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
        and isinstance(following.value.value, str)
    }


def main() -> None:
    """Print it."""
    json.dump(schema(), sys.stdout, indent=2, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()

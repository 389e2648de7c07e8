"""JSON of the document's classes, as text."""

from __future__ import annotations

import json

import msgspec


def dumps(value: object) -> str:
    """JSON in one line. What is not a number is refused: JSON has none for it."""
    # numpy's numbers are floats to Python and not to msgspec.
    plain = msgspec.to_builtins(value, enc_hook=float)
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

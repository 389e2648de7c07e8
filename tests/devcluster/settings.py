"""Overrides of studies' settings: ``key=value`` from the command line, TOML for the service."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping

from devcluster.errors import ClusterError

Scalar = bool | int | float | str
"""One TOML value."""
Setting = Scalar | list[Scalar]
"""A setting's value."""

_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def parse(text: str) -> tuple[str, Setting | None]:
    """Return the key and value of ``key=value``.

    The value is read as TOML (``3``, ``0.5``, ``true``, ``[1, 2]``, ``"text"``) and taken as a
    string if it is not; an empty value is None and means: back to the service's own.

    Raises:
        ClusterError: no ``=``, a bad key, or a value that is no scalar or list of scalars.

    """
    key, equals, raw = text.partition("=")
    key, raw = key.strip(), raw.strip()
    if not equals or not _KEY.fullmatch(key):
        raise ClusterError(f"the study setting '{text}' is not of the form key=value")
    if not raw:
        return key, None
    try:
        table = tomllib.loads(f"value = {raw}")
        value = table["value"] if len(table) == 1 else raw
    except tomllib.TOMLDecodeError:
        value = raw
    if not _is_setting(value):
        raise ClusterError(
            f"the study setting '{text}' must be a number, true or false, a text, or a list of them"
        )
    return key, value


def merge(known: Mapping[str, Setting], overrides: Iterable[str]) -> dict[str, Setting]:
    """Return the settings after ``key=value`` overrides; ``key=`` drops one."""
    merged = dict(known)
    for text in overrides:
        key, value = parse(text)
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def to_toml(value: Setting) -> str:
    """Return a value as TOML."""
    if isinstance(value, list):
        return f"[{', '.join(to_toml(item) for item in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    return repr(value)


def quote(text: str) -> str:
    """Return a TOML basic string; JSON's escapes are a subset of TOML's, DEL apart."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def _is_setting(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, bool | int | float | str) for item in value)
    return isinstance(value, bool | int | float | str)

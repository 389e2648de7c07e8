"""Settings from TOML (deploy/etc/report.toml) or options."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo


class SettingsError(Exception):
    """The settings cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Settings:
    """Where a report reads and writes."""

    database: str
    state: Path
    nights: Path
    site: str = "this site"
    processes: int = 0
    """Evaluating; 0: one a processor."""
    keep_nights: int = 0
    """Kept; 0: all."""


SECTIONS: dict[str, dict[str, type]] = {
    "database": {"url": str},
    "report": {
        "site": str,
        "state": str,
        "nights": str,
        "processes": int,
        "keep_nights": int,
    },
}
"""Every key there is."""


def read(path: Path) -> dict[str, Any]:
    """The file's keys by name; ``[database] url`` is ``database``.

    Raises:
        SettingsError: it cannot be read, or has a key that is not known.
    """
    try:
        told = tomllib.loads(_text(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    found: dict[str, Any] = {}
    for section, keys in told.items():
        known = SECTIONS.get(section)
        if known is None or not isinstance(keys, dict):
            raise SettingsError(
                f"{path}: [{section}] is not one of {', '.join(SECTIONS)}"
                f"{_nearest(section, SECTIONS)}"
            )
        for key, value in keys.items():
            if key not in known:
                raise SettingsError(
                    f"{path}: [{section}] has no key {key!r}; it has {', '.join(known)}"
                    f"{_nearest(key, known)}"
                )
            # A flag is a number to Python, and none to whoever wrote it.
            if type(value) is not known[key]:
                raise SettingsError(
                    f"{path}: [{section}] {key} = {value!r} is not of type {known[key].__name__}"
                )
            found["database" if section == "database" else key] = value
    return found


def _text(content: bytes) -> str:
    """A file's text, in UTF-8 with or without a byte-order mark.

    Raises:
        ValueError: it is in another encoding.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or 0 in content[:2]:
        raise ValueError(
            "it is in UTF-16, and has to be in UTF-8: convert it with `iconv -f UTF-16 -t UTF-8`"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"line {line} is not in UTF-8, as the whole file has to be: convert it, from Latin-1"
            " with `iconv -f ISO-8859-1 -t UTF-8`"
        ) from error


def settings(told: dict[str, Any]) -> Settings:
    """Settings by their names.

    Raises:
        SettingsError: one is missing or out of its range.
    """
    missing = [name for name in ("database", "state", "nights") if not told.get(name)]
    if missing:
        raise SettingsError(
            f"not told: {', '.join(missing)}; give --config FILE, or --database URL --state DIR"
            " --nights DIR"
        )
    for name in ("processes", "keep_nights"):
        if told.get(name, 0) < 0:
            raise SettingsError(f"{name} = {told[name]}: a number from 0 is expected")
    return Settings(**{**told, "state": Path(told["state"]), "nights": Path(told["nights"])})


def shown(chosen: Settings, origins: Mapping[str, str]) -> str:
    """Settings as TOML that ``read`` reads, each with where it is from; without secrets.

    ``origins``: by the settings' names; what is not among them is a default.
    """
    lines = []
    for section, keys in SECTIONS.items():
        lines.append(f"[{section}]")
        for key in keys:
            name = "database" if section == "database" else key
            value = getattr(chosen, name)
            text = str(value) if isinstance(value, int) else _quoted(str(value))
            if name == "database":
                text = _quoted(without_secrets(chosen.database))
            lines.append(f"{key} = {text} # {origins.get(name, 'default')}")
    return "\n".join(lines) + "\n"


def without_secrets(database: str) -> str:
    """A connection string without password and keys' passwords; hidden if it is none."""
    hidden = "***"
    try:
        parts: dict[str, Any] = {**conninfo_to_dict(database)}
    except ProgrammingError:
        return hidden
    secrets = [name for name in parts if name.endswith("password")]
    if not secrets:
        return database
    return make_conninfo(**parts | dict.fromkeys(secrets, hidden))


def _quoted(text: str) -> str:
    # JSON's escapes are TOML's too; TOML also wants this one.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""

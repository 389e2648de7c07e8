"""The parts of the tables: those that constants are chosen on, and those held out."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from peers.tables import Table, TableError

_FILE = Path(__file__).with_name("tables.toml")
_TREE = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Part:
    """A part's tables that were given, and the names of the others."""

    title: str
    tables: list[Table]
    not_given: list[str]

    def missing(self) -> list[str]:
        """What to print about the others."""
        return ["", f"Not given: {', '.join(self.not_given)}."] if self.not_given else []


def split(tables: list[Table]) -> list[Part]:
    """The parts, in the file's order of tables; TableError for a table that is in none."""
    parts = tomllib.loads(_FILE.read_text("utf-8"))
    known = {name for names in parts.values() for name in names}
    unknown = [f"{on.name} ({on.path})" for on in tables if on.name not in known]
    if unknown:
        raise TableError(
            f"{', '.join(unknown)}: in no part of {_FILE}: add the name to `development`, or to "
            "`held_out` if nobody has looked at it, or leave the table out"
        )
    by_name = {on.name: on for on in tables}
    return [
        Part(
            part.replace("_", " ").capitalize(),
            [by_name[name] for name in names if name in by_name],
            [name for name in names if name not in by_name],
        )
        for part, names in parts.items()
    ]


def is_of_the_tree(on: Table) -> bool:
    """Whether the tree has the table, or the program that writes it."""
    return on.path.resolve().is_relative_to(_TREE)

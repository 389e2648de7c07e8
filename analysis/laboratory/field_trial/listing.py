"""The trial's list: which programs, on which storage, and what is compared (``trial.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Setting = dict[str, str]
"""Values of an accelerator's parameters; those that are not named have their defaults."""


class ListError(Exception):
    """What is wrong in the list, and where."""


@dataclass(frozen=True)
class Cable:
    """What lies between the cluster and its storage."""

    delay_us: int
    """One way, in microseconds."""
    rate_mbit: int
    """Each way, in Mbit/s; 0: no limit."""


@dataclass(frozen=True)
class Storage:
    """Where the applications of the list find their input or leave their output."""

    name: str
    title: str
    what: str
    cable: Cable | None
    """None: it is on the node."""
    read_iops: int
    """Requests that are read in a second; 0: no limit."""


@dataclass(frozen=True)
class Application:
    """A program, its work, and what is compared."""

    name: str
    program: str
    storage: Storage
    inputs: tuple[str, ...]
    what: str
    accelerator: str
    each: str
    """Shell commands at the beginning of each job, before the program."""
    script: str
    grid: tuple[Setting, ...]
    drawn: bool
    """It was not chosen for a weakness of its default."""


def read(path: Path, catalogue: Path) -> list[Application]:
    """Return the list's applications in order; ``catalogue`` has the accelerators' files.

    Raises:
        ListError: an entry that is wrong, a grid that its accelerator does not have.

    """
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ListError(f"{path.name}: {error}") from error
    storages = {name: _storage(name, table) for name, table in told["storage"].items()}
    applications = [_application(table, storages) for table in told["application"]]
    names = [application.name for application in applications]
    for name in names:
        if names.count(name) > 1:
            raise ListError(f"{path.name}: two applications are called {name}; rename one")
    for application in applications:
        # With @risk after its name an accelerator has all values of its file.
        name = application.accelerator.removesuffix("@risk")
        _check_grid(application, catalogue / f"{name}.toml")
    return applications


def _storage(name: str, table: dict[str, Any]) -> Storage:
    cable = Cable(**table["cable"]) if "cable" in table else None
    return Storage(name, table["title"], table["what"], cable, table.get("read_iops", 0))


def _application(table: dict[str, Any], storages: dict[str, Storage]) -> Application:
    name = table.get("name", "an application without a name")
    try:
        return Application(
            name=table["name"],
            program=table["program"],
            storage=storages[table["storage"]],
            inputs=tuple(table["inputs"]),
            what=table["what"],
            accelerator=table["accelerator"],
            each=table.get("each", ""),
            script=table["script"].strip(),
            grid=tuple(texts(setting) for setting in table["grid"]),
            drawn=table.get("drawn", False),
        )
    except KeyError as missing:
        raise ListError(f"{name}: {missing} is missing, or is no storage of the list") from missing


def texts(setting: Mapping[str, Any]) -> Setting:
    """Return a setting with its values as texts, as users type them."""
    return {name: str(value) for name, value in setting.items()}


def _check_grid(application: Application, file: Path) -> None:
    if not file.exists():
        raise ListError(f"{application.name}: there is no accelerator {application.accelerator}")
    parameters = tomllib.loads(file.read_text(encoding="utf-8"))["parameters"]
    values = {each["name"]: [str(value) for value in each["values"]] for each in parameters}
    for setting in application.grid:
        for name, value in setting.items():
            if value not in values.get(name, []):
                raise ListError(
                    f"{application.name}: {application.accelerator} has no {name}={value};"
                    f" it has {values.get(name, sorted(values))}"
                )

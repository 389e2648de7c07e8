"""Each study's evaluation, in an SQLite database.

It stands with its grounds and is made again on others: a killed night goes on where it was.
"""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

FILE = "evaluations-1.sqlite"
"""The number is the version of the table."""


class StateError(Exception):
    """The directory cannot be used; the message says what to do."""


class State:
    """The directory, opened by the one process that may."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Use :meth:`open`."""
        self._sqlite = connection

    @classmethod
    @contextmanager
    def open(cls, directory: Path) -> Iterator[State]:
        """Open the directory; make it where it does not exist.

        Raises:
            StateError: it cannot be written, or another report is being made with it.
        """
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (directory / "lock").open("w")
        except OSError as error:
            raise StateError(f"the state directory {directory} cannot be used: {error}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise StateError(
                    f"another io-autotune-report works with {directory}: wait until it has ended,"
                    " or give another --state"
                ) from error
            with closing(_connect(directory)) as connection:
                yield cls(connection)

    def grounds(self) -> dict[int, str]:
        """By study, what its evaluation was made on."""
        return dict(self._sqlite.execute("select study_id, grounds from results"))

    def result(self, study_id: int) -> bytes:
        """A study's evaluation; of a large site all at once would take memory."""
        found = self._sqlite.execute("select result from results where study_id = ?", (study_id,))
        return bytes(found.fetchone()[0])

    def keep(self, results: Iterable[tuple[int, str, bytes]]) -> None:
        """Keep evaluations: study, grounds, result."""
        with self._sqlite:
            self._sqlite.executemany("insert or replace into results values (?, ?, ?)", results)


def _connect(directory: Path) -> sqlite3.Connection:
    # Other versions kept other things.
    for path in directory.glob("*.sqlite*"):
        if not path.name.startswith(FILE):
            path.unlink()
    try:
        connection = sqlite3.connect(directory / FILE)
        # What is replaced names users who may have been forgotten since.
        connection.execute("pragma secure_delete = on")
        connection.execute(
            "create table if not exists results"
            " (study_id integer primary key, grounds text not null, result blob not null)"
        )
    except sqlite3.Error as error:
        raise StateError(
            f"{directory / FILE} cannot be used: {error}; remove it, and all is evaluated anew"
        ) from error
    return connection

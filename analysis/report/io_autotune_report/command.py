"""``io-autotune-report``: makes a night's report, or that of a range of days."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from io_autotune_report.analyse.assembly import Occasion, assemble
from io_autotune_report.load import DatabaseError, State, StateError, database
from io_autotune_report.progress import Bar
from io_autotune_report.render.archive import Archive, ArchiveError, Span
from io_autotune_report.settings import Settings, SettingsError, read, settings, shown

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

FAILED = 1
MISUSED = 2


def main(arguments: list[str] | None = None) -> int:
    """Make the report; return the exit status."""
    try:
        return _run(_parser().parse_args(arguments))
    except OutputLostError as error:
        return _fail(str(error), FAILED)


class OutputLostError(Exception):
    """What was asked for is not where it was to be written."""


class _Parser(argparse.ArgumentParser):
    """Whose help is what was asked for, and whose complaints change nothing if they are lost."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        del file
        _print(self.format_help())

    def error(self, message: str) -> NoReturn:
        self.exit(MISUSED, f"{self.format_usage()}{self.prog}: error: {message}\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        if message:
            _say(message)
        sys.exit(status)


def _run(options: argparse.Namespace) -> int:
    try:
        told = {} if options.config is None else read(options.config)
        origins = {name: _section(options.config, name) for name in told}
        for name in ("database", "state", "nights", "site", "processes"):
            if (value := getattr(options, name)) is not None:
                told[name] = value
                origins[name] = f"command line: --{name}"
        span = _span(options.first, options.last, _today())
        _bounds(span)
        chosen = settings(told)
        if options.print_config:
            _print(shown(chosen, origins))
            return 0
    except SettingsError as error:
        return _fail(str(error), MISUSED)
    try:
        _print(f"{report(chosen, span) / 'index.html'}\n")
    except (DatabaseError, StateError, ArchiveError) as error:
        return _fail(str(error), FAILED)
    return 0


def report(chosen: Settings, span: Span) -> Path:
    """Evaluate what is new, write the folder; return it.

    Raises:
        DatabaseError, StateError, ArchiveError: what cannot be read or written.
    """
    archive = Archive(chosen.nights)
    first, last = _bounds(span)
    occasion = Occasion(
        site=chosen.site,
        first=first,
        last=last,
        night=span.last,
        before=archive.before(span.first),
        generated_at=datetime.now(UTC),
    )
    with State.open(chosen.state) as state:
        _rename(chosen, archive)
        document = assemble(
            chosen.database, state, occasion, chosen.processes, Bar("evaluating", "verdicts")
        )
    folder = archive.write(document, span)
    archive.forget(chosen.keep_nights)
    return folder


def _rename(chosen: Settings, archive: Archive) -> None:
    """Write kept reports anew that name users who were forgotten since."""
    with database.connect(chosen.database) as connection:
        forgotten = database.forgotten(connection)
    unreadable = archive.rename(forgotten)
    if unreadable:
        _say(
            "io-autotune-report: users were forgotten whom these reports of another version may"
            f" name; remove them from {chosen.nights}: {', '.join(unreadable)}\n"
        )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="io-autotune-report",
        description="Makes the report of yesterday, or of the days from --first to --last.",
        epilog="Options go before what the file says. Exit status: 0; 1 if the report could not be"
        " made; 2 if options or settings are wrong.",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="as deploy/etc/report.toml")
    parser.add_argument("--database", metavar="URL", help="of the service's database")
    parser.add_argument("--state", type=Path, metavar="DIR", help="keeps what has been read")
    parser.add_argument("--nights", type=Path, metavar="DIR", help="gets a folder for each report")
    parser.add_argument("--site", metavar="NAME", help="what the report calls the site")
    parser.add_argument("--processes", type=int, metavar="N", help="that evaluate; 0: all cores")
    parser.add_argument(
        "--print-config",
        action="store_true",
        help="print the settings in force, and where each is from, and exit",
    )
    parser.add_argument(
        "--first", type=date.fromisoformat, metavar="DATE", help="a day, 2026-11-20"
    )
    parser.add_argument("--last", type=date.fromisoformat, metavar="DATE", help="included")
    return parser


def _section(path: Path, name: str) -> str:
    """Where a file has a setting."""
    shown_path = "".join(letter if letter.isprintable() else "?" for letter in str(path))
    return f"{shown_path} [{'database' if name == 'database' else 'report'}]"


def _span(first: date | None, last: date | None, today: date) -> Span:
    """One of them alone is a day, none yesterday."""
    last = last or first or today - timedelta(days=1)
    first = first or last
    if first > last:
        raise SettingsError(f"--first {first} is after --last {last}")
    if last > today:
        raise SettingsError(f"--last {last} has not come yet: today is {today}")
    return Span(first, last)


def _today() -> date:
    return datetime.now().astimezone().date()


def _bounds(span: Span) -> tuple[datetime, datetime]:
    """The first instant of a range, and the first after it."""
    first, last = _first_instant(span.first), _first_instant(span.last + timedelta(days=1))
    if first == last:
        days = str(span.first) if span.first == span.last else f"{span.first} to {span.last}"
        raise SettingsError(f"{days}: the site's clock skipped it; choose another day")
    return first, last


def _first_instant(day: date) -> datetime:
    """By the site's clock, which the system is set to.

    Mostly that is midnight. Where clocks are put forward at midnight there is none, and the day
    begins later; where they are put back to it there are two, and it begins with the first. So the
    moment is searched for at which the date becomes this one.
    """
    about = datetime.combine(day, time.min, tzinfo=UTC)
    before, after = int((about - _FAR).timestamp()), int((about + _FAR).timestamp())
    while after - before > 1:
        middle = (before + after) // 2
        if _local(middle).date() < day:
            before = middle
        else:
            after = middle
    return _local(after)


_FAR = timedelta(hours=50)
"""From a day's midnight in UTC, beyond its midnight by any clock, even one that skips a day."""


def _local(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).astimezone()


def _print(text: str) -> None:
    """Write what was asked for. A reader that has read enough loses nothing.

    Raises:
        OutputLostError: it is lost.
    """
    if sys.stdout is None:
        raise OutputLostError("the answer cannot be written: standard output is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        _abandon(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            why = f"the answer cannot be written: {error.strerror}"
            raise OutputLostError(why) from error


def _fail(message: str, status: int) -> int:
    _say(f"io-autotune-report: {message}\n")
    return status


def _say(text: str) -> None:
    """Say a text on stderr; where that takes nothing it is lost, and nothing else is."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            _abandon(sys.stderr)


def _abandon(stream: TextIO) -> None:
    """Let a stream lead nowhere: Python flushes it again at its end, and would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())

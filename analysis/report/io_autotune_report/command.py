"""``io-autotune-report``: makes a night's report, or that of a range of days."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from io_autotune_report.analyse.assembly import Occasion, assemble
from io_autotune_report.load import DatabaseError, State, StateError
from io_autotune_report.progress import Bar
from io_autotune_report.render.archive import Archive, ArchiveError, Span
from io_autotune_report.settings import Settings, SettingsError, read, settings, shown

FAILED = 1
MISUSED = 2


def main(arguments: list[str] | None = None) -> int:
    """Make the report; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        told = {} if options.config is None else read(options.config)
        origins = {name: _section(options.config, name) for name in told}
        for name in ("database", "state", "nights", "site", "processes"):
            if (value := getattr(options, name)) is not None:
                told[name] = value
                origins[name] = f"command line: --{name}"
        span = _span(options.first, options.last, _today())
        chosen = settings(told)
        if options.print_config:
            print(shown(chosen, origins), end="")
            return 0
    except SettingsError as error:
        return _fail(str(error), MISUSED)
    try:
        print(report(chosen, span) / "index.html")
    except (DatabaseError, StateError, ArchiveError) as error:
        return _fail(str(error), FAILED)
    return 0


def report(chosen: Settings, span: Span) -> Path:
    """Evaluate what is new, write the folder; return it.

    Raises:
        DatabaseError, StateError, ArchiveError: what cannot be read or written.
    """
    archive = Archive(chosen.nights)
    occasion = Occasion(
        site=chosen.site,
        first=_midnight(span.first),
        last=_midnight(span.last + timedelta(days=1)),
        night=span.last,
        before=archive.before(span.first),
        generated_at=datetime.now(UTC),
    )
    with State.open(chosen.state) as state:
        document = assemble(
            chosen.database, state, occasion, chosen.processes, Bar("evaluating", "verdicts")
        )
    folder = archive.write(document, span)
    archive.forget(chosen.keep_nights)
    return folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
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


def _midnight(day: date) -> datetime:
    """By the site's clock, which the system is set to."""
    return datetime.combine(day, time.min).astimezone()


def _fail(message: str, status: int) -> int:
    print(f"io-autotune-report: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())

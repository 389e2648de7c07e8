"""The directory of nights: folders, an index, and the link ``latest``.

A folder appears at once, by a rename; the next night removes what a killed one left. The latest
night has a page for each user beside its own, which the service gives to that user; earlier nights
lose theirs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import msgspec

from io_autotune_report.document import Night, Report, Study
from io_autotune_report.forgotten import Forgotten, names_any, without_names
from io_autotune_report.json_text import dumps
from io_autotune_report.own_report import own_report, owners
from io_autotune_report.previous_report import Earlier
from io_autotune_report.render import mail, page, tables

UNFINISHED = ".unfinished-"
REPLACED = ".replaced-"
LATEST = "latest"
USERS = "users"
"""In the latest night: ``UID.html`` for each user, as the service looks for it."""


class ArchiveError(Exception):
    """The directory cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Span:
    """The days of a report, both included."""

    first: date
    last: date

    @property
    def folder(self) -> str:
        """The name of its folder."""
        if self.first == self.last:
            return self.last.isoformat()
        return f"{self.first.isoformat()}_{self.last.isoformat()}"


@dataclass(frozen=True)
class _Told:
    """``night.json``."""

    night: Night
    history: list[tuple[str, float]]


class Archive:
    """The directory, as far as it has come."""

    def __init__(self, directory: Path) -> None:
        """``directory`` is made where it does not exist."""
        self._directory = directory

    def before(self, first: date) -> Earlier | None:
        """The latest readable night before a day."""
        for folder in reversed(self._single()):
            if date.fromisoformat(folder) < first:
                try:
                    text = (self._directory / folder / "night.json").read_text(encoding="utf-8")
                    told = msgspec.json.decode(text, type=_Told)
                    studies = tables.read(self._directory / folder / "studies.csv")
                    return Earlier(told.night, told.history, studies)
                except (OSError, KeyError, ValueError):
                    # Written by another version, or not ours: an older one will do.
                    continue
        return None

    def write(self, report: Report, span: Span) -> Path:
        """Write a report's folder, then the index and the link; return the folder.

        Raises:
            ArchiveError: the directory cannot be written.
        """
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._sweep()
            self._replace(report, span.folder)
            self._link_latest()
            for folder in self._single()[:-1]:
                shutil.rmtree(self._directory / folder / USERS, ignore_errors=True)
            self._write_index()
        except OSError as error:
            raise ArchiveError(
                f"the night cannot be written to {self._directory}: {error}; --nights must be"
                " a directory that io-autotune-report may write, with room"
            ) from error
        return self._directory / span.folder

    def forget(self, keep: int) -> None:
        """Remove the folders of all but the latest ``keep`` single nights; 0 removes none.

        Raises:
            ArchiveError: they cannot be removed.
        """
        gone = self._single()[:-keep] if keep else []
        if not gone:
            return
        try:
            for folder in gone:
                shutil.rmtree(self._directory / folder)
            self._write_index()
        except OSError as error:
            raise ArchiveError(
                f"old nights cannot be removed from {self._directory}: {error}"
            ) from error

    def rename(self, forgotten: Mapping[int, Forgotten]) -> list[str]:
        """Write the folders anew that name a forgotten user; return those that cannot be read.

        Raises:
            ArchiveError: the directory cannot be written.
        """
        if not forgotten or not self._directory.is_dir():
            return []
        unreadable = []
        try:
            self._sweep()
            for folder in sorted(
                path.parent for path in self._directory.glob("[0-9]*/report.json")
            ):
                try:
                    if not names_any(tables.users(folder / "studies.csv"), forgotten):
                        continue
                    report = msgspec.json.decode((folder / "report.json").read_bytes(), type=Report)
                except (OSError, KeyError, ValueError):
                    # Of another version. It may name somebody, and nobody else writes it anew.
                    unreadable.append(folder.name)
                    continue
                self._replace(without_names(report, forgotten), folder.name)
            self._write_index()
        except OSError as error:
            raise ArchiveError(
                f"kept reports cannot be written anew in {self._directory}: {error}; they name"
                " users who were forgotten"
            ) from error
        return unreadable

    def _replace(self, report: Report, folder: str) -> None:
        """Write a folder, in the place of an earlier one."""
        unfinished = self._directory / f"{UNFINISHED}{folder}"
        unfinished.mkdir()
        _write_files(report, Night.of(report, folder), unfinished)
        if _is_day(folder) and not any(later > folder for later in self._single()):
            _write_own_pages(report, unfinished / USERS)
        _put(unfinished, self._directory / folder, self._directory / f"{REPLACED}{folder}")

    def _sweep(self) -> None:
        for path in self._directory.iterdir():
            if path.name.startswith((UNFINISHED, REPLACED)):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    def _single(self) -> list[str]:
        """Folders of one night each, ascending."""
        if not self._directory.is_dir():
            return []
        return sorted(path.name for path in self._directory.iterdir() if _is_day(path.name))

    def _link_latest(self) -> None:
        """Ranges are never the latest."""
        days = self._single()
        if days:
            link = self._directory / f"{UNFINISHED}{LATEST}"
            link.symlink_to(days[-1])
            link.replace(self._directory / LATEST)

    def _write_index(self) -> None:
        path = self._directory / f"{UNFINISHED}index.html"
        nights = sorted(self._nights(), key=lambda night: (night.last, night.first), reverse=True)
        _write_text(path, page.render_index(nights))
        path.replace(self._directory / "index.html")

    def _nights(self) -> Iterator[Night]:
        for path in self._directory.glob("[0-9]*/night.json"):
            try:
                yield msgspec.json.decode(path.read_text(encoding="utf-8"), type=_Told).night
            except ValueError:
                # Of another version: its page is still there, and the index has no line for it.
                continue


def _write_files(report: Report, night: Night, directory: Path) -> None:
    _write_text(directory / "night.json", dumps(_Told(night, report.history)) + "\n")
    tables.write(report, directory)
    _write_text(directory / "mail.txt", mail.body(report))
    with (directory / "report.json").open("w", encoding="utf-8") as file:
        file.writelines(json_parts(report))
    _write_text(directory / "index.html", page.render(report, index="../index.html"))


def _write_own_pages(report: Report, directory: Path) -> None:
    """Write each user's page, of their studies alone."""
    directory.mkdir()
    for owner in owners(report):
        text = page.render(own_report(report, owner), owner=owner.name)
        (directory / f"{owner.uid}.html").write_text(text, encoding="utf-8")


def json_parts(report: Report) -> Iterator[str]:
    """A study at a time: the whole would take memory."""
    without = {name: value for name, value in vars(report).items() if name != "studies"}
    parts = {name: dumps(value) for name, value in without.items()}
    yield "{"
    for name, text in parts.items():
        yield f'"{name}":{text},\n'
    yield '"studies":['
    for place, study in enumerate(report.studies):
        yield (",\n" if place else "\n") + study_json(study)
    yield "\n]}\n"


def study_json(study: Study) -> str:
    """A study's JSON, in one line."""
    return dumps(study)


def _put(unfinished: Path, folder: Path, aside: Path) -> None:
    """Replace the folder, if there was one."""
    if folder.exists():
        folder.rename(aside)
    unfinished.rename(folder)
    if aside.exists():
        shutil.rmtree(aside)


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _is_day(name: str) -> bool:
    try:
        return date.fromisoformat(name).isoformat() == name
    except ValueError:
        return False

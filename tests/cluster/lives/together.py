"""The combinations of one test module, whose jobs live all at once, and a test for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lives.cell import Cell, live
from lives.record import Record
from lives.table import Entry

if TYPE_CHECKING:
    from harness import Site


class Lives:
    """What became of the jobs of a module's combinations on one cluster."""

    def __init__(self, site: Site, request: pytest.FixtureRequest, record: Record) -> None:
        """Let the jobs live that the module's selected tests ask for by their ``entry``.

        On clusters of another make-up their ``site`` names it.
        """
        self._make_up = site.make_up
        self._record = record
        cells = [
            Cell(entry.kind, entry.end, site.make_up, _runs_in(item), site)
            for item in request.session.items
            if isinstance(item, pytest.Function) and item.module is request.module
            for entry in [_entry_of(item, site.make_up)]
            if entry is not None and item.get_closest_marker("skip") is None
        ]
        self._results = live(site, cells)

    def check(self, entry: Entry) -> None:
        """Fail with what went wrong for one job, or where lives.md says otherwise."""
        key = (entry.kind.name, entry.end.name, self._make_up)
        result = self._results[key]
        if isinstance(result, Exception):
            raise result
        self._record.take(key, result)


def _entry_of(item: pytest.Item, make_up: str) -> Entry | None:
    callspec = getattr(item, "callspec", None)
    if callspec is None or callspec.params.get("site", make_up) != make_up:
        return None
    entry: Entry | None = callspec.params.get("entry")
    return entry


def _runs_in(item: pytest.Item) -> str:
    return "slow" if item.get_closest_marker("slow") else "test"

"""Days by the site's clock, those without a midnight and with two included."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from io_autotune_report import command
from io_autotune_report.render.archive import Span
from io_autotune_report.settings import SettingsError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the site's clock."""

    def set_to(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield set_to
    monkeypatch.undo()
    time.tzset()


def bounds(first: str, last: str | None = None) -> tuple[str, str]:
    span = Span(date.fromisoformat(first), date.fromisoformat(last or first))
    begins, ends = command._bounds(span)
    return begins.isoformat(), ends.isoformat()


@pytest.mark.parametrize(
    ("zone", "day", "begins", "ends"),
    [
        # No midnight: the clock goes from 23:59:59 to 01:00.
        (
            "America/Santiago",
            "2026-09-06",
            "2026-09-06T01:00:00-03:00",
            "2026-09-07T00:00:00-03:00",
        ),
        (
            "America/Santiago",
            "2026-09-05",
            "2026-09-05T00:00:00-04:00",
            "2026-09-06T01:00:00-03:00",
        ),
        ("Africa/Cairo", "2026-04-24", "2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"),
        ("Asia/Beirut", "2026-03-29", "2026-03-29T01:00:00+03:00", "2026-03-30T00:00:00+03:00"),
        # Two midnights: from 01:00 back to 00:00.
        ("America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"),
        # An hour of the day before twice: from 24:00 back to 23:00.
        (
            "America/Santiago",
            "2026-04-04",
            "2026-04-04T00:00:00-03:00",
            "2026-04-05T00:00:00-04:00",
        ),
        # Usual ones.
        ("Europe/Berlin", "2026-03-29", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"),
        (
            "Australia/Lord_Howe",
            "2026-10-04",
            "2026-10-04T00:00:00+10:30",
            "2026-10-05T00:00:00+11:00",
        ),
        (
            "Pacific/Kiritimati",
            "2026-01-01",
            "2026-01-01T00:00:00+14:00",
            "2026-01-02T00:00:00+14:00",
        ),
        ("Etc/GMT+12", "2026-01-01", "2026-01-01T00:00:00-12:00", "2026-01-02T00:00:00-12:00"),
        ("UTC", "2026-11-20", "2026-11-20T00:00:00+00:00", "2026-11-21T00:00:00+00:00"),
    ],
)
def test_a_day_begins_with_its_first_instant(
    clock: Callable[[str], None], zone: str, day: str, begins: str, ends: str
) -> None:
    clock(zone)
    assert bounds(day) == (begins, ends)


def test_days_follow_each_other_by_every_clock(clock: Callable[[str], None]) -> None:
    """Each moment is of one day, and of the right one, around every change of every clock."""
    for zone in sorted(available_timezones()):
        info = ZoneInfo(zone)
        noons = [datetime(2026, 1, 1, 12, tzinfo=info) + timedelta(days=n) for n in range(365)]
        changes = [
            noon.date()
            for noon, next_noon in pairwise(noons)
            if noon.utcoffset() != next_noon.utcoffset()
        ]
        clock(zone)
        for day in changes:
            for one in (day, day + timedelta(days=1)):
                begins, ends = command._bounds(Span(one, one))
                assert begins.astimezone(info).date() == one, zone
                last = (ends - timedelta(seconds=1)).astimezone(info)
                assert last.date() == one, zone
                before = (begins.astimezone(UTC) - timedelta(seconds=1)).astimezone(info)
                assert before.date() == one - timedelta(days=1), zone
                assert timedelta(hours=22) <= ends - begins <= timedelta(hours=26), zone


def test_a_day_that_the_clock_skipped_is_refused(clock: Callable[[str], None]) -> None:
    clock("Pacific/Apia")
    with pytest.raises(SettingsError, match="2011-12-30: the site's clock skipped it"):
        bounds("2011-12-30")
    assert bounds("2011-12-29", "2011-12-31") == (
        "2011-12-29T00:00:00-10:00",
        "2012-01-01T00:00:00+14:00",
    )

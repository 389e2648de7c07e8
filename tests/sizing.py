"""Puts the table of docs/sizing.md in place: python3 tests/sizing.py.

Its numbers are those of docs/measurements/bench.md, times how much a site does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "docs" / "measurements" / "bench.md"
PAGE = ROOT / "docs" / "sizing.md"
BEGIN, END = "<!-- tests/sizing.py writes what follows. -->\n", "<!-- It ends here. -->\n"

DEADLINE_MS = 2000.0
"""A prolog's."""
BUSIEST_HOUR = 0.1
"""The share of a day's jobs that start in its busiest hour."""
JOBS_A_DAY = (10_000, 100_000, 1_000_000)
AT_ONCE = (1_000, 10_000)


@dataclass(frozen=True)
class Measured:
    """What the benchmark says of one life, of one start among thousands, and of one run's rows."""

    life: dict[str, float]
    """Milliseconds of processor time, by who used it."""
    node: dict[str, float]
    task: dict[str, float]
    kib: float
    """Of the database, for a run."""


def read(bench: str) -> Measured:
    """Return what the benchmark's page says."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in bench.splitlines()
        if line.startswith("| ")
    ]

    def row(start: str) -> list[str]:
        (found,) = [cells for cells in rows if cells[0].startswith(start)]
        return found

    def parts(start: str, of: str) -> dict[str, float]:
        told = row(start)[5].partition(f"ms of processor a {of}: ")[2].partition(";")[0]
        return {who: float(ms) for who, ms in re.findall(r"([a-z' -]+?) ([\d.]+)(?:, |$)", told)}

    return Measured(
        life=parts("lives a second, with MUNGE", "life"),
        node=parts("10000 nodes ask", "node"),
        task=parts("10000 tasks of an array", "task"),
        kib=float(row("the database's size for a run")[1].split()[0]),
    )


def table(measured: Measured) -> str:
    """Return the tables of the page."""
    service = measured.life["io-autotuned"] + measured.life["munged"]
    columns = (
        "jobs a day",
        "a second, in the busiest hour",
        "service and munged",
        "PostgreSQL",
        "database, a year",
    )
    lines = [f"| {' | '.join(columns)} |", "| ---: | ---: | ---: | ---: | ---: |"]
    for jobs in JOBS_A_DAY:
        rate = jobs * BUSIEST_HOUR / 3600
        year = jobs * 365 * measured.kib / 2**20
        lines.append(
            f"| {jobs:,} | {rate:.1f} | {_of_a_processor(rate * service)} |"
            f" {_of_a_processor(rate * measured.life['postgresql'])} | {year:,.0f} GiB |"
        )
    lines += [
        "",
        "| at the same moment | processors, to be answered in time |",
        "| --- | ---: |",
    ]
    for what, costs in (
        ("nodes of a job", _serving(measured.node)),
        ("tasks of an array", _serving(measured.task)),
    ):
        for count in AT_ONCE:
            lines.append(f"| {count:,} {what} | {count * costs / DEADLINE_MS:.1f} |")
    return "\n".join(lines) + "\n"


def _serving(costs: dict[str, float]) -> float:
    return sum(ms for who, ms in costs.items() if who != "the nodes' sockets")


def _of_a_processor(ms_a_second: float) -> str:
    processors = f"{ms_a_second / 1e3:.2f}"
    return "below 0.01 processors" if processors == "0.00" else f"{processors} processors"


def renewed(page: str, measured: Measured) -> str:
    """Return the page with its tables."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, "docs/sizing.md has no marks for its tables"
    return f"{before}{BEGIN}\n{table(measured)}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(
        renewed(PAGE.read_text("utf-8"), read(BENCH.read_text("utf-8"))), encoding="utf-8"
    )

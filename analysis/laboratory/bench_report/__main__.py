"""``make -C analysis bench-report``: from nothing, of one more night, and with no news at all.

Runs under tests/with-postgres, into whose empty database it writes a generated year. Times are of
the program as a whole; memory is the most that all its processes had together, as their
proportional set size (what they share counts once), looked at ten times a second.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psycopg
from generated_site import Shape, assess, make, write
from generated_site.plan import DAY

ROOT = Path(__file__).parents[3]
LOOK = 0.1
"""Seconds between two looks at the memory."""


@dataclass(frozen=True)
class Cost:
    """A report's cost."""

    seconds: float
    processor_seconds: float
    memory: int
    """Bytes."""


def main() -> int:
    """Write the year, make the reports, print what they took; 1 if one failed."""
    parser = argparse.ArgumentParser(prog="bench_report", description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--studies", type=int, default=10_000)
    parser.add_argument("--applications", type=int, default=300)
    options = parser.parse_args()
    url = os.environ["DATABASE_URL"]
    shape = Shape(runs=options.runs, studies=options.studies, applications=options.applications)
    year = make(shape)
    last = (shape.days - 1) * DAY
    with (
        psycopg.connect(url, autocommit=True) as connection,
        tempfile.TemporaryDirectory(prefix="bench-report-", dir="/var/tmp") as directory,
    ):
        for migration in sorted((ROOT / "migrations").glob("*.sql")):
            with connection.transaction():
                connection.execute(migration.read_text())
        before = write(connection, year, before=last)
        _assess(url)
        counts = f"{len(year.studies):,} studies, {before:,} verdicts until the last night"
        print(f"{counts}\n", flush=True)
        print(f"{'':22}{'time':>10}{'processors':>14}{'memory':>12}")
        say("from nothing", report(url, Path(directory), shape.last - timedelta(days=1)))
        night = write(connection, year, last, shape.days * DAY)
        _assess(url)
        say(f"a night, {night:,} new", report(url, Path(directory), shape.last))
        say("the same night again", report(url, Path(directory), shape.last))
        nights = Path(directory) / "nights" / "latest"
        print()
        for path in sorted(nights.iterdir()):
            print(f"{path.name:16}{path.stat().st_size / 1e6:10.1f} MB")
    return 0


def _assess(url: str) -> None:
    """The service has done so after each verdict."""
    began = time.monotonic()
    assess(url)
    print(f"assessed by the service's code in {time.monotonic() - began:,.1f} s", flush=True)


def report(url: str, directory: Path, day: object) -> Cost:
    """Run the program as a site does."""
    argv = [sys.executable, "-m", "io_autotune_report.command", "--database", url]
    argv += ["--state", str(directory / "state"), "--nights", str(directory / "nights")]
    argv += ["--first", str(day), "--last", str(day)]
    used = _processor_seconds()
    began = time.monotonic()
    environment = os.environ | {"PYTHONPATH": str(ROOT / "analysis/report"), "OMP_NUM_THREADS": "1"}
    memory = 0
    with subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL) as process:
        while True:
            memory = max(memory, sum(_proportional(pid) for pid in _tree(process.pid)))
            try:
                status = process.wait(LOOK)
                break
            except subprocess.TimeoutExpired:
                continue
    if status != 0:
        sys.exit(f"bench_report: the report failed with status {status}")
    return Cost(time.monotonic() - began, _processor_seconds() - used, memory)


def say(what: str, cost: Cost) -> None:
    """Print a line of the table."""
    memory = f"{cost.memory / 2**20:,.0f} MiB"
    print(
        f"{what:22}{cost.seconds:8,.1f} s{cost.processor_seconds:12,.1f} s{memory:>12}", flush=True
    )


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _tree(int(child))


def _proportional(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes a generated year: ``python -m generated_site --database URL``."""

from __future__ import annotations

import argparse
import subprocess
import sys
from datetime import date

import psycopg

from generated_site import Shape, assess, make, write
from generated_site.plan import DAY
from generated_site.write import SiteError


def main() -> int:
    """Generate and write it; the exit status is 1 if that failed."""
    plain = Shape()
    parser = argparse.ArgumentParser(prog="generated_site", description=__doc__)
    parser.add_argument("--database", required=True, help="URL of an empty, migrated database")
    parser.add_argument("--seed", type=int, default=plain.seed)
    parser.add_argument("--last", type=date.fromisoformat, default=plain.last, help="the last day")
    parser.add_argument("--days", type=int, default=plain.days)
    parser.add_argument("--after", type=date.fromisoformat, help="write verdicts after this day")
    parser.add_argument("--until", type=date.fromisoformat, help="and until the end of this one")
    parser.add_argument("--applications", type=int, default=plain.applications)
    parser.add_argument("--studies", type=int, default=plain.studies)
    parser.add_argument("--runs", type=int, default=plain.runs)
    options = vars(parser.parse_args())
    url, after, until = (options.pop(name) for name in ("database", "after", "until"))
    year = make(Shape(**options))
    span = {
        name: ((day - year.shape.first).days + 1) * DAY
        for name, day in (("after", after), ("before", until))
        if day is not None
    }
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            judgements = write(connection, year, **span)
        assess(url)
    except (SiteError, psycopg.Error, OSError, subprocess.CalledProcessError) as error:
        print(f"generated_site: {error}", file=sys.stderr)
        return 1
    print(
        f"{len(year.studies)} studies, {year.started_at.size} runs, {judgements} judgements"
        f" from {year.shape.first} to {year.shape.last}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes a generated year: ``python -m generated_site --database URL``."""

from __future__ import annotations

import argparse
import sys
from datetime import date

import psycopg

from generated_site import Shape, make, write
from generated_site.write import SiteError


def main() -> int:
    """Generate and write it; the exit status is 1 if that failed."""
    plain = Shape()
    parser = argparse.ArgumentParser(prog="generated_site", description=__doc__)
    parser.add_argument("--database", required=True, help="URL of an empty, migrated database")
    parser.add_argument("--seed", type=int, default=plain.seed)
    parser.add_argument("--last", type=date.fromisoformat, default=plain.last, help="the last day")
    parser.add_argument("--days", type=int, default=plain.days)
    parser.add_argument("--applications", type=int, default=plain.applications)
    parser.add_argument("--studies", type=int, default=plain.studies)
    parser.add_argument("--runs", type=int, default=plain.runs)
    options = vars(parser.parse_args())
    url = options.pop("database")
    year = make(Shape(**options))
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            judgements = write(connection, year)
    except (SiteError, psycopg.Error) as error:
        print(f"generated_site: {error}", file=sys.stderr)
        return 1
    print(
        f"{len(year.studies)} studies, {year.started_at.size} runs, {judgements} judgements"
        f" from {year.shape.first} to {year.shape.last}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``make report-demo``: the nightly report of the demo's history, and of a generated year.

Runs under tests/with-postgres. The demo's database is copied there, because only the service's
account may read it where it is.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

from devcluster import Cluster, ClusterError
from devcluster.users import SERVICE_USER

ROOT = Path(__file__).parents[2]
LAST = date(2026, 11, 20)
"""The generated year's last day."""
NIGHTS = [LAST - timedelta(days=days) for days in (*range(56, 7, -7), *range(7, -1, -1))]
"""Of the year these nights are made: Fridays, then the last week's."""


class ReportFailed(Exception):
    """A command failed; it has said why."""


def main() -> int:
    """Make both, and print where the pages are; 1 if that failed."""
    parser = argparse.ArgumentParser(prog="demo.report", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where `make demo` runs")
    parser.add_argument("--nights", type=Path, required=True, help="gets the pages")
    parser.add_argument("--python", type=Path, required=True, help="that has what they need")
    options = parser.parse_args()
    nights = options.nights.absolute()
    try:
        _of_the_demo(options.root, options.python, nights / "demo")
        _of_a_year(options.python, nights / "year")
    except (ClusterError, ReportFailed) as error:
        print(f"demo.report: {error}", file=sys.stderr)
        return 1
    print("\nThe demo's night, and the generated year's nights:\n")
    for name in ("demo", "year"):
        print(f"    {nights / name / 'index.html'}")
    return 0


def _of_the_demo(root: Path, python: Path, nights: Path) -> None:
    cluster = Cluster(root, say=print)
    if not cluster.paths.record.is_file():
        print("The demo has not run yet; it takes some minutes.")
        _run([sys.executable, "-m", "demo", "--root", str(root)])
    ran = cluster.up()
    psql, *where = cluster.psql_argv()
    dump = [str(Path(psql).with_name("pg_dump")), *where, "--no-owner", "--no-privileges"]
    history = cluster.run_as(SERVICE_USER, dump).stdout
    if ran:
        cluster.down()
    url = _database("demo")
    _run([psql, "--quiet", "--set=ON_ERROR_STOP=1", f"--dbname={url}"], history)
    last = "select max(judged_at)::date from report.judgements"
    day = _run([psql, "--quiet", "--tuples-only", "--no-align", f"--dbname={url}", "-c", last])
    _report(python, url, nights, "the demo", date.fromisoformat(day.strip()))
    # Its users see their own pages: io-autotune report --mine.
    shutil.rmtree(cluster.paths.nights, ignore_errors=True)
    shutil.copytree(nights, cluster.paths.nights, symlinks=True)


def _of_a_year(python: Path, nights: Path) -> None:
    url = _database("year")
    for migration in sorted((ROOT / "migrations").glob("*.sql")):
        psql = ["psql", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1"]
        _run([*psql, f"--dbname={url}", f"--file={migration}"])
    module = ["-m", "generated_site", "--database", url, "--last", LAST.isoformat()]
    after: list[str] = []
    for night in NIGHTS:
        # What the service says of a study is kept as of now, so that each night is lived through.
        day = night.isoformat()
        print(_run([str(python), *module, *after, "--until", day]), end="")
        after = ["--after", day]
        _report(python, url, nights, "a generated site", night)


def _report(python: Path, url: str, nights: Path, site: str, day: date) -> None:
    # What was read of another year must not be taken for this one's: the state says so itself.
    state = nights.with_name(f"{nights.name}-state")
    argv = [str(python), "-m", "io_autotune_report.command", "--database", url, "--site", site]
    argv += ["--state", str(state), "--nights", str(nights), "--first", day.isoformat()]
    print(_run(argv), end="", flush=True)


def _database(name: str) -> str:
    """The URL of a new, empty database on the server that this runs under."""
    url = os.environ["DATABASE_URL"]
    _run(["psql", "--quiet", f"--dbname={url}", "--command", f"create database {name}"])
    scheme, rest = url.split("://", 1)
    authority, found, query = rest.partition("?")
    return f"{scheme}://{authority.split('/', 1)[0]}/{name}{found}{query}"


def _run(argv: list[str], stdin: str = "") -> str:
    """Run a command with the report's program at hand; return what it prints."""
    environment = os.environ | {
        "PYTHONPATH": ":".join(
            str(ROOT / part) for part in ("analysis/report", "analysis/laboratory", "tests")
        )
    }
    done = subprocess.run(
        argv, input=stdin, text=True, stdout=subprocess.PIPE, env=environment, check=False
    )
    if done.returncode != 0:
        raise ReportFailed(f"{' '.join(argv[:4])} ... ended with status {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())

"""``make soak-day``: PYTHONPATH=tests python3 -m day --root DIR --report PYTHON [--write PAGE]."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from bench.place import Place
from devcluster import Cluster, ClusterError, Variant

from day import launches, replicas
from day.day import Day
from day.invariants import Violated
from day.page import Outcome, render


def main() -> int:
    """Live through a day; 1 if an invariant was violated."""
    parser = argparse.ArgumentParser(prog="day", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where the private cluster lives")
    parser.add_argument(
        "--report", type=Path, required=True, help="a Python with the report's needs"
    )
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--steps", type=int, default=launches.STEPS, help="of its clock")
    parser.add_argument("--this-tree", action="store_true", help="restarts in place of upgrades")
    parser.add_argument("--write", type=Path, help="write this page")
    options = parser.parse_args()
    cluster = Cluster(options.root, nodes=1, variant=Variant(clock=True), say=_say)
    try:
        cluster.up()
        place = Place(cluster, replicas.BUILD, durable=False)
        versions = replicas.versions(place, older=not options.this_tree)
        plan = (options.seed, options.jobs, options.steps)
        with place.database(replicas.DATABASE):
            day = Day(place, versions, plan, options.report)
            problem = _lived(day)
        page = render(
            Outcome(
                seed=options.seed,
                jobs=options.jobs,
                steps=options.steps,
                versions=[version.name for version in versions],
                launches=list(day.launches.values()),
                counts=day.counts,
                violated=problem,
            ),
            day.checker.tallies,
        )
    except (ClusterError, subprocess.SubprocessError) as error:
        _say(f"day: {error}")
        return 1
    finally:
        cluster.destroy()
    print(page)
    if problem is not None:
        _say(f"day: VIOLATED: {problem}")
        return 1
    if options.write:
        options.write.write_text(page, encoding="utf-8")
    return 0


def _lived(day: Day) -> str | None:
    """Return what was violated, and how to repeat it."""
    try:
        day.run(_say)
    except Violated as violated:
        again = f"--seed={day.seed} --jobs={day.jobs} --steps={day.steps}"
        return f"{violated}\nthe same jobs and operations again: {again}"
    return None


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

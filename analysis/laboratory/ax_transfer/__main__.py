"""The command behind `make -C analysis ax-transfer`."""

import argparse
import json
import multiprocessing
import os
import sys
from importlib.metadata import version
from pathlib import Path

from peers.progress import progress

from ax_transfer import page
from ax_transfer.replay import jobs_of, run
from ax_transfer.study import AxTransfer


def main() -> int:
    """Runs the studies that are missing, and prints the page."""
    parser = argparse.ArgumentParser(prog="ax_transfer", description=__doc__)
    parser.add_argument("ours", type=Path, help="what `transfer --only-patterns` wrote")
    parser.add_argument("--patterns", type=Path, default=Path("analysis/data/patterns"))
    parser.add_argument("--seeds", type=int, default=5, help="Ax's studies of each pattern (5)")
    parser.add_argument("--kept", type=Path, default=Path("build/ax-transfer"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    ours = json.loads(arguments.ours.read_text("utf-8"))
    jobs = {
        of["pattern"]: list(jobs_of(of, arguments.patterns, arguments.kept, arguments.seeds))
        for of in ours
    }
    # Seed by seed, so that an interrupted run is even over patterns.
    missing = sorted(
        (job for of in jobs.values() for job in of if job.life() is None),
        key=lambda job: (job.seed, job.table),
    )
    arguments.kept.mkdir(parents=True, exist_ok=True)
    say = progress("ax-transfer")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        for done, _ in enumerate(pool.imap_unordered(run, missing), start=1):
            say(done, len(missing))
    lives = {name: [life for job in of if (life := job.life())] for name, of in jobs.items()}
    print(page.render(ours, lives, {name: version(name) for name in AxTransfer.packages}), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A Dask cluster of one worker that does one task: its arguments are options of sbatch."""

from __future__ import annotations

import sys
from pathlib import Path

from dask_jobqueue import SLURMCluster
from distributed import Client


def copy(text: str, to: str) -> int:
    """Write a file, and return how long it is."""
    return Path(to).write_text(text, encoding="utf-8")


def main() -> None:
    """Run the task in the worker's job; the cluster's end cancels it."""
    options = sys.argv[1:]
    with (
        SLURMCluster(
            queue="main",
            cores=1,
            memory="1GiB",
            walltime="00:05:00",
            interface="lo",
            job_extra_directives=options,
        ) as cluster,
        Client(cluster) as client,
    ):
        cluster.scale(jobs=1)
        client.submit(copy, "copied", "dask.copy").result(timeout=120)


if __name__ == "__main__":
    main()

"""A Parsl workflow of one block: its arguments are the executor's label and options of sbatch."""

from __future__ import annotations

import sys

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import SlurmProvider


@parsl.python_app
def copy(text: str, to: str) -> int:
    """Write a file, and return how long it is."""
    from pathlib import Path  # noqa: PLC0415

    return Path(to).write_text(text, encoding="utf-8")


def main() -> None:
    """Run the task on one node."""
    label, *options = sys.argv[1:]
    provider = SlurmProvider(
        partition="main",
        walltime="00:05:00",
        scheduler_options="\n".join(f"#SBATCH {option}" for option in options),
    )
    executor = HighThroughputExecutor(
        label=label, address="127.0.0.1", max_workers_per_node=1, provider=provider
    )
    with parsl.load(Config(executors=[executor])):
        copy("copied", "parsl.copy").result(timeout=120)


if __name__ == "__main__":
    main()

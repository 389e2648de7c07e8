"""The command behind `make measure-burst-buffer`."""

import argparse
import os
import platform
import random
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path

from measure import publish
from measure.agreement import agreement
from measure.journal import Journal, Measured
from measure.plan import Plan, PlanError, Planned

from measure_burst_buffer.grid import JOB, burst_buffer
from measure_burst_buffer.job import RunFailed, run

REPOSITORY = Path(__file__).resolve().parents[3]
DATA = REPOSITORY / "analysis" / "data"
DAEMON = REPOSITORY / "target" / "release" / "burst-buffer"
JOURNAL = REPOSITORY / "build" / "measure-burst-buffer"


def main() -> int:
    """Makes the missing runs, then writes the table; 0 if it is written."""
    options = _parser().parse_args()
    plan = burst_buffer(options.blocks, options.seed)
    try:
        journal = Journal(options.journal, plan)
        for number in range(plan.blocks):
            _block(plan, journal, number, options.slots)
        # A journal may hold more: blocks that an earlier command asked for.
        measured = [run for run in journal.measured if run.planned.block < plan.blocks]
        publish.write(options.output, plan, measured, _machine(measured, options))
    except (PlanError, RunFailed, OSError) as error:
        print(f"measure-burst-buffer: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        _say("interrupted; the same command goes on with what is missing")
        return 130
    times = publish.matrix(plan, measured)
    print(publish.summary(plan, times, agreement(times)))
    _say(f"{options.output / plan.accelerator}.csv and .json are written")
    return 0


def _block(plan: Plan, journal: Journal, number: int, slots: int) -> None:
    missing = journal.missing(plan.block(number))
    if not missing:
        return
    points = plan.points
    # Each run has a mount, a rate limit and a neighbour of its own.
    with ProcessPoolExecutor(slots) as pool:
        runs = [
            pool.submit(_one, plan.seed, planned, plan.named(points[planned.place]))
            for planned in missing
        ]
        try:
            for done in as_completed(runs):
                journal.append([done.result()])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    journal.sync()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    _say(f"block {number + 1} of {plan.blocks}: {len(missing)} runs; the load is {load}")


def _one(seed: int, planned: Planned, four: Mapping[str, object]) -> Measured:
    neighbour = random.Random(f"{seed}/{planned.block}/{planned.place}").getrandbits(63)
    began, load = datetime.now(UTC), os.getloadavg()[0]
    return Measured(planned, 0, began, run(JOB, DAEMON, four, neighbour), load)


def _machine(measured: Sequence[Measured], options: argparse.Namespace) -> dict[str, str]:
    """The properties of the machine that could influence the runs, and when they were made."""
    began = [run.started_at for run in measured]
    loads = sorted(run.load for run in measured if run.load is not None)
    return {
        "cores": str(os.cpu_count()),
        "kernel": f"{platform.release()} {platform.machine()}",
        "at_once": str(options.slots),
        "load": f"{loads[0]:.1f} to {loads[-1]:.1f}, median {loads[len(loads) // 2]:.1f}",
        "date": f"{min(began):%Y-%m-%d %H:%M} to {max(began):%Y-%m-%d %H:%M} UTC",
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="measure-burst-buffer",
        description="Measure the instrument's grid as root, through FUSE; resumable.",
    )
    parser.add_argument("--blocks", type=int, default=8, help="runs of each parametrization (8)")
    parser.add_argument("--seed", type=int, default=1, help="of orders and neighbours (1)")
    parser.add_argument("--slots", type=int, default=2, help="runs at once (2)")
    parser.add_argument(
        "--journal", type=Path, default=JOURNAL, help=f"runs made so far ({JOURNAL})"
    )
    parser.add_argument("--output", type=Path, default=DATA, help=f"of the table ({DATA})")
    return parser


def _say(message: str) -> None:
    print(f"measure-burst-buffer: {message}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

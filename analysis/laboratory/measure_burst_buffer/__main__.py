"""The command behind `make -C analysis measure-burst-buffer`."""

import random
import sys
from pathlib import Path

from measure.plan import Plan, Planned
from measure.side_by_side import Measurement

from measure_burst_buffer import job
from measure_burst_buffer.grid import JOB, burst_buffer

DAEMON = Path(__file__).resolve().parents[3] / "target" / "release" / "burst-buffer"


def run(plan: Plan, planned: Planned) -> float:
    """One run, with a mount, a rate limit and a neighbour of its own."""
    neighbour = random.Random(f"{plan.seed}/{planned.block}/{planned.place}").getrandbits(63)
    return job.run(JOB, DAEMON, plan.named(plan.points[planned.place]), neighbour)


MEASUREMENT = Measurement(
    name="measure-burst-buffer",
    description="Measure the instrument's grid as root, through FUSE; resumable.",
    plan=burst_buffer,
    run=run,
    blocks=8,
)

if __name__ == "__main__":
    sys.exit(MEASUREMENT.main())

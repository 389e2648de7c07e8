"""The command behind `make -C analysis measure-file-systems`."""

import signal
import sys

from measure.command import DATA
from measure.plan import Plan, Planned
from measure.side_by_side import Measurement, RunFailed

from measure_file_systems import device
from measure_file_systems.grid import file_systems
from measure_file_systems.workload import WORKLOAD


def run(plan: Plan, planned: Planned) -> float:
    """One run, on a loop device of its own."""
    return device.run(WORKLOAD, plan.named(plan.points[planned.place]))


def prepare() -> None:
    """Raises RunFailed for what is missing; removes what a killed command left."""
    lacks = device.needs()
    if lacks is not None:
        raise RunFailed(lacks)
    device.clean()
    # Terminated as interrupted: what is mounted is unmounted, in the processes that run too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


MEASUREMENT = Measurement(
    name="measure-file-systems",
    description="Measure file systems on loop devices as root; resumable.",
    plan=file_systems,
    run=run,
    blocks=4,
    output=DATA / "papers",
    prepare=prepare,
)

if __name__ == "__main__":
    sys.exit(MEASUREMENT.main())

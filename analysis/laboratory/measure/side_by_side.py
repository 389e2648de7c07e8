"""The command of a measurement whose runs are of this machine: several at once, block by block."""

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from measure import publish
from measure.agreement import agreement
from measure.command import DATA, command_line
from measure.journal import Journal, Measured
from measure.plan import Plan, PlanError, Planned


class RunFailed(Exception):
    """A run that gives no time, and why: the measurement stops."""


@dataclass(frozen=True)
class Measurement:
    """A table that is measured on this machine."""

    name: str
    """The command's, and that of its journal in `build`."""
    description: str
    plan: Callable[[int, int], Plan]
    """Of blocks and seed."""
    run: Callable[[Plan, Planned], float]
    """The seconds of one run, in a process of its own; may raise RunFailed. A module's function."""
    blocks: int
    output: Path = DATA
    prepare: Callable[[], None] = lambda: None
    """Called first: removes what a killed command left behind."""

    def main(self) -> int:
        """Makes the missing runs, then writes the table; 0 if it is written."""
        parser = command_line(self.name, self.description, self.blocks, self.output)
        parser.add_argument("--slots", type=int, default=2, help="runs at once (2)")
        options = parser.parse_args()
        plan = self.plan(options.blocks, options.seed)
        try:
            journal = Journal(options.journal, plan)
            self.prepare()
            for number in range(plan.blocks):
                self._block(plan, journal, number, options.slots)
            # A journal may hold more: blocks that an earlier command asked for.
            measured = [run for run in journal.measured if run.planned.block < plan.blocks]
            publish.write(
                options.output, plan, measured, machine(measured, {"at_once": str(options.slots)})
            )
        except (PlanError, RunFailed, OSError) as error:
            print(f"{self.name}: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            self._say("interrupted; the same command goes on with what is missing")
            return 130
        times = publish.matrix(plan, measured)
        print(publish.summary(plan, times, agreement(times)))
        self._say(f"{options.output / plan.accelerator}.csv and .json are written")
        return 0

    def _block(self, plan: Plan, journal: Journal, number: int, slots: int) -> None:
        missing = journal.missing(plan.block(number))
        if not missing:
            return
        with ProcessPoolExecutor(slots) as pool:
            runs = [pool.submit(_one, self.run, plan, planned) for planned in missing]
            try:
                for done in as_completed(runs):
                    journal.append([done.result()])
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        journal.sync()
        load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
        self._say(f"block {number + 1} of {plan.blocks}: {len(missing)} runs; the load is {load}")

    def _say(self, message: str) -> None:
        print(f"{self.name}: {message}", flush=True)


def _one(run: Callable[[Plan, Planned], float], plan: Plan, planned: Planned) -> Measured:
    began, load = datetime.now(UTC), os.getloadavg()[0]
    return Measured(planned, 0, began, run(plan, planned), load)


def machine(measured: Sequence[Measured], more: Mapping[str, str]) -> dict[str, str]:
    """The properties of the machine that could influence the runs, and when they were made."""
    began = [run.started_at for run in measured]
    loads = sorted(run.load for run in measured if run.load is not None)
    return {
        "cores": str(os.cpu_count()),
        "kernel": f"{platform.release()} {platform.machine()}",
        **more,
        "load": f"{loads[0]:.1f} to {loads[-1]:.1f}, median {loads[len(loads) // 2]:.1f}",
        "date": f"{min(began):%Y-%m-%d %H:%M} to {max(began):%Y-%m-%d %H:%M} UTC",
    }

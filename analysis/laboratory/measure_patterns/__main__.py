"""The command behind `make -C analysis measure-patterns`."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from measure import publish
from measure.agreement import agreement
from measure.command import DATA, REPOSITORY, command_line
from measure.journal import Journal, Measured
from measure.plan import Plan, PlanError
from measure.side_by_side import RunFailed, machine

from measure_patterns.grid import HELD_OUT, PATTERNS, plan
from measure_patterns.job import Measures, run

CATALOGUE = REPOSITORY / "deploy" / "accelerators.d" / "romio.toml"
PROGRAM = REPOSITORY / "build" / "workloads" / "strided"


def main() -> int:
    """Makes the missing runs, each round all patterns, then writes the tables; 0 if it has."""
    words = "Measure one grid of ROMIO's hints under twelve access patterns; resumable."
    options = command_line("measure-patterns", words, 4, DATA / "patterns").parse_args()
    try:
        catalogue = CATALOGUE.read_text(encoding="utf-8")
        plans = [plan(catalogue, pattern, options.blocks, options.seed) for pattern in PATTERNS]
        journals = [Journal(options.journal / one.accelerator, one) for one in plans]
        with tempfile.TemporaryDirectory(dir=options.journal) as folder:
            for number in range(options.blocks):
                for one, journal in zip(plans, journals, strict=True):
                    _block(one, journal, number, Path(folder))
            for one, journal in zip(plans, journals, strict=True):
                measures = _measures(one, options.journal, Path(folder))
                _publish(one, journal, measures, options.output)
    except (PlanError, RunFailed, OSError) as error:
        print(f"measure-patterns: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        _say("interrupted; the same command goes on with what is missing")
        return 130
    return 0


def _block(plan: Plan, journal: Journal, number: int, folder: Path) -> None:
    missing = journal.missing(plan.block(number))
    points = plan.points
    for planned in missing:
        began, load = datetime.now(UTC), os.getloadavg()[0]
        hints = _hints(plan, plan.named(points[planned.place]))
        elapsed, _ = run(PROGRAM, plan.workload, hints, folder)
        journal.append([Measured(planned, 0, began, elapsed, load)])
    journal.sync()
    if missing:
        load = os.getloadavg()[0]
        _say(f"round {number + 1}, {plan.accelerator}: {len(missing)} runs; the load is {load:.1f}")


def _hints(plan: Plan, named: Mapping[str, object]) -> dict[str, object]:
    """Without what is at its default, as the service delivers it."""
    default = plan.named(plan.default)
    return {name: value for name, value in named.items() if value != default[name]}


def _measures(plan: Plan, folder: Path, work: Path) -> Measures:
    """What a run of the default does, noted once."""
    noted = folder / plan.accelerator / "measures.json"
    if not noted.exists():
        _, found = run(PROGRAM, plan.workload, {}, work)
        noted.write_text(json.dumps(found) + "\n", encoding="utf-8")
    return {str(name): float(value) for name, value in json.loads(noted.read_text("utf-8")).items()}


def _publish(plan: Plan, journal: Journal, measures: Measures, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    # A journal may hold more: rounds that an earlier command asked for.
    measured = [run for run in journal.measured if run.planned.block < plan.blocks]
    more = {"default_measures": measures, "held_out": plan.accelerator in HELD_OUT}
    version = ["dpkg-query", "--show", "--showformat=${Version}", "mpich"]
    mpich = subprocess.run(version, text=True, capture_output=True, check=True).stdout
    publish.write(output, plan, measured, machine(measured, {"mpich": mpich}), more)
    times = publish.matrix(plan, measured)
    print(f"{plan.accelerator}\n{publish.summary(plan, times, agreement(times))}\n")


def _say(message: str) -> None:
    print(f"measure-patterns: {message}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

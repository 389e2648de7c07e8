"""The command behind `make -C analysis measure-local`."""

import argparse
import csv
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure_local.programs import PROGRAMS, Program, RunFailed

_SOURCE = "measured by the project: make -C analysis measure-local"

Times = list[tuple[list[Any], float, list[float]]]
"""Points, what their runs took, and their measures."""


def main() -> int:
    """Measures each program in random order, block by block; writes its table."""
    parser = argparse.ArgumentParser(prog="measure_local", description=__doc__)
    parser.add_argument(
        "output", type=Path, metavar="FOLDER", help="with folders of tables: analysis/data"
    )
    parser.add_argument("--blocks", type=int, default=4, help="runs of each parametrization (4)")
    parser.add_argument("--seed", type=int, default=1, help="of the order (1)")
    parser.add_argument("--only", choices=[program.name for program in PROGRAMS])
    parser.add_argument(
        "--kept",
        type=Path,
        default=Path("build/measure-local"),
        help="whole blocks are kept here, and not measured again: remove it to measure anew",
    )
    arguments = parser.parse_args()
    some = [program for program in PROGRAMS if arguments.only in (None, program.name)]
    missing = [need for program in some for need in program.needs if shutil.which(need) is None]
    if missing:
        words = f"there is no {', '.join(missing)}: run deploy/install-deps measure"
        print(f"measure-local: {words}", file=sys.stderr)
        return 1
    for folder in (arguments.output, arguments.kept):
        folder.mkdir(parents=True, exist_ok=True)
    for program in some:
        order = random.Random(arguments.seed)
        points = [list(point) for point in itertools.product(*program.levels.values())]
        blocks = []
        for number in range(arguments.blocks):
            order.shuffle(points)
            kept = arguments.kept / f"{program.name}-{arguments.seed}-{number}.json"
            if not kept.exists():
                times = _block(program, points, arguments.kept)
                kept.write_text(json.dumps(times), "utf-8")
                load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
                words = f"block {number} of {program.name}: {len(times)} runs; the load is {load}"
                print(f"measure-local: {words}", file=sys.stderr, flush=True)
            blocks.append(json.loads(kept.read_text("utf-8")))
        if not any(point == list(program.default.values()) for point, *_ in blocks[0]):
            print(f"measure-local: {program.name}: its default fails", file=sys.stderr)
            return 1
        folder = arguments.output / program.folder
        folder.mkdir(parents=True, exist_ok=True)
        _write(program, blocks, folder / f"{program.name}.json")
    return 0


def _block(program: Program, points: list[list[Any]], work: Path) -> Times:
    """Each point once, in this order; without those that fail."""
    times = []
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for point in points:
            chosen = dict(zip(program.levels, point, strict=True))
            try:
                ran = program.run(Path(folder), chosen)
                time, measures = ran if isinstance(ran, tuple) else (ran, {})
                times.append((point, time, [measures[name] for name in program.measures]))
            except RunFailed:
                continue  # A table lacks what fails.
    return times


def _write(program: Program, blocks: list[Times], path: Path) -> None:
    table = {
        "name": program.name,
        "domain": program.domain,
        "source": _SOURCE,
        "parameters": [
            {
                "name": name,
                "kind": program.kind(name),
                "values": values,
            }
            for name, values in program.levels.items()
        ],
        "default": program.default,
        **({"measures": program.measures} if program.measures else {}),
    }
    path.write_text(json.dumps(table, indent=1) + "\n", "utf-8")
    rows = [
        (point, rep, time, measures)
        for rep, times in enumerate(blocks)
        for point, time, measures in times
    ]
    rows.sort(key=lambda row: (*map(str, row[0]), row[1]))
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*program.levels, "rep", *program.measures, "time"])
        for point, rep, time, measures in rows:
            writer.writerow([*point, rep, *(f"{one:.0f}" for one in measures), f"{time:.6f}"])


if __name__ == "__main__":
    sys.exit(main())

"""The command behind `make measure-local`."""

import argparse
import csv
import itertools
import json
import lzma
import random
import sys
import tempfile
from pathlib import Path

from measure_local.programs import PROGRAMS, Program

_SOURCE = "measured by the project: make measure-local"


def main() -> int:
    """Measures each program in random order, block by block; writes its table."""
    parser = argparse.ArgumentParser(prog="measure_local", description=__doc__)
    parser.add_argument("output", type=Path, metavar="FOLDER")
    parser.add_argument("--blocks", type=int, default=4, help="runs of each parametrization (4)")
    parser.add_argument("--seed", type=int, default=1, help="of the order (1)")
    parser.add_argument("--only", choices=[program.name for program in PROGRAMS])
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        if arguments.only in (None, program.name):
            _measure(program, arguments.output, arguments.blocks, arguments.seed)
            print(f"measure-local: {program.name} is measured", file=sys.stderr)
    return 0


def _measure(program: Program, output: Path, blocks: int, seed: int) -> None:
    names = list(program.levels)
    points = list(itertools.product(*program.levels.values()))
    order = random.Random(seed)
    rows: list[tuple[tuple[object, ...], int, float]] = []
    with tempfile.TemporaryDirectory(dir=output) as folder:
        for block in range(blocks):
            order.shuffle(points)
            for point in points:
                chosen = dict(zip(names, point, strict=True))
                try:
                    rows.append((point, block, program.run(Path(folder), chosen)))
                except (OSError, lzma.LZMAError):
                    continue  # A table lacks what fails.
    table = {
        "name": program.name,
        "domain": program.domain,
        "source": _SOURCE,
        "parameters": [
            {
                "name": name,
                "kind": "categorical" if name in program.categories else "ordinal",
                "values": values,
            }
            for name, values in program.levels.items()
        ],
        "default": program.default,
    }
    path = output / f"{program.name}.json"
    path.write_text(json.dumps(table, indent=1) + "\n", "utf-8")
    rows.sort(key=lambda row: (*map(str, row[0]), row[1]))
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, "rep", "time"])
        writer.writerows([*point, block, f"{elapsed:.6f}"] for point, block, elapsed in rows)


if __name__ == "__main__":
    sys.exit(main())

"""The command behind `make -C analysis generated-tables`."""

import argparse
import csv
import json
import sys
from pathlib import Path

from generated_tables.families import FAMILIES, table


def main() -> int:
    """Writes so many tables of each family into a folder."""
    parser = argparse.ArgumentParser(prog="generated_tables", description=__doc__)
    parser.add_argument("output", type=Path, metavar="FOLDER")
    parser.add_argument("--each", type=int, default=5, help="tables of each family (5)")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        for number in range(1, arguments.each + 1):
            _write(family, number, arguments.output / f"{family}-{number}.json")
    return 0


def _write(family: str, number: int, path: Path) -> None:
    world, runs = table(family, number)
    names = [f"p{index}" for index in range(len(world.parameters))]
    kinds = ["ordinal" if one.ordered else "categorical" for one in world.parameters]
    text = {
        "name": path.stem,
        "domain": "generated; generated_tables/families.py",
        "parameters": [
            {"name": name, "kind": kind, "values": [f"v{level}" for level in range(one.levels)]}
            for name, kind, one in zip(names, kinds, world.parameters, strict=True)
        ],
        "default": {name: f"v{level}" for name, level in zip(names, world.default, strict=True)},
    }
    path.write_text(json.dumps(text, indent=1) + "\n", "utf-8")
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, "rep", "time", "rel_sd"])
        for point in world.points():
            values = [f"v{level}" for level in point]
            for rep, run in enumerate(runs(point)):
                writer.writerow([*values, rep, f"{run.elapsed:.4f}", f"{run.scatter:.4f}"])


if __name__ == "__main__":
    sys.exit(main())

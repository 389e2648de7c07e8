"""The command behind `make comparison-report`."""

import argparse
import os
import sys
from pathlib import Path

from peers.optimizers import PEERS
from peers.program import Program, ReplayError
from peers.progress import progress
from peers.tables import Table, TableError, named

from comparison import cao2018, robert2019, robert2020
from comparison.baselines import Baselines
from comparison.markdown import number, table
from comparison.prose import prose
from comparison.simulate import without_noise

STAND_IN = "burst-buffer"
"""The table of the 2020 paper's comparison."""


def main() -> int:
    """Replays, compares, writes the report."""
    arguments = _parser().parse_args()
    output: Path = arguments.output
    program = Program(arguments.io_autotune, arguments.jobs, arguments.work / "kept")
    try:
        tables = named(arguments.tables)
        quiet = [without_noise(on, arguments.work / "without-noise") for on in tables]
        baselines = Baselines(
            program,
            tables,
            seeds=arguments.seeds,
            method_seeds=arguments.method_seeds,
            peer_seeds=arguments.peer_seeds,
            kept=arguments.kept,
            progress=progress("comparison-report"),
        )
        stand_in = next((on for on in tables if on.name == STAND_IN), tables[0])
        lines = [
            *_head(tables),
            "",
            *baselines.summary(),
            "",
            *baselines.section(),
            "",
            *robert2020.section(program, stand_in, arguments.paper_seeds[0]),
            "",
            *robert2019.section(program, tables, quiet, arguments.paper_seeds[1]),
            "",
            *cao2018.section(program, tables, quiet, arguments.paper_seeds[2], output),
        ]
    except (TableError, ReplayError) as error:
        print(f"comparison-report: {error}", file=sys.stderr)
        return 1
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("\n".join(lines) + "\n", "utf-8")
    print(f"comparison-report: {output} is written", file=sys.stderr)
    return 0


def _head(tables: list[Table]) -> list[str]:
    rows = [
        [
            on.name,
            on.words,
            str(len(on.points)),
            str(len(on.parameters)),
            f"{100.0 * on.scatter:.0f} %",
            number(on.truths[on.default] / on.truths[on.best]),
            str(robert2020.near(on, 0.05)),
        ]
        for on in tables
    ]
    return [
        *prose("head"),
        "",
        *table(
            [
                "table",
                "what was measured",
                "parametrizations",
                "parameters",
                "noise",
                "default",
                "within 5 %",
            ],
            rows,
            left=2,
        ),
        "",
        *prose("tables"),
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="comparison", description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path, metavar="TABLE.json or FOLDER")
    parser.add_argument("--seeds", type=int, default=100, help="studies of our default (100)")
    parser.add_argument(
        "--method-seeds", type=int, default=100, help="studies of each other method of ours (100)"
    )
    parser.add_argument(
        "--peer-seeds",
        type=int,
        default=100,
        help="studies of each peer (100); what is missing is run, what is kept beyond is used",
    )
    parser.add_argument(
        "--paper-seeds",
        type=int,
        nargs=3,
        default=[100, 20, 40],
        metavar=("2020", "2019", "2018"),
        help="studies of each method in the papers' own comparisons (100 20 40)",
    )
    parser.add_argument(
        "--kept",
        type=Path,
        default=Path("build/bench-peers/studies"),
        help=f"where the studies of {', '.join(PEERS)} are kept",
    )
    parser.add_argument(
        "--work", type=Path, default=Path("build/comparison"), help="for what is in between"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/measurements/comparison.md"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument(
        "--io-autotune", type=Path, default=Path("build/stage/bin/io-autotune"), help="our program"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

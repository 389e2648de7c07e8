"""The command behind `make -C analysis papers-report`."""

import argparse
import sys
from pathlib import Path

from comparison.simulate import without_noise
from peers.program import Program, ReplayError, command_line
from peers.tables import TableError, named

from papers import alabed2021, cao2018, file_systems, robert2019, robert2020

BURST_BUFFER = "burst-buffer"
TABLES = [BURST_BUFFER, "romio", "sqlite", "lzma", "writes"]
"""Measured tables of the tree that were development data when the pages were first written."""
PAGES = ("robert2020", "robert2019", "cao2018", "alabed2021")


def main() -> int:
    """Replays, writes the pages."""
    arguments = _parser().parse_args()
    program = Program(arguments.simulate, arguments.jobs, arguments.work / "kept")
    try:
        by_name = {on.name: on for on in named(arguments.tables)}
        missing = [
            name for name in [*TABLES, file_systems.NAME, alabed2021.NAME] if name not in by_name
        ]
        if missing:
            raise TableError(f"the papers' pages need {', '.join(missing)}: give analysis/data too")
        tables = [by_name[name] for name in TABLES]
        quiet = [without_noise(on, arguments.work / "without-noise") for on in tables]
        patterns = named([Path("analysis/data/patterns")])
        systems = by_name[file_systems.NAME]
        quiet_systems = without_noise(systems, arguments.work / "without-noise")
        makers = {
            "robert2020": lambda: robert2020.page(
                program, by_name[BURST_BUFFER], quiet[0], arguments.seeds_2020
            ),
            "robert2019": lambda: robert2019.page(
                program, tables, quiet, arguments.seeds_2019, patterns
            ),
            "cao2018": lambda: cao2018.page(
                program,
                [*tables, systems],
                [*quiet, quiet_systems],
                arguments.seeds_2018,
                arguments.seeds_rates,
                arguments.seeds_2018_slow,
                patterns,
            ),
        }
        makers["alabed2021"] = lambda: alabed2021.page(
            program, by_name[alabed2021.NAME], arguments.seeds_2021, arguments.work / "measures"
        )
        for name in arguments.only or PAGES:
            lines, drawn = makers[name]()
            _write(arguments.output / f"{name}.md", "\n".join(lines) + "\n")
            for drawing, text in drawn.items():
                _write(arguments.output / "figures" / drawing, text)
    except (TableError, ReplayError) as error:
        print(f"papers-report: {error}", file=sys.stderr)
        return 1
    return 0


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    print(f"papers-report: {path} is written", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = command_line("papers", __doc__, Path("docs/papers"))
    parser.add_argument("--only", choices=PAGES, action="append", help="this page alone")
    studies = "studies of each method"
    parser.add_argument(
        "--seeds-2020", type=int, default=30, help=f"{studies} in each of eight repetitions (30)"
    )
    parser.add_argument("--seeds-2019", type=int, default=80, help=f"{studies} (80)")
    parser.add_argument("--seeds-2018", type=int, default=1000, help=f"{studies} (1000)")
    parser.add_argument(
        "--seeds-2018-slow",
        type=int,
        default=500,
        help="but of those whose suggestions take long, the paper's BO and DQN (500)",
    )
    parser.add_argument("--seeds-2021", type=int, default=10, help=f"{studies} (10)")
    parser.add_argument(
        "--seeds-rates", type=int, default=300, help="studies of each mutation rate (300)"
    )
    parser.add_argument(
        "--work", type=Path, default=Path("build/papers"), help="for what is in between"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The command behind `make -C analysis bench-peers`."""

import argparse
import json
import shlex
import sys
from pathlib import Path

from peers.optimizers import COSTLY, PEERS, versions
from peers.program import Program, ReplayError, at_least_one, command_line
from peers.progress import progress
from peers.replay import run_methods, run_peers
from peers.report import Comparison, render
from peers.tables import TableError, named


def main() -> int:
    """Replays, compares, writes report.md and report.json."""
    arguments = _parser().parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    output: Path = arguments.output
    try:
        tables = named(arguments.tables)
        # First what takes seconds and may fail.
        studies = run_methods(
            tables,
            arguments.methods,
            seeds,
            arguments.budget,
            Program(arguments.simulate, arguments.jobs),
        )
        studies |= run_peers(
            tables,
            arguments.peers,
            seeds,
            arguments.budget,
            arguments.kept,
            arguments.jobs,
            progress("bench-peers"),
        )
    except (TableError, ReplayError) as error:
        print(f"bench-peers: {error}", file=sys.stderr)
        return 1
    result = Comparison(
        tables, arguments.methods, arguments.peers, studies, arguments.budget
    ).as_json()
    packages = {k: v for peer in arguments.peers for k, v in versions(peer).items()}
    report = render(
        result,
        packages,
        f"PYTHONPATH=analysis/laboratory python3 -m peers {shlex.join(sys.argv[1:])}",
    )
    output.mkdir(parents=True, exist_ok=True)
    (output / "report.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    (output / "report.md").write_text(report, "utf-8")
    print(report.split("\n## ", 3)[2] if "\n## " in report else report)
    print(f"bench-peers: {output / 'report.md'} has it all", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_line("peers", __doc__, Path("build/bench-peers"))
    parser.add_argument("--seeds", type=at_least_one, default=100, help="studies each (100)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--budget", type=at_least_one, default=50, help="runs of a study (50)")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["default", "robert2020"],
        metavar="NAME[:key=value,...]",
        help="as `io-autotune-simulate` takes them; the first is divided by all others",
    )
    parser.add_argument(
        "--peers",
        nargs="+",
        choices=PEERS,
        default=[peer for peer in PEERS if peer not in COSTLY],
        help=f"which peers (all but {', '.join(sorted(COSTLY))}, a study of which takes minutes)",
    )
    parser.add_argument(
        "--kept", type=Path, default=Path("build/bench-peers/studies"), help="the peers' studies"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The command behind `make -C analysis comparison-report`."""

import argparse
import sys
from pathlib import Path

from peers.optimizers import COSTLY, PEERS, versions
from peers.program import Program, ReplayError, command_line
from peers.progress import progress
from peers.report import ENOUGH_SEEDS
from peers.tables import Table, TableError, named

from comparison.baselines import BUDGET, Baselines
from comparison.markdown import number, table
from comparison.prose import prose
from comparison.simulate import near
from comparison.split import is_of_the_tree, split

CORES, MOST_HOURS = 2, 8.0
"""What the peers may take."""


def main() -> int:
    """Replays, compares, writes the report."""
    arguments = _parser().parse_args()
    output: Path = arguments.output
    program = Program(arguments.simulate, arguments.jobs, arguments.work / "kept")
    try:
        tables = named(arguments.tables)
        parts = split(tables)
        compared = {
            part.title: Baselines(
                program,
                part,
                seeds=arguments.seeds,
                method_seeds=arguments.method_seeds,
                peer_seeds=arguments.peer_seeds,
                costly_peer_seeds=arguments.costly_peer_seeds,
                kept=arguments.kept,
                progress=progress("comparison-report"),
            )
            for part in parts
            if part.tables
        }
        lines = [*prose("head", enough=str(ENOUGH_SEEDS), budget=str(BUDGET))]
        for part in parts:
            lines += ["", f"## {part.title}", *part.missing()]
            if part.title in compared:
                of = compared[part.title]
                if of.left_out:
                    lines += ["", f"Left out, without other optimisers: {', '.join(of.left_out)}."]
                lines += ["", *_described(of.tables), "", *of.summary(), "", *of.section()]
        lines += ["", *_time_of_peers(compared)]
    except (TableError, ReplayError) as error:
        print(f"comparison-report: {error}", file=sys.stderr)
        return 1
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("\n".join(lines) + "\n", "utf-8")
    print(f"comparison-report: {output} is written", file=sys.stderr)
    return 0


def _described(tables: list[Table]) -> list[str]:
    rows = [
        [
            on.name,
            on.words if is_of_the_tree(on) else f"{on.words}; not reproducible from the tree",
            str(len(on.points)),
            str(len(on.parameters)),
            f"{100.0 * on.scatter:.0f} %",
            number(on.truths[on.default] / on.truths[on.best]),
            str(near(on, 0.05)),
        ]
        for on in tables
    ]
    head = ["table", "what was measured", "parametrizations", "parameters"]
    return table([*head, "noise", "default", "within 5 %"], rows, left=2)


def _time_of_peers(compared: dict[str, Baselines]) -> list[str]:
    peers = list(dict.fromkeys(peer for of in compared.values() for peer in of.peers))
    hours = {
        peer: [of.seconds.get(peer, 0.0) / 3600.0 for of in compared.values()] for peer in peers
    }
    total = sum(map(sum, hours.values())) / CORES
    return [
        *prose(
            "peers",
            packages=", ".join(sorted({f"{k} {v}" for p in peers for k, v in versions(p).items()})),
            cores=str(CORES),
            total=f"{total:.1f}",
            most=f"{MOST_HOURS:.0f}",
            kept="kept" if total <= MOST_HOURS else "not kept",
        ),
        "",
        *table(
            ["hours of one core", *(title.lower() for title in compared)],
            [[peer, *(f"{one:.2f}" for one in of)] for peer, of in hours.items()],
        ),
    ]


def _parser() -> argparse.ArgumentParser:
    parser = command_line("comparison", __doc__, Path("docs/measurements/comparison.md"))
    parser.add_argument("--seeds", type=int, default=100, help="studies of our default (100)")
    parser.add_argument(
        "--method-seeds", type=int, default=100, help="studies of each other method of ours (100)"
    )
    parser.add_argument(
        "--peer-seeds",
        type=int,
        default=20,
        help="studies of each peer (20); what is missing is run, what is kept beyond is used",
    )
    parser.add_argument(
        "--costly-peer-seeds",
        type=int,
        default=5,
        help=f"the same of {', '.join(sorted(COSTLY))}, a study of which takes minutes (5)",
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
    return parser


if __name__ == "__main__":
    sys.exit(main())

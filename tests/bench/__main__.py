"""``make bench``: PYTHONPATH=tests python3 -m bench --root DIR [--only NAME]..."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from devcluster import Cluster, ClusterError

from bench import answers, commands, floods, growth, lives, priors
from bench.figures import Figure, renewed, table
from bench.machine import measured_on
from bench.place import Place

BUILD = Path(__file__).resolve().parents[2] / "build" / "bench"


def main() -> int:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where the private cluster lives")
    parser.add_argument("--rounds", type=int, default=5, help="of each comparison")
    parser.add_argument("--lives", type=int, default=12800, help="in a round")
    parser.add_argument("--pairs", type=int, default=300, help="of commands")
    parser.add_argument(
        "--only",
        action="append",
        choices=[
            *("lives", "priors", "nodes", "floods", "growth"),
            *("orders", "lists", "decades", "memory", "commands"),
        ],
    )
    parser.add_argument(
        "--write",
        type=Path,
        help="into this page's table, whose other rows stay, if nothing failed",
    )
    options = parser.parse_args()
    parts: dict[str, Callable[[Place], list[Figure]]] = {
        "lives": lambda place: lives.figures(place, options.rounds, options.lives),
        "priors": lambda place: priors.figures(place, options.rounds, options.lives // 4),
        "nodes": lambda place: answers.figures(place, options.rounds),
        "floods": lambda place: floods.figures(place, options.rounds),
        "growth": lambda place: growth.figures(place, options.rounds),
        "orders": lambda place: growth.orders(place, options.rounds),
        "lists": lambda place: growth.lists(place, options.rounds),
        "decades": lambda place: growth.decades(place, options.rounds),
        "memory": lambda place: growth.memory(place, options.rounds, options.lives // 20),
        "commands": lambda place: commands.figures(place, options.pairs),
    }
    cluster = Cluster(options.root, nodes=2, say=_say)
    wanted = {name: parts[name] for name in parts if name in (options.only or parts)}
    try:
        cluster.up()
        rows, failed = _measured(Place(cluster, BUILD), wanted)
    except (ClusterError, subprocess.SubprocessError) as error:
        _say(f"bench: {error}")
        return 1
    finally:
        cluster.destroy()
    print(table(rows))
    if failed:
        _say(f"bench: not measured: {', '.join(failed)}")
    elif options.write:
        _write(options.write, rows)
    return 1 if failed else 0


def _measured(
    place: Place, parts: dict[str, Callable[[Place], list[Figure]]]
) -> tuple[list[str], list[str]]:
    """Return the figures' rows, and the parts that failed: what the others took hours for stays."""
    rows, failed = [], []
    for name, measure in parts.items():
        _say(f"measuring: {name}")
        try:
            figures = measure(place)
        except (AssertionError, ClusterError, subprocess.SubprocessError) as error:
            _say(f"bench: {name}: {error}")
            failed.append(name)
        else:
            on = measured_on()
            rows += [figure.row(on) for figure in figures]
            _say("\n".join(rows[-len(figures) :]))
    return rows, failed


MARK = "<!-- What follows is written by make bench. -->"


def _write(page: Path, rows: list[str]) -> None:
    """Put the rows into the table below a page's mark; what stands above is written by hand."""
    kept, mark, below = page.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise ClusterError(f"{page} has no line {MARK!r}: nothing is written")
    page.write_text(f"{kept}{MARK}\n\n{table(renewed(below, rows))}\n", encoding="utf-8")


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

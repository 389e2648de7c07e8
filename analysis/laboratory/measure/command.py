"""What every measurement's command takes."""

import argparse
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
DATA = REPOSITORY / "analysis" / "data"


def command_line(
    name: str, description: str, blocks: int, output: Path = DATA
) -> argparse.ArgumentParser:
    """With these numbers of runs, and where tables go, unless they are said."""
    journal = REPOSITORY / "build" / name
    parser = argparse.ArgumentParser(prog=name, description=description)
    words = f"runs of each parametrization ({blocks})"
    parser.add_argument("--blocks", type=int, default=blocks, help=words)
    parser.add_argument("--seed", type=int, default=1, help="of the blocks' orders (1)")
    words = f"runs made so far ({journal})"
    parser.add_argument("--journal", type=Path, default=journal, help=words)
    parser.add_argument("--output", type=Path, default=output, help=f"of tables ({output})")
    return parser

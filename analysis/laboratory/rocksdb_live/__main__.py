"""The command behind `make -C analysis rocksdb-live`; it goes on where it was stopped."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rocksdb_live import bench, study


def main() -> int:
    """Runs studies seed by seed, and writes each as soon as it is whole."""
    arguments = _parser().parse_args()
    output: Path = arguments.output
    kept = json.loads(output.read_text("utf-8")) if output.exists() else {}
    setup = {"design": arguments.design, "steps": arguments.steps}
    if kept and kept["setup"] != setup:
        print(f"rocksdb-live: {output} is of {kept['setup']}: move it away", file=sys.stderr)
        return 1
    studies = kept.get("studies", [])
    known = {one["seed"] for one in studies}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        space = Path(folder) / "space.json"
        space.write_text(bench.space(), "utf-8")
        for seed in range(1, arguments.seeds + 1):
            if seed in known:
                continue
            studies += study.together(
                arguments.program,
                space,
                Path(folder),
                arguments.design,
                arguments.steps,
                seed,
            )
            partly = output.with_suffix(".part")
            partly.write_text(json.dumps({"setup": setup, "studies": studies}) + "\n", "utf-8")
            partly.replace(output)
            print(f"rocksdb-live: seed {seed} of {arguments.seeds}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rocksdb_live", description=__doc__)
    parser.add_argument("output", type=Path, help="the file of all studies")
    parser.add_argument("--program", type=Path, default=Path("target/simulation/release/live"))
    parser.add_argument("--seeds", type=int, default=5, help="studies of each method (5)")
    parser.add_argument("--steps", type=int, default=80, help="runs of each study (80)")
    parser.add_argument("--design", type=int, default=4, help="points of the design (4)")
    parser.add_argument(
        "--folder", type=Path, default=Path("/dev/shm"), help="for the database (/dev/shm)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

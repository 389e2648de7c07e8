"""The command behind `make -C analysis measure-romio`."""

import json
import sys
from pathlib import Path

from devcluster import Cluster, ClusterError

from measure import publish
from measure.agreement import agreement
from measure.campaign import Campaign, machine
from measure.command import REPOSITORY, command_line
from measure.grid import ACCELERATOR, romio
from measure.journal import Journal
from measure.plan import Plan, PlanError

CATALOGUE = REPOSITORY / "deploy" / "accelerators.d" / f"{ACCELERATOR}.toml"


def main() -> int:
    """Makes the missing runs, then writes the table; 0 if it is written."""
    words = "Measure a full grid of ROMIO's hints through a private cluster; resumable."
    parser = command_line("measure-romio", words, blocks=8)
    parser.add_argument("--root", type=Path, required=True, help="where the cluster lives")
    options = parser.parse_args()
    try:
        plan = romio(CATALOGUE.read_text(encoding="utf-8"), options.blocks, options.seed)
        journal = Journal(options.journal, plan)
        _measure(plan, journal, options.root, options.journal / "machine.json")
        found = json.loads((options.journal / "machine.json").read_text(encoding="utf-8"))
        publish.write(options.output, plan, journal.measured, found)
    except (PlanError, ClusterError, OSError) as error:
        print(f"measure: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("measure: interrupted; the same command goes on with what is missing")
        return 130
    times = publish.matrix(plan, journal.measured)
    _say(publish.summary(plan, times, agreement(times)))
    _say(f"{options.output / ACCELERATOR}.csv and .json are written")
    return 0


def _measure(plan: Plan, journal: Journal, root: Path, noted: Path) -> None:
    """Makes the missing runs on the cluster in `root`, which is shut down and stays on disk."""
    everything = [planned for block in range(plan.blocks) for planned in plan.block(block)]
    missing = journal.missing(everything)
    if not missing:
        _say(f"all {len(everything)} runs were made before; remove {noted.parent} to measure anew")
        return
    _say(f"{len(missing)} of {len(everything)} runs are to be made. {plan.workload}")
    # One node that each job has to itself, so jobs run one by one.
    cluster = Cluster(root, nodes=1, say=_say)
    cluster.up()
    try:
        noted.write_text(json.dumps(machine(cluster), indent=1) + "\n", encoding="utf-8")
        Campaign(cluster, plan, journal, _say).run()
    finally:
        cluster.down()


def _say(message: str) -> None:
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())

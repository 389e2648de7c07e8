"""``make demo``: PYTHONPATH=tests python3 -m demo --root DIR."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from devcluster import Cluster, ClusterError

from demo.campaign import Campaign, Goal

USER = "io-alice"
SCRIPT = "checkpoint.sh"
STUDY = ["design_points=12", "budget=28", "control_every=2", "control_every_resolved=2"]
"""A shorter study than a site's, and every second run a control run once it has settled, so that
the gain is resolved within the demo. See deploy/etc/service.toml for a site's settings."""
GOAL = Goal(tuned=9, controls=9, seconds=500)

JOB = """\
#!/bin/sh
#SBATCH --ntasks=4 --time=5 --output=/dev/null
# A checkpoint in the manner of IOR's strided shared file: 4 ranks write interleaved blocks of 512
# bytes, 128 MiB together, by collective MPI-IO, read them back and verify them.
srun strided --file {scratch}/checkpoint.$SLURM_JOB_ID \\
    --block-size 512 --blocks 65536 --collective
"""


def main() -> int:
    """Run the demo; 0 if it ended with a gain that is claimed."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where the private cluster lives")
    options = parser.parse_args()
    try:
        cluster = Cluster(options.root, study_settings=STUDY, say=_say)
        return _demo(cluster)
    except ClusterError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


def _demo(cluster: Cluster) -> int:
    began = time.monotonic()
    cluster.up()
    paths = cluster.paths
    script = paths.home(USER) / SCRIPT
    script.write_text(JOB.format(scratch=paths.scratch))
    _say(f"\nThe user {USER} submits this job again and again:\n\n{_indented(script.read_text())}")
    _say(f"    $ sbatch --io-autotune {SCRIPT}\n")
    _say(f"{'run':>4}  {'phase':8}  {'role':10} {'elapsed':>9}  what differs from ROMIO's default")
    Campaign(cluster, USER, script, _say).run(GOAL)
    _say(f"\n    $ io-autotune status {SCRIPT}\n")
    _say(cluster.run_as(USER, ["io-autotune", "status", SCRIPT]).stdout)
    study = json.loads(cluster.run_as(USER, ["io-autotune", "status", SCRIPT, "--json"]).stdout)[0]
    _say(
        f"The demo took {time.monotonic() - began:.0f} s. The cluster goes on until"
        " `make demo-down`. Look around:\n"
    )
    shell = f"PYTHONPATH=tests python3 -m devcluster shell --root {paths.root} --user {USER}"
    _say(f"    {shell} -- io-autotune history {SCRIPT}")
    _say(f"    {shell}\n")
    gain = study["gain"]
    if gain is None or not gain["resolved"] or gain["gain"] <= 0:
        _say(
            "This demo ended without a gain that can be told from noise. Is the machine very busy?"
        )
        return 1
    return 0


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def _say(message: str) -> None:
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())

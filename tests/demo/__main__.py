"""``make demo``, of two applications: PYTHONPATH=tests python3 -m demo --root DIR."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from devcluster import Cluster, ClusterError

from demo.campaign import Campaign, Goal, Run, found

USER, OTHER_USER = "io-alice", "io-bob"
SCRIPT, OTHER_SCRIPT = "checkpoint.sh", "restart.sh"
STUDY = ["budget=28", "control_every=2"]
"""A shorter study than a site's, and every second run a control run once it has settled, so that
the gain is resolved within the demo. See deploy/etc/service.toml for a site's settings."""
GOAL = Goal(tuned=9, controls=9, seconds=500)
OTHER_GOAL = Goal(tuned=9, controls=9, seconds=400, claim=True)

JOB = """\
#!/bin/sh
#SBATCH --ntasks=4 --time=5 --output=/dev/null
# A checkpoint in the manner of IOR's strided shared file: 4 ranks write interleaved blocks of 512
# bytes, 128 MiB together, by collective MPI-IO, read them back and verify them.
srun strided --file {scratch}/checkpoint.$SLURM_JOB_ID \\
    --block-size 512 --blocks 65536 --collective
"""
OTHER_JOB = """\
#!/bin/sh
#SBATCH --ntasks=4 --time=5 --output=/dev/null
# Another user's: blocks of 1024 bytes, 96 MiB together.
srun strided --file {scratch}/restart.$SLURM_JOB_ID \\
    --block-size 1024 --blocks 24576 --collective
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
    first = _campaign(cluster, USER, SCRIPT, JOB)
    second = _campaign(cluster, OTHER_USER, OTHER_SCRIPT, OTHER_JOB)
    _introduce(cluster, USER, SCRIPT)
    runs = first.run(GOAL)
    _say(f"\n    $ io-autotune status {SCRIPT}\n")
    _say(cluster.run_as(USER, ["io-autotune", "status", SCRIPT]).stdout)
    study = json.loads(cluster.run_as(USER, ["io-autotune", "status", SCRIPT, "--json"]).stdout)[0]
    gain = study["gain"]
    if gain is None or not gain["resolved"] or gain["gain"] <= 0:
        _say(
            "This demo ended without a gain that can be told from noise. Is the machine very busy?"
        )
        return 1
    _introduce(cluster, OTHER_USER, OTHER_SCRIPT)
    other_runs = second.run(OTHER_GOAL)
    _begun_from(cluster, other_runs)
    _compare(first, second, found(runs), found(other_runs))
    _say(
        f"The demo took {time.monotonic() - began:.0f} s. The cluster goes on until"
        " `make demo-down`. Look around:\n"
    )
    _say("    make demo-shell     # a shell of the user whose job was tuned first; in it:")
    _say(f"    io-autotune history {SCRIPT}\n")
    return 0


def _campaign(cluster: Cluster, user: str, name: str, job: str) -> Campaign:
    """Write a user's job; what a demo before has learnt of it is left."""
    script = cluster.paths.home(user) / name
    script.write_text(job.format(scratch=cluster.paths.scratch))
    campaign = Campaign(cluster, user, script, _say)
    campaign.start_afresh()
    return campaign


def _introduce(cluster: Cluster, user: str, name: str) -> None:
    text = (cluster.paths.home(user) / name).read_text()
    _say(f"\nThe user {user} submits this job again and again:\n\n{_indented(text)}")
    _say(f"    $ sbatch --io-autotune {name}\n")
    _say(f"{'run':>4}  {'phase':8}  {'role':10} {'elapsed':>9}  what differs from ROMIO's default")


def _begun_from(cluster: Cluster, runs: list[Run]) -> None:
    """Say whom the second one has begun from."""
    explored = [run for run in runs if run["role"] in ("design", "search")]
    leaning = [run for run in explored if "other stud" in run["reason"]]
    if explored:
        job = str((leaning or explored)[0]["job_id"])
        _say(f"\n    # io-autotune explain {job} --details      by an admin, who sees the names\n")
        told = cluster.run_as(
            "root", ["io-autotune", "explain", job, "--details"]
        ).stdout.splitlines()
        _say("\n".join(line for line in told if line.startswith(("reason", "begun from"))))


def _compare(first: Campaign, second: Campaign, *places: int | None) -> None:
    """Say after how many runs each had found what it chose, and had its claim."""
    rows = {
        "one took at most a tenth more than what was chosen": places,
        "a difference from the default was claimed": (first.claimed, second.claimed),
    }
    _say(f"\nRuns until ...{SCRIPT:>56}{OTHER_SCRIPT:>14}{'ratio':>9}")
    for what, (mine, others) in rows.items():
        ratio = f"{others / mine:.0%}" if mine and others else "-"
        _say(f"    ... {what:50}{mine or 'none':>12}{others or 'none':>14}{ratio:>9}")
    _say("")


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def _say(message: str) -> None:
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())

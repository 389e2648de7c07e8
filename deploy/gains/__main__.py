"""``make accelerators-report``: PYTHONPATH=deploy python3 -m gains --root DIR [--only NAME]..."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demo.campaign import Campaign, Goal
from devcluster import Cluster, ClusterError, files

from gains import storage
from gains.cases import CASES, Case

USER = "io-alice"
STUDY = ["design_points=8", "budget=20", "control_every=2", "control_every_resolved=2"]
"""A shorter study than a site's; every second run is a control run once it has settled."""
SECONDS = 900.0
"""No job of a case is submitted later than this."""

HEAD = """#!/bin/bash
#SBATCH --ntasks=4 --exclusive --time=5 --output=/dev/null
"""


def main() -> int:
    """Tune a job for each accelerator, and print what was gained."""
    parser = argparse.ArgumentParser(prog="gains", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where the private cluster lives")
    parser.add_argument("--only", action="append", choices=[case.accelerator for case in CASES])
    parser.add_argument("--runs", type=int, default=12, help="tuned runs, and as many control runs")
    options = parser.parse_args()
    goal = Goal(tuned=options.runs, controls=options.runs, seconds=SECONDS)
    cluster = Cluster(options.root, nodes=1, study_settings=STUDY, say=_say)
    try:
        cluster.up()
        rows = [
            _row(cluster, case, goal)
            for case in CASES
            if not options.only or case.accelerator in options.only
        ]
    except (ClusterError, subprocess.CalledProcessError) as error:
        print(f"gains: {error}", file=sys.stderr)
        return 1
    finally:
        cluster.destroy()
    print("\n| accelerator | workload | default (s) | tuned (s) | gain, 95 % interval | chosen |")
    print("| --- | --- | --- | --- | --- | --- |")
    print("\n".join(rows))
    return 0


def _row(cluster: Cluster, case: Case, goal: Goal) -> str:
    problem = storage.problem() if case.throttle else None
    if problem is not None:
        return f"| `{case.accelerator}` | {case.what} | | | not measured: {problem} | |"
    _say(f"\n{case.accelerator}: {case.what}\n")
    with _place(cluster, case) as (place, device), _allowed(cluster, case, place, device):
        if case.prepare:
            subprocess.run(["bash", "-c", case.prepare], cwd=place, check=True)
        script = cluster.paths.home(USER) / f"{case.accelerator}.sh"
        script.write_text(HEAD + case.script.format(place=place), encoding="utf-8")
        Campaign(cluster, USER, script, _say, f"--io-autotune=accelerator={case.accelerator}").run(
            goal
        )
        text = cluster.run_as(USER, ["io-autotune", "status", script.name, "--json"]).stdout
    return _told(case, json.loads(text)[0])


@contextmanager
def _place(cluster: Cluster, case: Case) -> Iterator[tuple[Path, str]]:
    directory = cluster.paths.scratch / case.accelerator
    directory.mkdir()
    directory.chmod(0o777)
    if case.throttle is None:
        yield directory, ""
        return
    with storage.throttled(directory, case.throttle) as slow:
        yield slow.mount, slow.device


@contextmanager
def _allowed(cluster: Cluster, case: Case, place: Path, device: str) -> Iterator[None]:
    """Have the nodes allow what the case needs."""
    if not case.node_toml:
        yield
        return
    text = "[exclusive]\ncpus = 8\n" + (
        case.node_toml.replace("{device}", device)
        .replace("{place}", str(place))
        .replace("{bin}", str(cluster.paths.bin))
    )
    path = cluster.paths.etc / "node.toml"
    fuse = Path("/dev/fuse")
    mode = fuse.stat().st_mode if fuse.exists() else None
    files.write(path, text, mode=0o644)
    if mode is not None:
        # As udev leaves it.
        fuse.chmod(0o666)
    try:
        yield
    finally:
        path.unlink()
        if mode is not None:
            fuse.chmod(mode)


def _told(case: Case, study: dict[str, Any]) -> str:
    def mean(elapsed: dict[str, Any] | None) -> str:
        return "" if elapsed is None else f"{elapsed['mean']:.2f} (n {elapsed['n']})"

    gain = study["gain"]
    if gain is None:
        told = f"none yet: {study['phase']}"
    else:
        low, high = (f"{100 * end:.0f}" for end in gain["interval"])
        word = "" if gain["resolved"] and gain["gain"] > 0 else "no gain here: "
        told = f"{word}{100 * gain['gain']:.0f} % ({low} .. {high})"
    differs = study["differs"]
    chosen = ", ".join(f"`{name}={value}`" for name, value in differs.items()) or "the default"
    cells = [f"`{case.accelerator}`", case.what, mean(study["control"]), mean(study["tuned"])]
    return f"| {' | '.join([*cells, told, chosen])} |"


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

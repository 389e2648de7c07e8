"""``make -C analysis accelerators-report``: python -m gains --root DIR.

Each accelerator tunes a job of its own by ``sbatch --io-autotune``, one after the other. The gain
is the nightly report's: what the service claims of the study.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from demo.campaign import Campaign, Goal
from devcluster import Cluster, ClusterError, Variant, files
from devcluster.instrument import serving
from io_autotune_report.document import Gain

from gains import storage
from gains.cases import CASES, SCALED, THREADS, Case
from gains.page import Row, page

USER = "io-alice"
STUDY = ["budget=16", "control_every=2"]
"""A shorter study than a site's; every second run is a control run once it has settled."""
SECONDS = 400.0
"""No job of a case is submitted later than this, so that all of them end within an hour."""
FOLLOW_SECONDS = 60.0
"""How long the service may take to see a changed catalogue file."""

HEAD = """#!/bin/bash
#SBATCH --ntasks=4 --exclusive --time=5 --output=/dev/null
"""


def main() -> int:
    """Tune a job for each accelerator, print what was gained, and write the page."""
    parser = argparse.ArgumentParser(prog="gains", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where the private cluster lives")
    parser.add_argument("--report", type=Path, help="gets the page; without it it is printed")
    parser.add_argument(
        "--only",
        action="append",
        type=lambda name: "+".join(sorted(name.split("+"))),
        choices=[case.accelerator for case in CASES],
        help="measure this one; the others of the page stay as they are",
    )
    parser.add_argument("--runs", type=int, default=24, help="tuned runs, and as many control runs")
    options = parser.parse_args()
    goal = Goal(tuned=options.runs, controls=options.runs, seconds=SECONDS, of_one_choice=True)
    variant = Variant(burst_buffer=True)
    cluster = Cluster(options.root, nodes=1, variant=variant, study_settings=STUDY, say=_say)
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
    before = ""
    if options.report is not None and options.only and options.report.exists():
        before = options.report.read_text(encoding="utf-8")
    text = page(rows, kernel=platform.release(), before=before)
    print(text)
    if options.report is not None:
        options.report.write_text(text, encoding="utf-8")
    return 0


def _row(cluster: Cluster, case: Case, goal: Goal) -> Row:
    problem = storage.problem() if case.throttle else None
    if problem is not None:
        _say(f"\n{case.accelerator} is not measured: {problem}\n")
        return Row(case, skipped=problem)
    _say(f"\n{case.accelerator}: {case.what}\n")
    with (
        _place(cluster, case) as (place, device),
        _allowed(cluster, case, place, device),
        _buffers(cluster, case, place),
    ):
        if case.prepare:
            subprocess.run(["bash", "-c", case.prepare], cwd=place, check=True)
        script = cluster.paths.home(USER) / f"{case.accelerator}.sh"
        script.write_text(HEAD + case.script.format(place=place), encoding="utf-8")
        Campaign(cluster, USER, script, _say, f"--io-autotune=accelerator={case.accelerator}").run(
            goal
        )
        text = cluster.run_as(USER, ["io-autotune", "status", script.name, "--json"]).stdout
    study = json.loads(text)[0]
    gain = msgspec.convert(study["assessment"]["gain"], Gain)
    runs = study["counted"] + study["not_counted"]
    return Row(case, gain=gain, study=study, runs=runs, means=_means(study))


def _means(study: dict[str, Any]) -> tuple[float | None, float | None]:
    """The mean elapsed of control runs and of tuned runs, in seconds."""
    control, tuned = study["control"], study["tuned"]
    return (control and control["mean"], tuned and tuned["mean"])


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
def _buffers(cluster: Cluster, case: Case, place: Path) -> Iterator[None]:
    """Gives jobs burst buffers, and waits until the service knows what they are like."""
    if not case.buffer:
        yield
        return
    with serving(cluster.paths, place / "slow", SCALED, case.buffer):
        show = ["io-autotune", "accelerators", "show", case.accelerator, "--json"]
        deadline = time.monotonic() + FOLLOW_SECONDS
        while json.loads(cluster.run_as(USER, show).stdout)["space"][0]["default"] != THREADS:
            if time.monotonic() > deadline:
                raise ClusterError(f"{case.accelerator} is not the instrument's: see service.log")
            time.sleep(0.2)
        yield


@contextmanager
def _allowed(cluster: Cluster, case: Case, place: Path, device: str) -> Iterator[None]:
    """Writes a node.toml that allows what the case needs."""
    if not case.node_toml:
        yield
        return
    fast = cluster.paths.scratch / f"{case.accelerator}-fast"
    fast.mkdir()
    fast.chmod(0o755)
    text = "[exclusive]\ncpus = 8\n" + (
        case.node_toml.replace("{device}", device)
        .replace("{place}", str(place))
        .replace("{fast}", str(fast))
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


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Studies of several methods that take turns, so that each meets the same machine."""

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from measure_local.programs.program import RunFailed

from rocksdb_live import bench

METHODS = {
    "BO": "robert2019-surrogate:design_points={design}",
    "multi-task": "alabed2021-multitask:design_points={design}",
    "clustered": "alabed2021-multitask:design_points={design},clusters=covariance",
    "structured": "alabed2021-multitask:design_points={design},clusters=covariance,"
    "alabed2021-multitask.objective=own",
}
AGAIN = 5
"""The runs of each study's best, and of the default, after the search."""


def together(
    program: Path, space: Path, folder: Path, design: int, steps: int, seed: int
) -> list[dict[str, Any]]:
    """One study of each method under a seed, step by step in turn."""
    found: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        asked = {
            name: stack.enter_context(
                _Study(program, space, text.format(design=design), steps, seed)
            )
            for name, text in METHODS.items()
        }
        for name in METHODS:
            found[name] = {"method": name, "seed": seed, "runs": []}
        for _ in range(steps):
            for name, study in asked.items():
                found[name]["runs"].append(study.step(folder))
    chosen = {name: _best(of["runs"]) for name, of in found.items()} | {"default": bench.DEFAULT}
    again: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(AGAIN):
        for name, values in chosen.items():
            again[name].append(bench.run(folder, values).elapsed)
    return [
        kept(of) | {"best": chosen[name], "again": again[name], "default_again": again["default"]}
        for name, of in found.items()
    ]


def kept(study: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a study: by run its seconds, and what was expected of it where that is known.

    `measures` counts those that the method learnt from.
    """
    runs = study["runs"]
    return {
        "method": study["method"],
        "seed": study["seed"],
        "elapsed": [one["elapsed"] for one in runs],
        "predicted": [_short(one.get("predicted")) for one in runs],
        "factor": [_short(one.get("factor")) for one in runs],
        "measures": [len(one.get("measures", [])) for one in runs],
    }


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.4g}")


def _best(runs: list[dict[str, Any]]) -> dict[str, int]:
    quickest = min(
        (one for one in runs if one["elapsed"] is not None), key=lambda one: one["elapsed"]
    )
    return dict(quickest["values"])


class _Study:
    """A process of `live`, which suggests and learns."""

    def __init__(self, program: Path, space: Path, method: str, steps: int, seed: int) -> None:
        words = ["--space", str(space), "--method", method, "--runs", str(steps)]
        self._process = subprocess.Popen(
            [str(program), *words, "--seed", str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "_Study":
        return self

    def __exit__(self, *_: object) -> None:
        _pipe(self._process.stdin).close()
        self._process.wait()

    def step(self, folder: Path) -> dict[str, Any]:
        """One suggestion, its run, and what the method expected of it."""
        said = json.loads(_pipe(self._process.stdout).readline())
        values, reason = said["parametrization"], said["reason"]
        told: dict[str, Any]
        try:
            run = bench.run(folder, values)
            told = {"elapsed": run.elapsed, "measures": run.measures}
        except RunFailed:
            told = {"failed": True}
        pipe = _pipe(self._process.stdin)
        pipe.write(json.dumps(told) + "\n")
        pipe.flush()
        step = {"values": values, "elapsed": told.get("elapsed")}
        if reason.get("kind") == "acquired":
            step |= {name: reason[name] for name in ("predicted", "factor")}
            step["measures"] = reason.get("measures", [])
        return step


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RunFailed("the study's process has no pipe")
    return pipe

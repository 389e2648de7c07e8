"""Submits an application's job as its user would, and waits for verdict and result."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcluster import Cluster, ClusterError

from field_trial.listing import Application, Setting, texts
from field_trial.records import Run
from field_trial.storages import Place

USER = "io-alice"
PATIENCE = 180.0
"""Seconds until a job has its verdict; its own limit is shorter."""
LOOK = 0.1

HEAD = """\
#!/bin/bash
#SBATCH --ntasks=2 --exclusive --time=2 --output={output}
set -euo pipefail
"""


def script(application: Application, place: Place, places: Mapping[str, str], output: Path) -> str:
    """Return the job's script: the site's variables, what comes first in each job, the program."""
    exports = (f"export {name}={shlex.quote(v)}" for name, v in place.environment.items())
    body = "\n".join((*exports, *filter(None, (application.each, application.script))))
    for name, path in {**places, "work": str(place.work)}.items():
        body = body.replace(f"{{{name}}}", path)
    return HEAD.format(output=output) + body + "\n"


def checksum(result: Path) -> str:
    """Return a checksum of a file or directory, names and contents; empty if there is none."""
    if not result.exists():
        return ""
    digest = hashlib.sha256()
    for path in sorted([result, *result.rglob("*")]):
        digest.update(str(path.relative_to(result)).encode() + b"\0")
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def last_line(output: Path) -> str:
    """Return the last line that a job printed, in words if there is none."""
    if not output.exists():
        return "it left no output"
    lines = output.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "it printed nothing")


class Jobs:
    """An application's jobs on a cluster, one at a time."""

    def __init__(
        self, cluster: Cluster, application: Application, place: Place, places: Mapping[str, str]
    ) -> None:
        """``places`` are what words in braces of the script stand for, apart from the work."""
        self._cluster = cluster
        self._application = application
        self._result = place.work / "result"
        self._script = cluster.paths.home(USER) / f"{application.name}.sh"
        self._output = cluster.paths.home(USER) / "output"
        text = script(application, place, places, self._output)
        self._script.write_text(text, encoding="utf-8")

    def run(self, option: str) -> Run:
        """Submit the job with ``--io-autotune=OPTION``, and return its run."""
        load = os.getloadavg()[0]
        argv = ["sbatch", "--parsable", f"--io-autotune={option}", self._script.name]
        job = self._cluster.run_as(USER, argv).stdout.split(";")[0].strip()
        told = self._judged(job)
        counted = told["state"] == "counted"
        result = checksum(self._result)
        self._remove_result()
        return Run(
            setting=texts(told["differs"]),
            elapsed=told["elapsed"],
            counted=counted,
            verdict="" if counted else f"{told['verdict']}; {last_line(self._output)}",
            result=result,
            load=round(load, 2),
            role=told["role"],
        )

    def pin(self, name: str, setting: Setting) -> None:
        """Have every later run of an application get this setting."""
        values = [f"{key}={value}" for key, value in setting.items()] or ["default"]
        self._cluster.run_as(USER, ["io-autotune", "pin", name, *values])

    def status(self, name: str) -> dict[str, Any]:
        """Return what the user is told of the one study of an application."""
        argv = ["io-autotune", "status", name, "--json"]
        (study,) = json.loads(self._cluster.run_as(USER, argv).stdout)
        return dict(study)

    def _remove_result(self) -> None:
        if self._result.is_dir():
            shutil.rmtree(self._result)
        else:
            self._result.unlink(missing_ok=True)

    def _judged(self, job: str) -> dict[str, Any]:
        """Wait for the verdict on a job; root has no quota of questions."""
        argv = ["io-autotune", "explain", job, "--json"]
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            done = self._cluster.run_as("root", argv, check=False)
            if done.returncode == 0:
                run: dict[str, Any] = json.loads(done.stdout)[0]["run"]
                if run["state"] != "in_flight":
                    return run
            time.sleep(LOOK)
        raise ClusterError(
            f"job {job} of {self._application.name} has no verdict after {PATIENCE:.0f} s:"
            f" see {self._cluster.paths.log}"
        )

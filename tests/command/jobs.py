"""Jobs as their nodes and Slurm tell of them. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = Any

BATCH_STEP = 0xFFFFFFFB
EXIT_CODES = {"COMPLETED": 0, "FAILED": 1, "OUT_OF_MEMORY": 1}


@dataclass(frozen=True)
class Made:
    """One launch of a job that nobody runs."""

    cluster: str
    job_id: int
    uid: int
    request: Mapping[str, str]
    """What the plugin sends, such as an ``app``."""
    user: str | None
    account: str
    began: float
    """Seconds since 1970."""

    def start(self) -> Json:
        """Return what its prolog asks."""
        return {"job": self._job(), "request": self._request(), "started_at": told(self.began)}

    def finish(self, answer: Json, end: End) -> Json:
        """Return what its epilog reports after this answer to its start."""
        given = variables(answer["delivery"])
        applied: Json = {"kind": "default"}
        if given:
            applied = {"kind": "parametrization", "parametrization": answer["parametrization"]}
        code = EXIT_CODES.get(end.state, 0)
        return {
            "job": self._job(),
            "request": self._request(),
            "run_id": answer["run_id"],
            "applied": end.applied or applied,
            "steps": [
                {
                    "step_id": BATCH_STEP,
                    "duration_ns": round(end.seconds * 1e9),
                    "wait_status": code << 8,
                    "nodes": 1,
                    "variables": dict.fromkeys(given, "set"),
                }
            ],
            "told": list(end.told),
            "epilog": {"exit_code": f"{code}:0", "derived_exit_code": f"{code}:0"},
            "measures": dict(end.measures),
        }

    def queued(self, end: End) -> str:
        """Return its line of squeue, in the columns that the service asks for."""
        ended = self.began + -(-end.seconds // 1)
        used = int(ended - self.began)
        columns = (
            (20, self.job_id),
            (32, end.state),
            (12, 0),
            (24, local(self.began)),
            (24, local(ended)),
            (24, f"{used // 60}:{used % 60:02}"),
            (24, "UNLIMITED"),
            (12, self.uid),
            (100, "n1"),
            (66, self.account),
        )
        return "".join(f"{value:>{width}}" for width, value in columns) + "\n"

    def _job(self) -> Json:
        job = {
            "cluster": self.cluster,
            "job_id": self.job_id,
            "restart_count": 0,
            "uid": self.uid,
            "gid": self.uid,
            "node": "n1",
            "nodes": 1,
            "partition": "main",
            "cpus_per_node": "4",
        }
        return job if self.user is None else {**job, "user": self.user}

    def _request(self) -> Json:
        return {"mode": "tune", **self.request}


@dataclass(frozen=True)
class End:
    """How a job ended."""

    seconds: float = 10.0
    state: str = "COMPLETED"
    """Slurm's word."""
    applied: Json = None
    """What its node says that it had; None: what it was to have."""
    told: Sequence[Json] = ()
    """What a library in the job has read back."""
    measures: Mapping[str, float] = field(default_factory=dict)


def variables(delivery: Json) -> list[str]:
    """Return the environment variables that a delivery sets: by an empty file nothing is given."""
    files = (file for file in delivery.get("files", ()) if file["content"])
    environment = [variable["name"] for variable in delivery.get("environment", ())]
    return [*environment, *(file["variable"] for file in files)]


def told(seconds: float) -> str:
    """Return a time as nodes tell it."""
    return datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC).isoformat()


def local(seconds: float) -> str:
    """Return a time as Slurm's commands print it in UTC."""
    return told(seconds)[:19]

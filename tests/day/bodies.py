"""What nodes, the collector and admins send, in the form of release 0.2.0: nodes are upgraded last.

Pure.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from typing import Any

from bench.place import STUDIES_CLUSTER

from day.asker import Json
from day.launches import FATES, Launch

LIMIT_SECONDS = 3600
BATCH_STEP = 0xFFFFFFFB
FAILING = frozenset({"FAILED", "OUT_OF_MEMORY"})
PINNED = {"cb_nodes": "2"}


def start(launch: Launch) -> Json:
    """Return what a prolog asks."""
    return {"job": _job(launch), "request": _request(launch), "limit_seconds": LIMIT_SECONDS}


def finish(launch: Launch, answer: Json) -> Json:
    """Return what the epilog reports after this answer to its start."""
    fails = FATES[launch.fate].state in FAILING
    delivery = answer["delivery"]
    applied: Json = {"kind": "default"}
    if any(delivery.get(kind) for kind in ("environment", "files", "settings")):
        applied = {"kind": "parametrization", "parametrization": answer["parametrization"]}
    code = "1:0" if fails else "0:0"
    return {
        "job": _job(launch),
        "request": _request(launch),
        "run_id": answer["run_id"],
        "applied": applied,
        "steps": [
            {
                "step_id": BATCH_STEP,
                "duration_ns": elapsed_ns(launch, answer["parametrization"]),
                "wait_status": 256 if fails else 0,
                "nodes": 1,
                "variables": {},
            }
        ],
        "epilog": {
            "exit_code": code,
            "derived_exit_code": code,
            "limit_seconds": LIMIT_SECONDS,
        },
        "measures": {},
    }


def outcomes(told: Sequence[tuple[Launch, float, float]]) -> Json:
    """Return what the collector delivers of launches: each began and ended then, since 1970."""
    return {"cluster": STUDIES_CLUSTER, "outcomes": [_outcome(*one) for one in told]}


def elapsed_ns(launch: Launch, parametrization: Json) -> int:
    """Return how long a launch takes: 16 to 24 s by what it has, and 5 % by chance."""
    level = _hash(launch.application, sorted(parametrization.items())) % 8_000_000_000
    chance = _hash(launch.job_id, launch.restarts, "noise") % 11
    return (16_000_000_000 + level) // 100 * (95 + chance)


def _outcome(launch: Launch, began: float, ended: float) -> Json:
    outcome = {
        "job_id": launch.job_id,
        "state": FATES[launch.fate].state,
        "exit_code": "0:0",
        "started_at": _told(began),
        "ended_at": _told(ended),
        "limit_seconds": LIMIT_SECONDS,
    }
    # Older Slurm's script is not told it: then the times have to say which launch is meant.
    if launch.restarts or launch.fate == "is requeued" or launch.job_id % 2:
        outcome["restart_count"] = launch.restarts
    return outcome


def _job(launch: Launch) -> Json:
    return {
        "cluster": STUDIES_CLUSTER,
        "job_id": launch.job_id,
        "restart_count": launch.restarts,
        "uid": launch.uid,
        "gid": launch.uid,
        "node": f"n{launch.job_id % 4 + 1}",
        "nodes": 1,
        "partition": "main",
        "cpus_per_node": "8",
    }


def _request(launch: Launch) -> Json:
    return {"app": launch.application, "mode": "tune"}


def _told(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(int(seconds), tz=datetime.UTC).isoformat()


def _hash(*parts: Any) -> int:  # noqa: ANN401 -- whatever has a form of its own in text
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8])

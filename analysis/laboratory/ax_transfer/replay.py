"""Ax's studies, each kept in a file by what it depends on."""

import functools
import hashlib
import inspect
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from peers.tables import Table

from ax_transfer import study
from ax_transfer.life import LOOKS, Life
from ax_transfer.study import AxTransfer

_table = functools.cache(Table)
"""A table is read once in a process."""


@dataclass(frozen=True)
class Job:
    """A study: of which pattern, knowing what, with which seed."""

    table: Path
    others: str
    seed: int
    kept: Path

    def life(self) -> Life | None:
        """The kept one."""
        if not self.kept.exists():
            return None
        return Life(**json.loads(self.kept.read_text("utf-8")))


def jobs_of(of: dict[str, Any], patterns: Path, kept: Path, seeds: int) -> Iterator[Job]:
    """The studies of one pattern, `of` as `transfer` wrote it."""
    table = patterns / f"{of['pattern']}.json"
    others = json.dumps([one["learnt"] for one in of["others"]])
    parts = [
        _table(table).content,
        others,
        inspect.getsource(study),
        *map(version, AxTransfer.packages),
    ]
    mark = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    for seed in range(seeds):
        yield Job(table, others, seed, kept / f"{of['pattern']}-{seed}-{mark}.json")


def run(job: Job) -> None:
    """Runs a study, and keeps it."""
    life = study.live(_table(job.table), json.loads(job.others), job.seed, LOOKS[-1])
    partly = job.kept.with_suffix(".part")
    partly.write_text(json.dumps(asdict(life)), "utf-8")
    partly.replace(job.kept)

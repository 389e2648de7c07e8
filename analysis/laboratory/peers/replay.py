"""Studies of the peers and of io-autotune's methods on tables, in parallel.

A peer's studies take long and depend only on the table, the budget, the adapters and the packages:
they are kept in files by fingerprint, and only missing seeds are run.
"""

import functools
import hashlib
import inspect
import json
import math
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import draws, optimizers
from peers.optimizers import PEERS, versions
from peers.program import Program, ReplayError
from peers.studies import Study
from peers.tables import Table


@dataclass(frozen=True)
class Timed:
    """A study and the method's computing time in seconds."""

    study: Study
    computing: float


def replay_peer(table: Table, peer: str, seed: int, budget: int) -> Timed:
    """One study of a peer: the table answers, the first run is the default's."""
    started = time.perf_counter()
    optimizer = PEERS[peer](table, seed, budget)
    runs: list[int | None] = []
    counts: Counter[int] = Counter()
    lowest, lowest_place = math.inf, table.default
    for _ in range(budget):
        place = table.place(optimizer.ask())
        if not runs and place != table.default:
            raise ReplayError(f"{peer} on {table.name}: its first run is not the default's")
        runs.append(place)
        if place is None:
            optimizer.tell(None)
            continue
        elapsed = table.draw(place, counts[place], seed)
        counts[place] += 1
        if elapsed < lowest:
            lowest, lowest_place = elapsed, place
        optimizer.tell(math.log(elapsed))
    point = optimizer.recommend()
    recommended = None if point is None else table.place(point)
    return Timed(
        Study(seed, tuple(runs), lowest_place if recommended is None else recommended),
        time.perf_counter() - started,
    )


def fingerprint(table: Table, peer: str, budget: int) -> str:
    """Identifies everything that a peer's studies depend on: measurements, adapter, packages."""
    adapter = [cls for cls in PEERS[peer].__mro__ if cls.__module__ == optimizers.__name__]
    parts_of: list[Any] = [*adapter, draws, replay_peer]
    sources = [inspect.getsource(part) for part in parts_of]
    parts = [table.content, peer, str(budget), json.dumps(versions(peer)), *sources]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Kept:
    """A peer's studies on a table in a file: a line with the fingerprint, then one per study."""

    def __init__(self, directory: Path, table: Table, peer: str, budget: int) -> None:
        """Reads the file; one with another fingerprint is set aside once a study is added."""
        self._path = directory / f"{table.name}--{peer}.jsonl"
        self.studies: dict[int, Timed] = {}
        self._mark = {"fingerprint": fingerprint(table, peer, budget), "versions": versions(peer)}
        lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        self._is_new = not lines or json.loads(lines[0]) != self._mark
        if self._is_new:
            return
        for line in lines[1:]:
            # The last line is incomplete if the program was ended while writing.
            try:
                raw = json.loads(line)
            except ValueError:
                continue
            study = Study(raw["seed"], tuple(raw["runs"]), raw["recommended"])
            self.studies[study.seed] = Timed(study, raw["computing"])

    def add(self, timed: Timed) -> None:
        """Keeps one more study."""
        if self._is_new:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.exists():
                self._path.replace(self._path.with_name(f"{self._path.name}.old"))
            self._path.write_text(json.dumps(self._mark) + "\n", "utf-8")
            self._is_new = False
        self.studies[timed.study.seed] = timed
        study = timed.study
        raw = {
            "seed": study.seed,
            "runs": study.runs,
            "recommended": study.recommended,
            "computing": round(timed.computing, 3),
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._torn() + json.dumps(raw) + "\n")

    def _torn(self) -> bool:
        return not self._path.read_bytes().endswith(b"\n")


_table = functools.cache(Table)
"""A table is read once in a process."""


def _job(job: tuple[Path, str, int, int]) -> tuple[Path, str, Timed]:
    path, peer, seed, budget = job
    return path, peer, replay_peer(_table(path), peer, seed, budget)


def run_peers(
    tables_: Iterable[Table],
    peers: list[str],
    seeds: range,
    budget: int,
    directory: Path,
    jobs: int,
    progress: Callable[[int, int], None],
) -> dict[tuple[str, str], list[Timed]]:
    """Runs missing seeds in `jobs` processes; returns all kept studies by table and peer."""
    by_path = {table.path: table for table in tables_}
    kept = {
        (path, peer): Kept(directory, table, peer, budget)
        for path, table in by_path.items()
        for peer in peers
    }
    # Seed by seed, so that an interrupted run is even over tables and peers.
    missing = [
        (path, peer, seed, budget)
        for seed in seeds
        for (path, peer), file in kept.items()
        if seed not in file.studies
    ]
    if missing:
        # The libraries' threads would only compete with each other.
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(variable, "1")
        # Fresh interpreters: the libraries' threads do not survive a fork.
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            for done, (path, peer, timed) in enumerate(pool.imap_unordered(_job, missing), start=1):
                kept[path, peer].add(timed)
                progress(done, len(missing))
    return {
        (by_path[path].name, peer): [file.studies[seed] for seed in sorted(file.studies)]
        for (path, peer), file in kept.items()
    }


def run_methods(
    tables_: list[Table],
    methods: list[str],
    seeds: range,
    budget: int,
    program: Program,
    *,
    of_a_site: bool = False,
) -> dict[tuple[str, str], list[Timed]]:
    """The studies of io-autotune's methods, from `io-autotune-simulate`.

    As with `io-autotune optimize` the default runs once, as with peers; `of_a_site` adds baseline
    runs, runs between trials and the regret budget. Raises ReplayError if the program fails or
    reads the tables differently from `peers.tables`.
    """
    words = ["--per-seed", "--budget", str(budget)]
    words += [] if of_a_site else ["--outside-slurm"]
    words += ["--seeds", str(len(seeds)), "--first-seed", str(seeds.start)]
    result = program.simulate([table.path for table in tables_], methods, words)
    studies = {}
    for table, of_table in zip(tables_, result["tables"], strict=True):
        _agree(table, of_table)
        for method, of_method in zip(methods, of_table["methods"], strict=True):
            figures = {figure["metric"]: figure for figure in of_method["figures"]}
            computing = figures["ET"]["value"]
            studies[table.name, method] = [
                Timed(Study(raw["seed"], tuple(raw["runs"]), raw["recommended"]), computing)
                for raw in of_method["studies"]
            ]
    return studies


def _agree(table: Table, result: dict[str, Any]) -> None:
    for what, mine, theirs in (
        ("best", table.truths[table.best], result["best"]),
        ("default", table.truths[table.default], result["default"]),
    ):
        if not math.isclose(mine, theirs, rel_tol=1e-9):
            raise ReplayError(
                f"{table.path}: the {what} takes {mine} s here and {theirs} s in io-autotune: "
                "peers/tables.py and analysis/simulation/src/dataset have to read alike"
            )

"""Studies of the peers and of io-autotune's methods on tables, in parallel, kept in files.

A peer's studies take long and change only with the table, the budget, the adapters and the
packages: they are kept, and under the same fingerprint only seeds that are missing are run.
io-autotune's are always run.
"""

import functools
import hashlib
import json
import math
import multiprocessing
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import draws, optimizers, tables
from peers.optimizers import PEERS, versions
from peers.studies import Study
from peers.tables import Table


class ReplayError(Exception):
    """A replay that did not come to an end: what was asked, what is wrong, what to do."""


@dataclass(frozen=True)
class Timed:
    """A study, and how many seconds the method computed."""

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
    """Changes with all that a peer's studies depend on."""
    sources = [
        Path(module.__file__ or "").read_text("utf-8") for module in (draws, optimizers, tables)
    ]
    parts = [table.digest, peer, str(budget), json.dumps(versions(peer)), *sources]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Kept:
    """A peer's studies on a table, in a file: a line that says of what, then a line for each."""

    def __init__(self, directory: Path, table: Table, peer: str, budget: int) -> None:
        """Reads what there is; a file of another fingerprint is started anew."""
        self._path = directory / f"{table.name}--{peer}.jsonl"
        self.studies: dict[int, Timed] = {}
        mark = {"fingerprint": fingerprint(table, peer, budget), "versions": versions(peer)}
        lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        if not lines or json.loads(lines[0]) != mark:
            directory.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(mark) + "\n", "utf-8")
            return
        for line in lines[1:]:
            # The last line may be half of one, if the program was ended while it wrote.
            try:
                raw = json.loads(line)
            except ValueError:
                continue
            study = Study(raw["seed"], tuple(raw["runs"]), raw["recommended"])
            self.studies[study.seed] = Timed(study, raw["computing"])

    def add(self, timed: Timed) -> None:
        """Keeps one more study."""
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
    """The studies of each table and peer, in the order of the seeds.

    What is missing is run, in so many processes.
    """
    by_path = {table.path: table for table in tables_}
    kept = {
        (path, peer): Kept(directory, table, peer, budget)
        for path, table in by_path.items()
        for peer in peers
    }
    # Seed by seed: what there is when the program is ended is as even as it can be.
    missing = [
        (path, peer, seed, budget)
        for seed in seeds
        for (path, peer), file in kept.items()
        if seed not in file.studies
    ]
    if missing:
        # Libraries with threads of their own would only wait for each other.
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(variable, "1")
        # A fresh interpreter each: the libraries inside keep threads, which do not survive a fork.
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            for done, (path, peer, timed) in enumerate(pool.imap_unordered(_job, missing), start=1):
                kept[path, peer].add(timed)
                progress(done, len(missing))
    return {
        (by_path[path].name, peer): [file.studies[seed] for seed in seeds]
        for (path, peer), file in kept.items()
    }


def run_methods(
    tables_: list[Table],
    methods: list[str],
    seeds: range,
    budget: int,
    program: Path,
    jobs: int,
) -> dict[tuple[str, str], list[Timed]]:
    """The studies of io-autotune's methods, from `io-autotune simulate`.

    Raises:
        ReplayError: If it fails, or reads the tables otherwise than `peers.tables` does.
    """
    command = [str(program), "simulate", "--format", "json", "--per-seed"]
    command += ["--budget", str(budget), "--threads", str(jobs)]
    command += ["--seeds", str(len(seeds)), "--first-seed", str(seeds.start)]
    command += [word for table in tables_ for word in ("--table", str(table.path))]
    command += [word for method in methods for word in ("--method", method)]
    try:
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError as error:
        raise ReplayError(
            f"{program} is not there: run `make build`, or name it with --io-autotune"
        ) from error
    except subprocess.CalledProcessError as error:
        raise ReplayError(f"{' '.join(command)}: {error.stderr.strip()}") from error
    result = json.loads(output)
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
                "peers/tables.py and simulation/src/dataset have to read alike"
            )

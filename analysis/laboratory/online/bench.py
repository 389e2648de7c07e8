"""Runs works on a path under a policy, with the agent that jobs get."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from online.paths import Client, IoPath, Work

DEFAULT = "default"
STATIC = "best static"
PUBLISHED = "iopathtune-each"
"""The reading of IOPathTune with which others are compared, as on simulated paths."""
OURS = "settling"
FROM_BEST = " from the best"
POLICIES = (STATIC, "iopathtune", PUBLISHED, OURS, OURS + FROM_BEST)

Values = tuple[int, ...]


@dataclass(frozen=True)
class Cost:
    """What one agent cost."""

    coming: float
    """Seconds until it was ready: what a prolog waits."""
    processor: float
    """Seconds of a processor, all in all."""
    memory: int
    """Its most, KiB."""


@dataclass(frozen=True)
class Trial:
    """What is run under each policy: works one after the other, each a client's or all clients'."""

    name: str
    phases: tuple[tuple[Work, ...], ...]


@dataclass(frozen=True)
class Ran:
    """What a trial moved."""

    trial: Trial
    phases: tuple[tuple[float, ...], ...]
    """Bytes a second of each client, in each phase."""
    moves: int = 0

    @property
    def clients(self) -> list[float]:
        """Bytes a second of each client, the mean of its works."""
        return list(map(statistics.fmean, zip(*self.phases, strict=True)))

    @property
    def bandwidth(self) -> float:
        """Of all clients together."""
        return sum(self.clients)

    def of(self, work: Work) -> float:
        """What all clients moved while this work had its turn."""
        return sum(self.phases[self.trial.phases.index((work,))])


class Bench:
    """A path, and how long each work runs."""

    def __init__(self, path: IoPath, node: Path, seconds: float, period_ms: int) -> None:
        """Measure on a path with the agent of this helper."""
        self.path = path
        self._node = node
        self._seconds = seconds
        self._period_ms = period_ms
        self.costs: list[Cost] = []

    def run(self, trial: Trial, policy: str, best: Values) -> Ran:
        """Run a trial under a policy; `best` is the study's best."""
        if policy in {DEFAULT, STATIC}:
            return self.run_at(trial, best if policy == STATIC else self.path.default)
        name = policy.removesuffix(FROM_BEST)
        began = self.path.default if name == policy else best
        clients = self._clients(trial)
        self._set(clients, began)
        with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
            journals = [Path(directory) / str(number) for number in range(len(clients))]
            for client, journal in zip(clients, journals, strict=True):
                stack.enter_context(self._agent(client, name, began, journal))
            phases = self._bandwidths(trial)
            moves = sum(map(_moves, journals))
        return Ran(trial, phases, moves)

    def run_at(self, trial: Trial, values: Values) -> Ran:
        """Run a trial with levers that stay."""
        self._set(self._clients(trial), values)
        return Ran(trial, self._bandwidths(trial))

    def _clients(self, trial: Trial) -> Sequence[Client]:
        return self.path.clients[: len(trial.phases[0])]

    def _set(self, clients: Sequence[Client], values: Values) -> None:
        for client in clients:
            for file, value in zip(client.files, values, strict=True):
                file.write_text(str(value), encoding="ascii")

    def _bandwidths(self, trial: Trial) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(self._together(works)) for works in trial.phases)

    def _together(self, works: tuple[Work, ...]) -> list[float]:
        """Run works at once, a client's each."""
        own = zip(self.path.clients, works, strict=False)
        all_of_them = [self._fio(client, work) for client, work in own]
        return [_moved(fio) for fio in all_of_them]

    def _fio(self, client: Client, work: Work) -> subprocess.Popen[str]:
        argv = [
            *("fio", "--name=work", f"--directory={client.directory}", *self.path.fio),
            *("--time_based", f"--runtime={round(1000 * self._seconds)}ms"),
            *("--group_reporting", "--output-format=json"),
        ]
        return subprocess.Popen([*argv, *work.fio], stdout=subprocess.PIPE, text=True)

    @contextmanager
    def _agent(self, client: Client, policy: str, began: Values, journal: Path) -> Iterator[None]:
        """Let an agent move a client's levers, as it does for a job."""
        own = zip(self.path.levers, client.files, began, strict=True)
        order = {
            "policy": policy,
            "period_ms": self._period_ms,
            "levers": [
                {
                    "name": lever.name,
                    "least": lever.least,
                    "most": lever.most,
                    "began": value,
                    "files": [os.path.realpath(file)],
                    "kept": [],
                }
                for lever, file, value in own
            ],
            "sources": client.sources,
            "journal": str(journal),
            "group": None,
        }
        pipe = subprocess.PIPE
        asked = time.monotonic()
        agent = subprocess.Popen([self._node, "agent"], stdin=pipe, stdout=pipe, text=True)
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(json.dumps(order) + "\n")
        agent.stdin.flush()
        said = agent.stdout.readline()
        if said != "ready\n":
            raise RuntimeError(f"the agent has not come up: {said}")
        coming = time.monotonic() - asked
        agent.stdin.write("go\n")
        agent.stdin.flush()
        try:
            yield
        finally:
            proc = Path("/proc") / str(agent.pid)
            status = proc.joinpath("status").read_text(encoding="ascii")
            memory = status.split("VmHWM:")[1].split()[0]
            processor = proc.joinpath("schedstat").read_text(encoding="ascii").split()[0]
            self.costs.append(Cost(coming, int(processor) / 1e9, int(memory)))
            agent.terminate()
            agent.wait()
            agent.stdin.close()
            agent.stdout.close()


def _moves(journal: Path) -> int:
    _, *entries = journal.read_text(encoding="utf-8").splitlines()
    return sum(json.loads(entry)["moves"] for entry in entries)


def _moved(fio: subprocess.Popen[str]) -> float:
    """Return what a work moved, bytes a second."""
    told, _ = fio.communicate()
    if fio.returncode != 0:
        raise RuntimeError(f"fio ended with {fio.returncode}")
    (job,) = json.loads(told)["jobs"]
    return float(job["read"]["bw_bytes"] + job["write"]["bw_bytes"])

"""Which of the cluster's parts run, and starting, restarting and ending them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from devcluster import files, process
from devcluster.errors import ClusterError, PartFailed
from devcluster.parts import Part
from devcluster.process import Identity


@dataclass(frozen=True)
class Running:
    """A process that was started for a part."""

    identity: Identity
    fingerprint: str
    """The part's fingerprint when it was started."""
    stop: int
    """Number of the signal that ends it in good order."""
    stop_seconds: float


class Supervisor:
    """Keeps the list of processes in a file, so that a later command knows them."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        """Keep the list in ``path``; ``say`` hears what happens."""
        self._path = path
        self._say = say

    def running(self) -> dict[str, Running]:
        """Return the processes that were started, dead or alive, in the order of the parts."""
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
            return {
                str(name): Running(
                    identity=Identity(
                        pid=int(item["identity"]["pid"]),
                        start_ticks=int(item["identity"]["start_ticks"]),
                        boot=str(item["identity"]["boot"]),
                    ),
                    fingerprint=str(item["fingerprint"]),
                    stop=int(item["stop"]),
                    stop_seconds=float(item["stop_seconds"]),
                )
                for name, item in data.items()
            }
        except FileNotFoundError:
            return {}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ClusterError(
                f"{self._path}, the list of the cluster's processes, cannot be read: {error!r};"
                " end the cluster's processes by hand, remove the file, and start again"
            ) from error

    def alive(self) -> dict[str, Running]:
        """Return the processes that run now, in the order of the parts."""
        return {
            name: item for name, item in self.running().items() if process.is_alive(item.identity)
        }

    def converge(self, parts: Sequence[Part]) -> list[str]:
        """Make exactly ``parts`` run, each as it is configured now; return the names started.

        What is not wanted any more or runs with an old program or configuration is ended, the last
        part first; then what does not run is started in order, each after the one before it is
        ready.

        Raises:
            PartFailed: a part did not become ready.

        """
        wanted = {part.name: part.fingerprint() for part in parts}
        for name, item in reversed(self.running().items()):
            if not process.is_alive(item.identity):
                if name in wanted:
                    self._say(f"{name} had died")
                self._forget(name)
            elif wanted.get(name) != item.fingerprint:
                self._say(
                    f"{name} is not needed any more: ending it"
                    if name not in wanted
                    else f"{name} has a new program or configuration: restarting it"
                )
                self.end(name)
        started = []
        for part in parts:
            if part.name not in self.running():
                self._start(part, list(wanted))
                started.append(part.name)
        return started

    def check(self, parts: Sequence[Part]) -> None:
        """Check that ``parts`` run.

        Raises:
            PartFailed: one of them does not.

        """
        alive = self.alive()
        for part in parts:
            if part.name not in alive:
                raise PartFailed(part.name, "ended soon after its start", part.output)

    def end(self, name: str) -> None:
        """End one process in good order, and forget it."""
        item = self.running().get(name)
        if item is None:
            return
        if not process.end(item.identity, item.stop, item.stop_seconds):
            self._say(f"{name} did not end within {item.stop_seconds:g} s and was killed")
        self._forget(name)

    def end_all(self) -> list[str]:
        """End every process, the last part first, and return the names of those that ran."""
        alive = self.alive()
        for name in reversed(self.running()):
            self.end(name)
        return list(alive)

    def _start(self, part: Part, order: Sequence[str]) -> None:
        self._say(f"starting {part.name}")
        part.prepare()
        try:
            identity = process.spawn(
                part.argv, env=part.env, output=part.output, account=part.account
            )
        except ClusterError as error:
            raise PartFailed(part.name, f"did not start: {error}", part.output) from error
        started = Running(identity, part.fingerprint(), part.stop, part.stop_seconds)
        running = {**self.running(), part.name: started}
        self._save({name: running[name] for name in order if name in running})
        problem = process.wait_until(part.probe, part.ready_seconds, identity)
        if problem is not None:
            raise PartFailed(part.name, problem, part.output)
        part.complete()

    def _forget(self, name: str) -> None:
        self._save({known: item for known, item in self.running().items() if known != name})

    def _save(self, running: dict[str, Running]) -> None:
        data = {name: asdict(item) for name, item in running.items()}
        files.write(self._path, json.dumps(data, indent=2) + "\n", mode=0o644)

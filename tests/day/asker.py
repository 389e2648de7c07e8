"""Asks the service as nodes and admins do, many requests at once, by ``calls``, in Rust."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devcluster import command

AT_ONCE = 24
DEADLINE_MS = 10_000
"""What is tested is whether all are answered, not how fast this host is."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A request."""

    path: str
    body: Json | None = None
    by: int = 0
    """The place of the list of replicas to ask by."""
    once: bool = False
    """Not to be sent to another replica when one has it already."""


@dataclass(frozen=True)
class Answer:
    """What came of a request."""

    asked: Asked
    milliseconds: float
    json: Any
    """Empty where there is a problem."""
    problem: str | None


class Asker:
    """The program, running."""

    def __init__(self, program: Path, configs: Sequence[Path], *, user: int | None = None) -> None:
        """Start it, to ask by these configurations; as another user than root, if one is said."""
        argv = [str(program), f"--at-once={AT_ONCE}", f"--deadline-ms={DEADLINE_MS}"]
        self._child = subprocess.Popen(
            [*argv, *(f"--config={config}" for config in configs)],
            env=command.base_env(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )

    def all(self, requests: Iterable[Asked]) -> list[Answer]:
        """Send all of them, and return their answers in the same order."""
        sent = list(requests)
        answers: list[Answer | None] = [None] * len(sent)
        writing = threading.Thread(target=self._write, args=(sent,))
        writing.start()
        assert self._child.stdout is not None
        for _ in sent:
            line = self._child.stdout.readline()
            if not line:
                raise AssertionError("the program that asks has ended")
            told = json.loads(line)
            answers[told["id"]] = Answer(
                sent[told["id"]],
                told["milliseconds"],
                told.get("answer") or {},
                told.get("problem"),
            )
        writing.join()
        return [answer for answer in answers if answer is not None]

    def _write(self, sent: Sequence[Asked]) -> None:
        assert self._child.stdin is not None
        for number, one in enumerate(sent):
            line = {
                "id": number,
                "by": one.by,
                "path": one.path,
                "body": one.body,
                "once": one.once,
            }
            self._child.stdin.write(json.dumps(line) + "\n")
        self._child.stdin.flush()

    def __enter__(self) -> Self:
        """Return the program itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self._child.kill()
        self._child.wait()

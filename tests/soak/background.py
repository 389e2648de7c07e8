"""Threads beside a ``with``, whose failures are not silent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def running(over: threading.Event, *targets: Callable[[], None]) -> Iterator[None]:
    """Run these meanwhile; at the end set ``over``, wait for them, and raise what one has met."""
    problems: list[BaseException] = []

    def guarded(target: Callable[[], None]) -> None:
        try:
            target()
        except BaseException as problem:  # noqa: BLE001 -- raised below
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if problems:
        raise problems[0]

"""Users who send the service as much as it takes, beside what a test does."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

from devcluster import accounts, files
from harness import ALICE, BOB, SECONDS, Json, Site

LONGEST_SECONDS = 120.0
"""However long a test takes, a flood of its ends."""


class Flood:
    """One that goes on for so many seconds, and then for as long as a file is there."""

    def __init__(
        self,
        site: Site,
        arguments: Sequence[str],
        seconds: float,
        user: str = BOB,
        while_there: Path | None = None,
    ) -> None:
        """Begin it."""
        argv = ["flood", f"--config={site.paths.client_toml}", f"--seconds={seconds}", *arguments]
        if while_there is not None:
            argv.append(f"--while-there={while_there}")
        self._done: list[subprocess.CompletedProcess[str]] = []
        patience = seconds + SECONDS + (LONGEST_SECONDS if while_there is not None else 0.0)
        self._thread = Thread(
            target=lambda: self._done.append(site.cluster.run_as(user, argv, timeout=patience))
        )
        self._thread.start()

    def is_on(self) -> bool:
        """Return whether it goes on."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def seen(self) -> Json:
        """Wait for its end; return what came back, by kind."""
        self.wait()
        seen: Json = json.loads(self._done[0].stdout)
        return seen


class Floods:
    """Several at once, which outlast what a test does meanwhile."""

    def __init__(self, site: Site, seconds: float) -> None:
        """Begin none yet; each will last so many seconds at least."""
        self._site = site
        self._seconds = seconds
        self._fence = site.paths.scratch / f"floods-{secrets.token_hex(8)}"
        self._began = time.monotonic()
        self._fence.touch()
        self._begun: list[Flood] = []

    def begin(self, arguments: Sequence[str], user: str) -> None:
        """Let a user send this too."""
        self._begun.append(Flood(self._site, arguments, self._seconds, user, self._fence))

    def end(self) -> tuple[float, list[Json]]:
        """End all; return how many seconds they lasted, and what came back to each."""
        assert all(flood.is_on() for flood in self._begun), "a flood ended early"
        self._fence.unlink()
        seen = [flood.seen() for flood in self._begun]
        return time.monotonic() - self._began, seen

    def give_up(self) -> None:
        """End all, whatever has happened."""
        self._fence.unlink(missing_ok=True)
        for flood in self._begun:
            flood.wait()


@contextmanager
def floods(
    site: Site, wanted: Sequence[Sequence[str]], seconds: float, users: Sequence[str] = (BOB,)
) -> Iterator[Floods]:
    """Let each user send all of these at once, until the test ends them."""
    begun = Floods(site, seconds)
    with ExitStack() as stack:
        stack.callback(begun.give_up)
        for user in users:
            for arguments in wanted:
                begun.begin(arguments, user)
        yield begun


def over_tcp(site: Site) -> Path:
    """Write the configuration of a node that asks the service by TCP."""
    config = site.paths.scratch / "flooding-client.toml"
    text = site.paths.client_toml.read_text(encoding="utf-8")
    text = re.sub(r'(?m)^(node_endpoints = \[).*("tcp:[^"]*").*$', r"\1\2]", text)
    files.write(config, text, mode=0o644)
    return config


def starts(
    site: Site,
    app: str,
    first_job_id: int,
    count: int,
    *,
    clients: int = 2,
    studies: int = 4,
    config: Path | None = None,
    more: Sequence[str] = (),
) -> Json:
    """Ask for starts as prologs do, one after another, with their deadline; return the times.

    ``more`` are arguments of ``lives`` (tests/load/src/bin/lives.rs).
    """
    argv = [
        "lives",
        f"--config={config or site.paths.client_toml}",
        f"--cluster={site.cluster_name}",
        f"--app={app}",
        f"--first-job-id={first_job_id}",
        f"--lives={count}",
        f"--clients={clients}",
        f"--studies={studies}",
        "--starts-only",
        *more,
    ]
    done = site.cluster.run_as("root", argv, timeout=count * 2 + SECONDS)
    summary: Json = json.loads(done.stdout)
    return summary


def storm(
    site: Site,
    app: str,
    first_job_id: int,
    count: int,
    deadline_ms: int,
    *,
    config: Path | None = None,
    more: Sequence[str] = (),
) -> Json:
    """Start many runs of one study of ALICE's at once, and hang up at the deadline."""
    given = (f"--uid={accounts.find(ALICE).uid}", f"--deadline-ms={deadline_ms}", *more)
    return starts(
        site, app, first_job_id, count, clients=count, studies=1, config=config, more=given
    )

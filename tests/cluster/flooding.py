"""Users who send the service as much as it takes, beside what a test does."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Thread

from devcluster import files
from harness import BOB, SECONDS, Json, Site


class Flood:
    """One that goes on for so many seconds."""

    def __init__(
        self, site: Site, arguments: Sequence[str], seconds: float, user: str = BOB
    ) -> None:
        """Begin it."""
        argv = ["flood", f"--config={site.paths.client_toml}", f"--seconds={seconds}", *arguments]
        self._done: list[subprocess.CompletedProcess[str]] = []
        patience = seconds + SECONDS
        self._thread = Thread(
            target=lambda: self._done.append(site.cluster.run_as(user, argv, timeout=patience))
        )
        self._thread.start()

    def is_on(self) -> bool:
        """Return whether it goes on."""
        return self._thread.is_alive()

    def seen(self) -> Json:
        """Wait for its end; return what came back, by kind."""
        self._thread.join()
        seen: Json = json.loads(self._done[0].stdout)
        return seen


@contextmanager
def floods(
    site: Site, wanted: Sequence[Sequence[str]], seconds: float, users: Sequence[str] = (BOB,)
) -> Iterator[list[Flood]]:
    """Let each user send all of these at once."""
    with ExitStack() as stack:
        begun = []
        for user in users:
            for arguments in wanted:
                begun.append(Flood(site, arguments, seconds, user))
                stack.callback(begun[-1].seen)
        yield begun


def starts(
    site: Site,
    app: str,
    first_job_id: int,
    count: int,
    *,
    clients: int = 2,
    studies: int = 4,
    over_tcp: bool = False,
    more: Sequence[str] = (),
) -> Json:
    """Ask for starts as prologs do, one after another, with their deadline; return the times.

    ``more`` are arguments of ``lives`` (tuner-service/protocol/examples/lives.rs).
    """
    config = site.paths.client_toml
    if over_tcp:
        text = config.read_text(encoding="utf-8")
        config = site.paths.scratch / "flooding-client.toml"
        text = re.sub(r'(?m)^(node_endpoints = \[).*("tcp:[^"]*").*$', r"\1\2]", text)
        files.write(config, text, mode=0o644)
    argv = [
        "lives",
        f"--config={config}",
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

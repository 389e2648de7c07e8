"""Clusters of the tests' own: brought up, looked after for what they leave behind, destroyed."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from devcluster import Cluster, ClusterError, Variant, command
from harness import Site

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

ROOT_DIRECTORY = Path(os.environ.get("IO_AUTOTUNE_TEST_ROOT", "/var/lib/io-autotune-test"))
"""Where the shared cluster lies while the tests run; those of another make-up lie beside it."""
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
"""Which of pytest's workers this is, where several run side by side, each on its own clusters."""
KEPT_LOGS = Path(__file__).resolve().parents[2] / "build" / "test-cluster-logs"
"""Where the logs go when a test has failed, a directory for each cluster."""
KEEP = "IO_AUTOTUNE_KEEP"
"""Set this variable to 1 to keep a cluster when a test has failed on it."""
SHARED = "squeue"
"""What lives.md calls the make-up of the cluster that most tests share."""

VARIANT: dict[str, Any] = json.loads(os.environ.get("IO_AUTOTUNE_TEST_VARIANT", "{}"))
"""Fields of ``Variant`` in which every cluster differs: ``make test-series`` sets them."""

MESSAGES: pytest.StashKey[list[str]] = pytest.StashKey()
"""What is to be said at the very end."""

STUDY_SETTINGS = (
    "baseline_runs=2",
    "budget=8",
    "exploring=2",
    "control_every=2",
    # What other tests' studies have learnt is not to decide.
    "prior=off",
    # Eight runs are few: one more of a child must do.
    "robert2020.resampling_share=0.5",
    # Most jobs of the tests read nothing of what they are given, and do hardly any I/O.
    "stop.unread_runs=0",
    "stop.little_io=0",
)
"""So that a study settles within a minute."""


def skip_before(series: tuple[int, int], lack: str) -> tuple[int, int]:
    """Return Slurm's series; skip what needs a later one, by what this one does not have."""
    version = command.run([command.find("slurmd"), "-V"]).stdout.split()[1]
    year, month = map(int, version.split(".")[:2])
    if (year, month) < series:
        pytest.skip(f"Slurm {version} {lack}")
    return year, month


@contextmanager
def cluster_of_its_own(
    request: pytest.FixtureRequest, make_up: str, **options: object
) -> Iterator[Site]:
    """Bring up a cluster; at the end, check that nothing was left behind, and destroy it.

    ``make_up`` is what lives.md calls it; ``options`` are those of Cluster that are to differ
    from the shared cluster's.
    """
    if os.geteuid() != 0:
        pytest.exit(
            "tests/cluster starts a private Slurm cluster, and only root can: run it as root",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )
    chosen: dict[str, Any] = {
        "nodes": 2,
        "prolog_alloc": True,
        "study_settings": STUDY_SETTINGS,
        "say": lambda message: print(message, flush=True),
        **options,
    }
    chosen["variant"] = replace(chosen.get("variant") or Variant(), **VARIANT)
    cluster = Cluster(_root(make_up), **chosen)
    cluster.destroy()
    failed_before = request.session.testsfailed
    try:
        cluster.up()
        site = Site(cluster, make_up)
        yield site
        site.check_nothing_left()
    except BaseException:
        _leave(request.config, cluster, failed=True)
        raise
    _leave(request.config, cluster, failed=request.session.testsfailed > failed_before)


def say(config: pytest.Config, message: str) -> None:
    """Say something at the very end, past what pytest captures."""
    config.stash.setdefault(MESSAGES, []).append(message)


def say_at_the_end(config: pytest.Config) -> None:
    """Have this module's hooks print what was said."""
    if not config.pluginmanager.is_registered(sys.modules[__name__]):
        config.pluginmanager.register(sys.modules[__name__])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand a worker's messages over to the process that prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["messages"] = session.config.stash.get(MESSAGES, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Take a worker's messages; one that died has none."""
    for message in getattr(node, "workeroutput", {}).get("messages", []):
        say(node.config, message)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say where the clusters' logs are, past what pytest captures."""
    for message in config.stash.get(MESSAGES, []):
        terminalreporter.write_line(message)


def _root(make_up: str) -> Path:
    words = [] if make_up == SHARED else re.findall(r"[a-z0-9]+", make_up.lower())
    name = "-".join([ROOT_DIRECTORY.name, *([WORKER] if WORKER else []), *words])
    return ROOT_DIRECTORY.with_name(name)


def _leave(config: pytest.Config, cluster: Cluster, *, failed: bool) -> None:
    """Destroy the cluster. After a failure its logs are kept, and itself where that was asked."""
    kept = KEPT_LOGS / cluster.root.name
    shutil.rmtree(kept, ignore_errors=True)
    if failed and cluster.paths.log.is_dir():
        shutil.copytree(cluster.paths.log, kept)
        say(config, f"the cluster's logs are in {kept}")
    if failed and os.environ.get(KEEP) == "1":
        say(
            config,
            f"the cluster in {cluster.root} is kept; look around with 'PYTHONPATH=tests python3 -m"
            f" devcluster shell --root {cluster.root}', remove it with 'destroy'",
        )
        return
    if failed:
        say(config, f"{KEEP}=1 would keep the cluster for a look at it")
    try:
        cluster.destroy()
    except ClusterError as error:
        say(config, f"the cluster in {cluster.root} could not be destroyed: {error}")
        raise

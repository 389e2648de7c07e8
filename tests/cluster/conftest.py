"""A cluster of the tests' own, brought up once and destroyed at the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from devcluster import Cluster, ClusterError
from harness import Site

ROOT_DIRECTORY = Path("/var/lib/io-autotune-test")
"""Where the cluster lies while the tests run."""
KEPT_LOGS = Path(__file__).resolve().parents[2] / "build" / "test-cluster-logs"
"""Where the logs go when a test has failed."""
KEEP = "IO_AUTOTUNE_KEEP"
"""Set this variable to 1 to keep the cluster when a test has failed."""

MESSAGES: pytest.StashKey[list[str]] = pytest.StashKey()
"""What is to be said at the very end."""

STUDY_SETTINGS = (
    "baseline_runs=2",
    "design_points=4",
    "budget=8",
    "exploring=2",
    "control_every=2",
    # Eight runs are few: one more of a child must do.
    "robert2020.resampling_share=0.5",
)
"""So that a study settles within a minute."""


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up the cluster; at the end, check that nothing was left behind, and destroy it."""
    if os.geteuid() != 0:
        pytest.exit(
            "tests/cluster starts a private Slurm cluster, and only root can: run it as root",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )
    cluster = Cluster(
        ROOT_DIRECTORY,
        nodes=2,
        prolog_alloc=True,
        study_settings=STUDY_SETTINGS,
        say=lambda message: print(message, flush=True),
    )
    cluster.destroy()
    try:
        cluster.up()
        site = Site(cluster)
        yield site
        site.check_nothing_left()
    except BaseException:
        _leave(request.config, cluster, failed=True)
        raise
    _leave(request.config, cluster, failed=request.session.testsfailed > 0)


@pytest.fixture(autouse=True)
def _no_node_is_lost(site: Site) -> Iterator[None]:
    """After each test every node still takes jobs."""
    yield
    site.check_nodes()


def _leave(config: pytest.Config, cluster: Cluster, *, failed: bool) -> None:
    """Destroy the cluster. After a failure its logs are kept, and itself where that was asked."""
    shutil.rmtree(KEPT_LOGS, ignore_errors=True)
    if failed and cluster.paths.log.is_dir():
        shutil.copytree(cluster.paths.log, KEPT_LOGS)
        _say(config, f"the cluster's logs are in {KEPT_LOGS}")
    if failed and os.environ.get(KEEP) == "1":
        _say(
            config,
            f"the cluster in {cluster.root} is kept; look around with 'PYTHONPATH=deploy python3 -m"
            f" devcluster shell --root {cluster.root}', remove it with 'destroy'",
        )
        return
    if failed:
        _say(config, f"{KEEP}=1 would keep the cluster for a look at it")
    try:
        cluster.destroy()
    except ClusterError as error:
        _say(config, f"the cluster in {cluster.root} could not be destroyed: {error}")
        raise


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say where the cluster's logs are, past what pytest captures."""
    for message in config.stash.get(MESSAGES, []):
        terminalreporter.write_line(message)


def _say(config: pytest.Config, message: str) -> None:
    config.stash.setdefault(MESSAGES, []).append(message)

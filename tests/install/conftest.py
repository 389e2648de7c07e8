"""Packages of each suite, of this tree and of an older commit, and sites that install them.

IO_AUTOTUNE_TEST_SUITES names other suites. What the tests see is kept, suite by suite, for
docs/measurements/install.md; --write-install writes it there.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from packages import site
from packages.rooms import TREE
from packages.suites import SUITES, Suite, named

from install import page, previous
from install.cluster import Site, prepared
from install.guide import NOW, PREVIOUS

OUT = TREE / "build/test-packages"
CHOSEN = os.environ.get("IO_AUTOTUNE_TEST_SUITES", " ".join(suite.name for suite in SUITES)).split()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the page be renewed."""
    parser.addoption("--write-install", action="store_true", help="renew the page")


@pytest.fixture(scope="session", params=CHOSEN)
def suite(request: pytest.FixtureRequest) -> Suite:
    """A suite, whose packages are built."""
    chosen = named(request.param)
    if "IO_AUTOTUNE_TEST_PACKAGES" not in os.environ:
        site.build([f"--out={OUT}", f"--suite={chosen.name}"])
    return chosen


@pytest.fixture(scope="module")
def here(request: pytest.FixtureRequest, suite: Suite) -> Iterator[Site]:
    """A site of the suite, that runs jobs and has never heard of io-autotune."""
    built = Path(os.environ.get("IO_AUTOTUNE_TEST_PACKAGES", OUT)) / suite.name
    places = {built: NOW, TREE / "deploy": "/packages/deploy"}
    if getattr(request.module, "UPGRADES", False):
        places[previous.built(suite)] = PREVIOUS
    made = prepared(suite, places)
    try:
        yield made
    finally:
        made.close()


_failed: dict[tuple[str, str], str] = {}
"""By module and suite, the step that failed."""


def _site_of(item: pytest.Item) -> tuple[str, str] | None:
    chosen = getattr(item, "callspec", None)
    return None if chosen is None else (str(item.path), chosen.params["suite"])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what follows a step that failed on the same site."""
    site = _site_of(item)
    if site in _failed:
        pytest.skip(f"{_failed[site]} failed before")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what a test gave."""
    report = yield
    site = _site_of(item)
    if site is not None and (report.when == "call" or not report.passed):
        page.keep(site[1], item, report)
        if report.failed:
            _failed[site] = item.name
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Renew the page where that is asked."""
    if session.config.getoption("--write-install"):
        page.write()

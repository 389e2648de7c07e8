"""The packages of each suite, built once for all tests.

IO_AUTOTUNE_TEST_SUITES names other suites, IO_AUTOTUNE_TEST_PACKAGES a directory of packages that
are tested as they are.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from packages import rpms, site
from packages.rooms import TREE
from packages.suites import SUITES, named

OUT = TREE / "build/test-packages"
SITES = TREE / "build/test-packages-sites"
"""Apart from the packages: what is released is checked against all files of its directory."""
CHOSEN = os.environ.get("IO_AUTOTUNE_TEST_SUITES", " ".join(suite.name for suite in SUITES)).split()


@pytest.fixture(scope="session")
def built() -> Path:
    """Where the packages are, a directory for each suite."""
    if "IO_AUTOTUNE_TEST_PACKAGES" in os.environ:
        return Path(os.environ["IO_AUTOTUNE_TEST_PACKAGES"])
    site.build([f"--out={OUT}", *(f"--suite={name}" for name in [*CHOSEN, rpms.NAME])])
    return OUT


@pytest.fixture(scope="session", params=CHOSEN)
def here(request: pytest.FixtureRequest, built: Path) -> site.Site:
    """A suite's packages and clean roots."""
    suite = named(request.param)
    return site.prepared(suite, built / suite.name, SITES / suite.name)

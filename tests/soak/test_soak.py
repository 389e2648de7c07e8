"""Nothing lost, nothing double, no job harmed, whatever is killed, stopped, filled or forged."""

from __future__ import annotations

from pathlib import Path

import pytest
from devcluster import files
from harness import Site

from soak import page
from soak.soak import Soak

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measurements" / "soak.md"
"""The report of the long one."""


def test_no_invariant_is_violated(
    site: Site, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    seed, jobs = request.config.getoption("--seed"), request.config.getoption("--jobs")

    def say(line: str) -> None:
        with capsys.disabled():
            print(line, flush=True)

    say(f"\n{jobs} jobs under seed {seed}")
    soak = Soak(site, seed, jobs, say)
    try:
        soak.run()
    finally:
        if soak.facts is not None:
            text = page.render(soak.outcome(), soak.facts, soak.checker.tallies)
            if request.config.getoption("--write-soak"):
                files.write(PAGE, text, mode=0o644)
            else:
                say(text)
    violated = {
        name: sorted(tally.violations)
        for name, tally in soak.checker.tallies.items()
        if tally.violations
    }
    assert not violated

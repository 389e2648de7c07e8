"""What the report promises of many studies: report-guarantees.md in small."""

import os
import subprocess
from pathlib import Path
from statistics import fmean

import pytest
from guarantees.sites import Claims, Totals, read
from scipy.stats import binom

# Nightly all that drift by a tenth, by day the one whose noise the aims are about.
IS_COMPLETE = os.environ.get("IO_AUTOTUNE_CALIBRATION") == "complete"
DRIFTING = "drift 10 %" if IS_COMPLETE else "noise 17 %, drift 10 %"
# Sites of claims, and of totals.
SITES = (2, 30) if IS_COMPLETE else (1, 12)
PROGRAM = Path(__file__).parents[3] / "target/simulation/release/guarantees"


@pytest.fixture(scope="module")
def said() -> tuple[Claims, dict[str, Totals]]:
    """Analyse what the program says, which ``make -C analysis test`` has built."""
    studies = 4 * SITES[1]
    command = [str(PROGRAM), "--sites", "--studies", str(studies), "--world", DRIFTING]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return read(run.stdout.splitlines())


def test_few_of_a_site_s_claims_are_false(said: tuple[Claims, dict[str, Totals]]) -> None:
    claims, _ = said
    assert (claims.sites, claims.studies) == (SITES[0], 300)
    assert claims.false <= 0.05
    assert claims.found > 0.5


def test_totals_hold_the_truth_in_each_night(said: tuple[Claims, dict[str, Totals]]) -> None:
    _, totals = said
    assert totals
    assert all(DRIFTING in world for world in totals)
    for total in totals.values():
        assert total.sites == SITES[1]
        assert total.end >= total.always >= 0.93
        # Every other site has no effect; one such sample in a hundred has more where 5 % are false.
        without = SITES[1] // 2
        assert total.false <= binom.ppf(0.99, without, 0.05) / without
    assert fmean(total.false for total in totals.values()) <= 0.05

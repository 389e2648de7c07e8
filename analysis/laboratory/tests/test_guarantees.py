"""What the report promises, by simulation under fixed seeds: report-guarantees.md in small."""

import numpy as np
import pytest
from guarantees.measure import (
    Rate,
    coverage,
    detectable,
    discoveries,
    null,
    totals,
)
from guarantees.study import look
from guarantees.worlds import World, draw
from histories import CHOSEN, DEFAULT, Rows, frame, row
from io_autotune_report.analyse.estimators import gain

HARD = [World(0.05, drift=0.1), World(0.17, drift=0.1), World(0.30, drift=0.1)]
UNLIKE = World(0.1, control_noise=0.2)


@pytest.mark.parametrize("world", [*HARD, UNLIKE], ids=str)
def test_studies_without_an_effect_are_rarely_claimed_to_have_one(world: World) -> None:
    said = null(1, 400, world)
    assert said.ever.share <= 0.05
    # The simulation sees what it is there to see.
    assert said.every_look.share > 0.2
    assert said.lucky.share > 0.2


@pytest.mark.parametrize("world", [*HARD, UNLIKE], ids=str)
def test_intervals_hold_the_truth_at_each_look_of_a_life(world: World) -> None:
    said = coverage(2, 400, world)
    assert said.end.share >= 0.95
    assert said.always.share >= 0.93


def test_what_can_be_detected_is_what_the_docs_say() -> None:
    five, thirty, seventy = detectable(3, 300, World(0.17), [5, 30, 70])
    assert 0.35 <= five <= 0.55
    assert 0.12 <= thirty <= 0.17
    assert 0.08 <= seventy <= 0.12


def test_few_of_a_site_s_claims_are_false() -> None:
    said = [discoveries(seed, 300, World(0.17), 0.7) for seed in range(6)]
    assert np.mean([false for false, _, _ in said]) <= 0.05
    assert min(found for _, found, _ in said) > 0.5


@pytest.mark.parametrize("world", HARD[:2], ids=str)
def test_totals_hold_the_truth_in_each_night(world: World) -> None:
    said = totals(4, 60, world)
    assert said.always.share >= 0.93
    assert said.false.share <= 0.05


def test_the_simulation_says_what_the_report_says() -> None:
    random = np.random.default_rng(5)
    truth = np.array([0.0, 0.1, 0.3, -0.2])
    blocks = draw(random, World(0.1), truth, 30, 9)
    said = look(blocks, truth)
    for study in range(truth.size):
        rows: Rows = []
        for control, tuned in zip(blocks.control[study], blocks.tuned[study], strict=True):
            for place, log in enumerate(np.insert(tuned, 4, control)):
                role, key = ("control", DEFAULT) if place == 4 else ("settled", CHOSEN)
                rows.append(row(len(rows) + 1, float(np.exp(log)), role, "settled", key))
        report = gain(frame(rows))
        claimed = {1: "faster", -1: "slower"}.get(int(said.claimed[study, -1]))
        # Where nothing is near a claim the simulation leaves out what would only lessen it.
        assert report.evidence <= said.evidence[study, -1] * (1 + 1e-6)
        if claimed is not None:
            assert report.evidence == pytest.approx(said.evidence[study, -1], rel=1e-6)
        assert (report.verdict if report.verdict in ("faster", "slower") else None) == claimed
        holds = report.low < 1 - np.exp(-truth[study]) < report.high
        assert holds == said.covered[study, -1]


def test_rates_add_up() -> None:
    assert (Rate(1, 4) + Rate(1, 6)).share == 0.2

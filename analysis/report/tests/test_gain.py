"""What may be claimed of many studies, from what the service says of each; node-hours."""

import msgspec
import numpy as np
import pytest
from histories import CHOSEN, assessment, effect, frame, noise, settled, unsettled
from io_autotune_report.analyse.estimators import (
    Part,
    false_discovery,
    group,
    node_hours,
    node_hours_of,
    spent,
)
from io_autotune_report.document import Gain
from io_autotune_report.load.assessment import UNKNOWN, Assessment, decode


def part(*effects: object, **known: object) -> Part:
    runs = frame(unsettled(noise(1, 0.1)))
    return Part(spent(runs), assessment(*effects, **known))


def test_what_the_service_keeps_is_read_as_it_is() -> None:
    told = {
        "epoch": 2,
        "gain": {**msgspec.to_builtins(UNKNOWN), "verdict": "faster", "control_runs": 9},
        "effects": [
            {**msgspec.to_builtins(effect(epoch=1, last=9)), "low": -0.1, "high": None},
            msgspec.to_builtins(effect(epoch=2, number=2, last=5)),
            msgspec.to_builtins(effect(epoch=2, number=3, last=6)),
        ],
        "findings": [{"kind": "ineffective", "what": "It has no effect.", "do": "Nothing."}],
    }
    known = decode(msgspec.json.encode(told).decode())
    assert (known.epoch, known.gain.verdict, len(known.effects)) == (2, "faster", 3)
    assert known.findings[0].action == "Nothing."
    assert known.current is not None
    assert known.current.number == 3
    assert decode(None).gain.reason == "The service has not assessed this study yet."
    assert decode(None).current is None


def test_node_hours_are_summed_over_all_that_was_chosen() -> None:
    first = effect(saved=20.0, controls=2.0, a_month=7.0, last=1)
    second = effect(number=2, saved=-5.0, controls=1.0, a_month=3.0, last=2)
    told = node_hours_of([part(first, second)])
    assert told.exploring is not None
    assert (told.by_chosen, told.controls) == (15.0, 3.0)
    assert told.saved == pytest.approx(15.0 - 3.0 - told.exploring)
    assert told.low is not None
    assert told.low < told.saved
    # A month is worth what is chosen now.
    assert told.a_month == 3.0


def test_exploration_costs_what_it_took_beyond_the_default() -> None:
    told = node_hours(frame(unsettled(lambda: 1.0)), Assessment())
    assert told.exploring == pytest.approx(16 * 20 * 4 / 3600)
    assert told.saved is None


def test_small_effects_are_seen_in_the_sum() -> None:
    random = np.random.default_rng(30)
    error = 0.03
    studies = [
        part(effect(log_ratio=0.04 + error * random.standard_normal(), standard_error=error))
        for _ in range(80)
    ]
    said, hours = group(studies)
    assert said.verdict == "faster"
    assert said.low is not None
    assert said.high is not None
    assert said.low < 0.04 < said.high < 0.08
    assert hours.low is not None
    assert hours.saved is not None
    assert hours.high is not None
    assert hours.low < hours.saved < hours.high


def test_a_sum_of_which_typical_runs_and_node_hours_disagree_claims_nothing() -> None:
    studies = [part(effect(log_ratio=0.1, standard_error=0.01, saved=-5.0)) for _ in range(20)]
    assert group(studies)[0].verdict == "unclear"


def test_a_sum_that_is_next_to_nothing_is_no_effect() -> None:
    studies = [part(effect(log_ratio=0.0001, standard_error=0.005)) for _ in range(80)]
    assert group(studies)[0].verdict == "no_effect"


def test_a_group_of_one_says_what_the_study_says() -> None:
    one = part(effect(), verdict="faster", share=0.3)
    assert group([one]) == (one.assessment.gain, node_hours_of([one]))


def test_a_group_without_anything_compared_says_so() -> None:
    runs = frame(unsettled(noise(3, 0.1)))
    said, hours = group([Part(spent(runs), Assessment()) for _ in range(3)])
    assert (said.verdict, said.share, hours.saved) == ("not_yet", None, None)
    assert group([])[0].verdict == "not_yet"


def test_what_is_not_bounded_does_not_enter_a_sum() -> None:
    """All runs of one side were cut short."""
    endless = part(effect(log_ratio=None, standard_error=None))
    assert group([endless, endless])[0].verdict == "not_yet"


def claimed(evidence: float) -> Gain:
    known = assessment(effect(), verdict="faster", share=0.3, evidence=evidence)
    return known.gain


def test_among_many_studies_a_claim_needs_more_evidence() -> None:
    alone = false_discovery([claimed(25.0)])
    assert alone[0].verdict == "faster"
    many = false_discovery([claimed(25.0)] + [claimed(0.5)] * 9)
    assert many[0].verdict == "not_yet"
    assert "10 studies" in many[0].reason
    strong = false_discovery([claimed(500.0)] + [claimed(0.5)] * 9)
    assert strong[0].verdict == "faster"


def test_runs_of_several_studies_are_refused() -> None:
    runs = frame(settled(20, 1.0, noise(42, 0.1)))
    runs["study_id"] = np.arange(20) % 2
    with pytest.raises(ValueError, match="runs of 2 studies"):
        spent(runs)


def test_no_runs_at_all() -> None:
    told = spent(frame(settled(2, 1.0, noise(43, 0.1), key=CHOSEN)).iloc[:0])
    assert (told.used, told.exploring) == (0.0, 0.0)

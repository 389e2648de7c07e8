"""What may be claimed of one study: each rule on a history that would break it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from histories import CHOSEN, DEFAULT, Rows, frame, noise, row, settled, unsettled
from io_autotune_report.analyse.estimators import (
    false_discovery,
    gain,
    group,
    node_hours,
    part,
)
from io_autotune_report.document import Gain


def with_column(rows: Rows, name: str, values: Any) -> pd.DataFrame:  # noqa: ANN401
    runs = frame(rows)
    runs[name] = values
    return runs


def test_a_large_gain_is_claimed_and_its_interval_holds_it() -> None:
    said = gain(frame(unsettled(noise(1, 0.1)) + settled(200, 0.7, noise(2, 0.1), since=20)))
    assert said.verdict == "faster"
    assert said.low < 0.3 < said.high
    assert (said.tuned_runs, said.control_runs) == (180, 19)
    assert said.evidence > 20


def test_a_loss_is_claimed_too() -> None:
    said = gain(frame(settled(300, 1.4, noise(3, 0.1))))
    assert said.verdict == "slower"
    assert said.low < -0.4 < said.high < 0


def test_without_an_effect_nothing_is_claimed_and_what_is_missing_is_said() -> None:
    said = gain(frame(settled(100, 1.0, noise(4, 0.17))))
    assert said.verdict == "not_yet"
    assert said.low < 0 < said.high
    assert 0.15 < said.detectable < 0.45


def test_a_gain_that_shows_too_little_says_how_many_more_runs() -> None:
    few = gain(frame(settled(150, 0.88, noise(5, 0.17))))
    assert few.verdict == "not_yet"
    assert 50 < few.runs_needed < 2000


def test_a_difference_below_what_is_worth_it_is_no_effect() -> None:
    said = gain(frame(settled(2000, 1.0, noise(6, 0.04))))
    assert said.verdict == "no_effect"
    assert -0.03 < said.low < 0 < said.high < 0.03


def test_runs_from_before_the_choice_do_not_count() -> None:
    """The baseline took twice as long, the control runs since take what the chosen ones do."""
    rows = unsettled(noise(7, 0.1)) + settled(300, 1.0, noise(8, 0.1), since=20)
    before = with_column(
        rows,
        "elapsed",
        [r["elapsed"] * (2 if r["phase"] != "settled" else 1) for r in rows],
    )
    assert gain(before) == gain(frame(rows))
    assert gain(before).verdict == "not_yet"


def test_exploring_runs_of_the_chosen_parametrization_do_not_count() -> None:
    rows = settled(300, 1.0, noise(9, 0.1))
    lucky = [row(400 + n, 10.0, "search", "search", CHOSEN) for n in range(100)]
    assert gain(frame(rows + lucky)).tuned_runs == gain(frame(rows)).tuned_runs


def test_a_step_in_time_cancels_within_blocks() -> None:
    """From the middle on all takes three times as long, and control runs are half as frequent."""
    early, late = settled(200, 0.9, noise(10, 0.03)), settled(200, 0.9, noise(11, 0.03), 20)
    rows = early + [{**r, "ordinal": r["ordinal"] + 200, "elapsed": 3 * r["elapsed"]} for r in late]
    rows = [{**r, "started_at": early[0]["started_at"] + pd.Timedelta(hours=r["ordinal"])}
            for r in rows]  # fmt: skip
    said = gain(frame(rows))
    assert said.share == pytest.approx(0.1, abs=0.02)
    assert said.high - said.low < 0.1


def test_the_order_is_that_of_starts_and_not_of_ends() -> None:
    """A thousand tasks start at once; judged as they end, the quick ones come first."""
    rows = settled(300, 0.7, noise(12, 0.1))
    by_end = sorted(rows, key=lambda r: r["elapsed"])
    judged = [{**r, "ordinal": place + 1} for place, r in enumerate(by_end)]
    assert gain(frame(judged)) == gain(frame(rows))
    assert gain(frame(judged)).verdict == "faster"


def test_another_choice_is_another_comparison_with_a_smaller_part_of_the_error() -> None:
    first = settled(200, 0.7, noise(13, 0.1))
    second = settled(200, 1.0, noise(14, 0.1), key='{"a":3}', since=200)
    said = gain(frame(first + second))
    assert said.verdict == "not_yet"
    assert said.share == pytest.approx(0.0, abs=0.1)
    assert said.level == pytest.approx(1 - 0.05 / 6)
    assert len(part(frame(first + second)).effects) == 2


def test_a_control_run_from_before_a_change_of_choice_does_not_count_after_it() -> None:
    """It may be a reason of the change."""
    rows = [row(1, 100, "settled", "settled", CHOSEN), row(2, 900, "control", "settled", DEFAULT)]
    rows += [row(n, 100, "settled", "settled", '{"a":3}') for n in range(3, 12)]
    assert gain(frame(rows)).control_runs == 0


def test_a_new_epoch_says_nothing_until_it_has_chosen() -> None:
    rows = settled(200, 0.7, noise(15, 0.1)) + unsettled(noise(16, 0.1), epoch=2)
    said = gain(frame(rows))
    assert (said.verdict, said.share) == ("not_yet", None)
    assert "Epoch 2" in said.reason


def test_where_the_default_is_chosen_there_is_nothing_to_gain() -> None:
    said = gain(frame(settled(100, 1.0, noise(17, 0.1), key=DEFAULT)))
    assert (said.verdict, said.share) == ("no_effect", 0.0)


def test_typical_runs_and_node_hours_that_disagree_claim_nothing() -> None:
    """Most runs are 10 % faster, every fifth takes three times as long."""
    rows = settled(400, 0.9, noise(18, 0.03, outliers=0))
    tuned = [r for r in rows if r["role"] == "settled"]
    for slow in tuned[::5]:
        slow["elapsed"] = 3 * slow["elapsed"]
    said = gain(frame(rows))
    assert said.low > 0
    assert said.verdict == "unclear"


def test_runs_that_were_cut_short_are_slow_runs() -> None:
    """Left out, a choice under which every third run ends at the limit would look faster."""
    rows = settled(400, 0.95, noise(19, 0.02, outliers=0))
    for cut in [r for r in rows if r["role"] == "settled"][::3]:
        cut.update(effect="censored", elapsed=120.0)
    assert gain(frame(rows)).verdict != "faster"
    left_out = [r for r in rows if r["effect"] == "sample"]
    assert gain(frame(left_out)).verdict == "faster"


def test_restarted_jobs_do_not_make_a_gain() -> None:
    rows = settled(300, 0.8, noise(20, 0.1))
    resumed = [row(n, 20.0, "best_known", "settled", CHOSEN) for n in range(301, 330)]
    assert gain(frame(rows + resumed)) == gain(frame(rows))
    share = node_hours(frame(rows + resumed)).by_chosen / node_hours(frame(rows)).by_chosen
    # Their own elapsed would have made it 1.4; as the settled runs beside them they are a tenth.
    assert 0.95 < share < 1.25


def test_pinned_runs_without_control_runs_near_are_not_compared() -> None:
    rows = settled(100, 0.8, noise(21, 0.05))
    pinned = [row(n, 80.0, "pinned", "settled", CHOSEN) for n in range(101, 500)]
    told, alone = node_hours(frame(rows + pinned)), node_hours(frame(rows))
    assert told.by_chosen < alone.by_chosen * 1.6


def test_node_hours_are_arithmetic() -> None:
    rows = settled(201, 0.5, lambda: 1.0)
    told = node_hours(frame(rows))
    # 180 tuned runs of 50 s less on 4 nodes; 20 control runs of 50 s more; the first one is from
    # before any run of the choice, and the last from after all.
    assert told.by_chosen == pytest.approx(180 * 50 * 4 / 3600)
    assert told.controls == pytest.approx(20 * 50 * 4 / 3600)
    assert told.saved == pytest.approx(told.by_chosen - told.controls)
    assert told.low == pytest.approx(told.saved)
    assert told.a_month == pytest.approx(180 * 50 * 4 / 3600 / (200 / 24) * 30, rel=0.02)


def test_exploration_costs_what_it_took_beyond_the_default() -> None:
    told = node_hours(frame(unsettled(lambda: 1.0)))
    assert told.exploring == pytest.approx(16 * 20 * 4 / 3600)
    assert told.saved is None


def test_small_effects_are_seen_in_the_sum() -> None:
    studies = [frame(settled(150, 0.96, noise(30 + n, 0.1))) for n in range(80)]
    assert sum(gain(runs).verdict == "faster" for runs in studies) < 10
    said, hours = group([part(runs) for runs in studies])
    assert said.verdict == "faster"
    assert said.low < 0.04 < said.high < 0.08
    assert hours.low < hours.saved < hours.high


def test_a_group_of_one_says_what_the_study_says() -> None:
    runs = frame(settled(200, 0.7, noise(40, 0.1)))
    assert group([part(runs)]) == (gain(runs), node_hours(runs))


def test_a_group_without_anything_compared_says_so() -> None:
    said, hours = group([part(frame(unsettled(noise(n, 0.1)))) for n in range(3)])
    assert (said.verdict, said.share, hours.saved) == ("not_yet", None, None)
    assert group([])[0].verdict == "not_yet"


def claimed(evidence: float) -> Gain:
    said = gain(frame(settled(200, 0.7, noise(41, 0.1))))
    return Gain(**{**said.__dict__, "evidence": evidence})


def test_among_many_studies_a_claim_needs_more_evidence() -> None:
    alone = false_discovery([claimed(25.0)])
    assert alone[0].verdict == "faster"
    many = false_discovery([claimed(25.0)] + [claimed(0.5)] * 9)
    assert many[0].verdict == "not_yet"
    assert "10 studies" in many[0].reason
    strong = false_discovery([claimed(500.0)] + [claimed(0.5)] * 9)
    assert strong[0].verdict == "faster"


def test_runs_of_several_studies_are_refused() -> None:
    rows = settled(20, 1.0, noise(42, 0.1))
    with pytest.raises(ValueError, match="runs of 2 studies"):
        gain(with_column(rows, "study_id", np.arange(20) % 2))


def test_no_runs_at_all() -> None:
    said = gain(frame(settled(2, 1.0, noise(43, 0.1))).iloc[:0])
    assert said.verdict == "not_yet"


@pytest.mark.parametrize("role", ["settled", "control"])
def test_where_all_runs_of_one_side_were_cut_short_nothing_is_bounded(role: str) -> None:
    rows = settled(100, 1.0, noise(44, 0.1))
    for cut in [r for r in rows if r["role"] == role]:
        cut.update(effect="censored", elapsed=50.0)
    said = gain(frame(rows))
    assert (said.verdict, said.share, said.low) == ("not_yet", None, None)
    assert group([part(frame(rows)), part(frame(rows))])[0].verdict == "not_yet"

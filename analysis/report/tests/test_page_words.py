"""What the page says of a figure: truthfully, and never a gain without its interval."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import sample_report
from io_autotune_report.document import FindingKind, Gain, NodeHours, Noise, Verdict
from io_autotune_report.render.page import words

SPACE = words.NBSP
FASTER = Gain("faster", "Told.", 0.142, 0.101, 0.187, 0.95, 1234, 56, 0.05, None)


def test_every_kind_of_finding_that_the_service_has_has_a_title() -> None:
    openapi = Path(__file__).resolve().parents[3] / "docs/openapi.json"
    schemas = json.loads(openapi.read_text(encoding="utf-8"))["components"]["schemas"]
    assert set(schemas["FindingKind"]["enum"]) < words.KINDS.keys() == set(get_args(FindingKind))


def test_a_claim_stands_with_its_interval_its_level_and_its_runs() -> None:
    said = words.gain_sentence(FASTER)
    assert said.replace(SPACE, " ") == (
        "Tuned runs take 14.2 % less time than the default (10.1 to 18.7 % less; 95 % sure, "
        "however often one looks; 1,234 tuned runs and 56 of the default)."
    )


def test_slower_is_more_time_without_a_minus() -> None:
    gain = replace(FASTER, verdict="slower", share=-0.08, low=-0.12, high=-0.04)
    said = words.gain_sentence(gain).replace(SPACE, " ")
    assert "8.0 % more time than the default (4.0 to 12.0 % more;" in said


@pytest.mark.parametrize("missing", ["share", "low", "high"])
@pytest.mark.parametrize("unknown", [None, math.nan, math.inf])
def test_a_gain_whose_interval_is_not_known_is_not_stated(
    missing: str, unknown: float | None
) -> None:
    told: dict[str, Any] = {missing: unknown}
    gain = replace(FASTER, **told)
    assert not words.claims(gain)
    assert "14.2" not in words.gain_sentence(gain)


@pytest.mark.parametrize("verdict", ["not_yet", "no_effect", "unclear"])
def test_an_estimate_that_nothing_is_claimed_of_is_never_stated(verdict: Verdict) -> None:
    assert "14.2" not in words.gain_sentence(replace(FASTER, verdict=verdict))


def test_not_yet_says_what_could_have_been_seen_and_what_it_takes() -> None:
    gain = Gain("not_yet", "Few.", 0.08, -0.1, 0.2, 0.95, 30, 12, 0.14, 40)
    assert words.gain_sentence(gain).replace(SPACE, " ") == (
        "Not yet: with 30 tuned runs and 12 of the default a gain of 14 % could have been seen. "
        "About 40 more runs would show one of the size seen."
    )


@pytest.mark.parametrize(
    ("number", "said"), [(7, "7"), (40, "40"), (137, "140"), (2_060_276, "2,100,000")]
)
def test_an_estimated_number_of_runs_has_two_digits(number: int, said: str) -> None:
    assert words.about(number) == said


@pytest.mark.parametrize(
    ("share", "said"), [(0.95, "95"), (0.9833333, "98.33"), (0.99999, "99.99"), (0.98, "98")]
)
def test_a_level_is_never_rounded_up_to_certainty(share: float, said: str) -> None:
    assert words.level(share) == f"{said}{SPACE}%"


def test_a_small_gain_that_could_have_been_seen_is_not_none() -> None:
    assert words.detectable(0.004) == f"0.4{SPACE}%"
    assert words.detectable(0.14) == f"14{SPACE}%"


def test_not_yet_without_tuned_runs_says_so() -> None:
    gain = Gain("not_yet", "None.", None, None, None, 0.95, 0, 0, None, None)
    said = words.gain_sentence(gain)
    assert said == "Not yet: no run was made with chosen values."


def test_no_effect_says_within_what() -> None:
    gain = replace(FASTER, verdict="no_effect", low=-0.012, high=0.016)
    said = words.gain_sentence(gain).replace(SPACE, " ")
    assert "from 1.2 % more to 1.6 % less time" in said


def test_the_page_says_what_the_terminal_says() -> None:
    """The test of ``io-autotune`` reads the same file."""
    told = json.loads((Path(__file__).parent / "said.json").read_text(encoding="utf-8"))
    for case in told["gains"]:
        said = words.gain_sentence(Gain(**case["gain"]))
        assert said.replace(SPACE, " ").replace(words.MINUS, "-") == case["said"]
    for hours, said in told["node_hours"]:
        assert words.node_time(hours).replace(SPACE, " ").replace(words.MINUS, "-") == said


def test_a_gain_is_told_in_its_objectives_words() -> None:
    """As the terminal tells it."""
    gain = replace(FASTER, share=0.5, low=0.2, high=0.6, objective="marked_seconds")
    said = words.gain_sentence(gain).replace(SPACE, " ")
    expected = "Tuned runs have 50.0 % less marked I/O seconds than the default (20.0 to"
    assert said.startswith(f"{expected} 60.0 % less;")
    said = words.gain_sentence(replace(gain, objective="objective.rate maximised"))
    expected = "Tuned runs have 100.0 % more rate than the default (25.0 to 150.0 % more;"
    assert said.replace(SPACE, " ").startswith(expected)


def test_unclear_says_why() -> None:
    gain = replace(FASTER, verdict="unclear", reason="Signs differ")
    assert words.gain_sentence(gain) == "Unclear: Signs differ."


def test_a_loss_is_called_a_loss() -> None:
    hours = NodeHours(100.0, -42.0, -60.0, -20.0, None, None, None, None)
    assert words.saved_sentence(hours) == (
        f"42{SPACE}node-hours lost (interval {words.MINUS}60 to {words.MINUS}20)."
    )


def test_a_sum_without_an_interval_says_that_it_is_not_known_how_sure_it_is() -> None:
    hours = NodeHours(100.0, 42.0, None, None, None, None, None, None)
    assert (
        words.saved_sentence(hours) == f"42{SPACE}node-hours saved; how sure that is, is not known."
    )


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (-0.0, f"0.0{SPACE}node-seconds"),
        (0.004, f"14{SPACE}node-seconds"),
        (-0.25, f"{words.MINUS}15{SPACE}node-minutes"),
        (3.14159, f"3.1{SPACE}node-hours"),
        (-12345.6, f"{words.MINUS}12,346{SPACE}node-hours"),
        (math.nan, words.UNKNOWN),
        (None, words.UNKNOWN),
    ],
)
def test_node_time(number: float | None, said: str) -> None:
    assert words.node_time(number) == said


@pytest.mark.parametrize(
    ("number", "said"), [(0.0123, "0.012"), (9.87, "9.9"), (12.5, "12"), (12345.0, "12,345")]
)
def test_times(number: float, said: str) -> None:
    assert words.time(number) == said


def test_what_has_no_glyph_or_reorders_is_spelt() -> None:
    assert words.plain(sample_report.REORDERING) == "innocent\\u202egnp.exe"
    assert words.plain("a\x00b\nc\u200bd") == "a\\x00b\\nc\\u200bd"
    assert words.plain("Grüße, 数据") == "Grüße, 数据"


def test_a_lone_surrogate_can_be_written_as_utf8() -> None:
    assert words.plain("a\udce9").encode() == b"a\\udce9"


def test_what_is_to_be_pasted_into_a_shell_is_quoted() -> None:
    study = sample_report.report().studies[0]
    hostile = replace(study.parameters[0], name="x", chosen="$(rm -rf ~); 'a'")
    absent = replace(study.parameters[0], name="y", chosen=None)
    text = words.parametrization(replace(study, parameters=[hostile, absent]))
    assert shlex.split(text) == ["x=$(rm -rf ~); 'a'"]


def test_noise_without_repeated_runs_is_not_known() -> None:
    assert "not known" in words.noise_sentence(Noise(None, None, None, None, None))


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        ("2026-11-20T00:00:00+00:00", "2026-11-21T00:00:00+00:00", "20 November 2026"),
        ("2026-11-20T00:00:00+01:00", "2026-11-21T00:00:00+01:00", "20 November 2026"),
        ("2026-11-01T00:00:00Z", "2026-11-21T00:00:00Z", "1 November 2026 to 20 November 2026"),
        ("yesterday", "today", "yesterday to today"),
    ],
)
def test_days_are_those_of_the_sites_clock(first: str, last: str, said: str) -> None:
    assert words.span(first, last).replace(SPACE, " ") == said


def test_an_instant_names_its_clock() -> None:
    said = words.moment("2026-11-21T03:07:00+01:00").replace(SPACE, " ")
    assert said == "21 November 2026, 03:07 UTC+01:00"

"""Keys and defaults are the engine's."""

from __future__ import annotations

from io_autotune_report.load import parametrizations


def test_a_key_is_sorted_json_with_whole_numbers_without_fraction() -> None:
    # As engine/src/space/parametrization.rs has it.
    assert parametrizations.key({"b": 'en"able', "a": 1.0}) == r'{"a":1,"b":"en\"able"}'
    assert parametrizations.key({"x": 0.5, "é": "ü"}) == '{"x":0.5,"é":"ü"}'


def test_the_default_has_only_what_exists_under_it() -> None:
    space = [
        {"name": "cache", "default": "off"},
        {"name": "size", "default": 4, "when": {"parameter": "cache", "is": ["on"]}},
        {"name": "part", "default": 1, "when": {"parameter": "size", "is": [4]}},
        {"name": "threads", "default": 2.0, "when": {"parameter": "cache", "is": ["off"]}},
    ]
    assert parametrizations.default(space) == {"cache": "off", "threads": 2}
    constrained = {"parameters": space, "constraints": []}
    assert parametrizations.default(constrained) == {"cache": "off", "threads": 2}

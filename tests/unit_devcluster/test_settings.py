"""Study settings: key=value in, TOML out."""

from __future__ import annotations

import tomllib

import pytest
from devcluster import settings
from devcluster.errors import ClusterError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("design_points=6", ("design_points", 6)),
        ("p = 0.1", ("p", 0.1)),
        ("frozen=true", ("frozen", True)),
        ("method=robert2020", ("method", "robert2020")),
        ('method="robert2020"', ("method", "robert2020")),
        ("levels=[1, 2]", ("levels", [1, 2])),
        ("budget.runs=40", ("budget.runs", 40)),
        ("text=a=b", ("text", "a=b")),
        ("p=", ("p", None)),
    ],
)
def test_parses(text: str, expected: tuple[str, settings.Setting | None]) -> None:
    assert settings.parse(text) == expected


@pytest.mark.parametrize("text", ["p", "=1", "a b=1", "a]=1", "when=2020-01-01", "t={a=1}"])
def test_refuses(text: str) -> None:
    with pytest.raises(ClusterError, match="study setting"):
        settings.parse(text)


def test_a_later_override_wins_and_an_empty_one_drops() -> None:
    assert settings.merge({"a": 1, "b": 2}, ["a=3", "b=", "c=x"]) == {"a": 3, "c": "x"}


@pytest.mark.parametrize("value", [1, -2.5, 1e300, True, 'a"b\\c\n\x7f\u00e9', [1, "x", False]])
def test_toml_round_trip(value: settings.Setting) -> None:
    assert tomllib.loads(f"value = {settings.to_toml(value)}") == {"value": value}


def test_a_value_cannot_smuggle_in_another_key() -> None:
    key, value = settings.parse("a=1\nb = 2")
    assert value is not None
    assert tomllib.loads(f"{key} = {settings.to_toml(value)}") == {"a": "1\nb = 2"}

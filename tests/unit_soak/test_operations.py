"""The list of operations is the seed's, and has every kind."""

from __future__ import annotations

from soak.operations import HOLDS, KILLS, LASTING, generated, meanings


def test_a_seed_gives_the_same_list_again_and_another_seed_another() -> None:
    assert generated(7, 200, 4) == generated(7, 200, 4)
    assert generated(7, 200, 4) != generated(8, 200, 4)
    assert generated(7, 200, 4)[:50] == generated(7, 50, 4), "a shorter soak is a part of it"


def test_every_kind_comes_before_any_comes_again() -> None:
    kinds = [one.kind for one in generated(1, 2 * len(meanings()), 4)]
    half = len(meanings())
    assert set(kinds[:half]) == set(kinds[half:]) == set(KILLS) | set(LASTING)
    assert kinds[:half] != kinds[half:]


def test_an_operation_can_be_done_on_the_cluster() -> None:
    for one in generated(3, 500, 4):
        assert 0 <= one.hold <= HOLDS[1]
        assert one.during is None or (one.kind in LASTING and one.during in KILLS)
        if one.kind == "kill slurmd":
            assert 1 <= one.amount <= 4
        if one.kind.startswith("helper"):
            assert one.during != "kill helper", "there may be none to kill"

"""When a campaign is over."""

from __future__ import annotations

from demo.campaign import Goal, Run, found, reached


def run(role: str, value: int = 0, state: str = "counted") -> Run:
    return {"phase": "settled", "role": role, "parametrization": {"x": value}, "state": state}


FLIPPED = [
    run("control"),
    run("settled", 1),
    run("control"),
    run("settled", 2),
    run("control"),
    run("settled", 2),
]


def test_a_goal_may_want_its_runs_of_one_choice() -> None:
    assert reached(Goal(tuned=3, controls=3, seconds=1), FLIPPED)
    one = Goal(tuned=2, controls=1, seconds=1, of_one_choice=True)
    assert reached(one, FLIPPED)
    for tuned, controls in ((3, 1), (2, 2)):
        goal = Goal(tuned=tuned, controls=controls, seconds=1, of_one_choice=True)
        assert not reached(goal, FLIPPED), "runs of an earlier choice are not compared"
    assert not reached(one, [run("control")])
    assert not reached(one, [*FLIPPED[:-1], run("settled", 2, state="not_counted")])


def test_a_parametrization_is_found_when_a_run_is_about_as_quick_as_what_is_chosen() -> None:
    def took(role: str, value: int, elapsed: float | None) -> Run:
        return {**run(role, value), "elapsed": elapsed}

    search = [took("baseline", 0, 2.0), took("search", 1, None), took("search", 2, 1.0)]
    assert found(search) is None, "nothing is chosen"
    chosen = [took("search", 3, 0.8), took("settled", 3, 1.0)]
    assert found([*search, *chosen]) == 4, "1.0 is more than a tenth above 0.9"
    assert found([*search, *chosen, took("settled", 3, 1.2)]) == 3

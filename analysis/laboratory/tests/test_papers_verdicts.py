"""What the papers' pages judge, and how: verdicts that may come out either way."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from papers import (
    alabed2021,
    anova,
    cao2018_claims,
    cao2018_rates,
    cao2018_replays,
    cao2018_space,
    claims,
    file_systems,
    optima,
    ranks,
    robert2019,
    robert2019_claims,
    robert2020_claims,
    robert2020_data,
    robert2020_metrics,
    robert2020_steps,
)
from papers.published import FIGURE_5
from peers.tables import Table

SYSTEMS = Path(__file__).parents[3] / "analysis/data/papers/file-systems.json"
NOT_DECIDED, HOLDS, NOT = "not decided here", "holds here", "does not hold here"


def measured(
    directory: Path, name: str, time: Callable[[int, int], float], levels: int = 3
) -> Table:
    """A whole grid of two integers, a run of each."""
    path = directory / f"{name}.json"
    parameters = [{"name": word, "kind": "int", "values": list(range(levels))} for word in "ab"]
    path.write_text(json.dumps({"name": name, "parameters": parameters}), "utf-8")
    lines = [f"{a},{b},{time(a, b)}" for a in range(levels) for b in range(levels)]
    path.with_suffix(".csv").write_text("\n".join(["a,b,time", *lines]) + "\n", "utf-8")
    return Table(path)


def replayed(on: Table, **runs: Sequence[Sequence[int | None]]) -> cao2018_replays.Replayed:
    """Studies of so many runs by method."""
    methods = {name: {"studies": [{"runs": list(one)} for one in of]} for name, of in runs.items()}
    return cao2018_replays.Replayed(on, methods)


def test_a_reading_stands_apart_from_the_paper_s_words() -> None:
    below = claims.below("words", {"x": claims.Difference(-1.0, -2.0, -0.5)}, tried="so read")
    [head, _, row] = claims.rows([below], "the slides")
    assert head == "| the slides | tried as | verdict | by which figure or test |"
    assert row == "| words | so read | holds here | x -1 (-2 to -0.5) |"
    again = claims.with_readings({"one": below, "two": claims.untried("words", "why")})
    assert again.tried == "so read", "under whichever reading"


def test_one_sure_case_is_enough_where_one_is_claimed() -> None:
    assert claims.some("a", 1, "").verdict == HOLDS
    assert claims.some("a", 0, "").verdict == NOT_DECIDED
    assert claims.untried("a", "why").verdict == "cannot be tried here"


def test_effects_are_sure_over_all_of_them() -> None:
    effects = [anova.Effect(name, 1.0, p) for name, p in (("a", 0.02), ("b", 0.03), ("c", 0.9))]
    assert anova.surely(effects) == [False, False, False], "0.02 of three is 0.06"
    assert anova.surely(effects[:2]) == [True, False]


def test_the_interactions_of_2020_are_each_at_5_percent(tmp_path: Path) -> None:
    path = tmp_path / "four.json"
    parameters = [{"name": word, "kind": "int", "values": [0, 1, 2]} for word in "abcd"]
    path.write_text(json.dumps({"name": "four", "parameters": parameters}), "utf-8")
    points = [(a, b, c, d) for a in range(3) for b in range(3) for c in range(3) for d in range(3)]
    lines = [
        f"{a},{b},{c},{d},{5 + a * b + c + d + noise * ((7 * a + 5 * b + 3 * c + d) % 4)}"
        for a, b, c, d in points
        for noise in (0.01, 0.02)
    ]
    path.with_suffix(".csv").write_text("\n".join(["a,b,c,d,time", *lines]) + "\n", "utf-8")
    on = Table(path)
    [strong] = [one for one in robert2020_data.claims(on) if "strong interaction" in one.words]
    sure = sum(effect.p < anova.SIGNIFICANT for effect in anova.interactions(on))
    assert 0 < sure < 6
    assert strong.verdict == f"not decided here ({sure} for, {6 - sure} undecided)"
    together = sum(anova.surely(anova.interactions(on)))
    assert robert2019_claims._not_additive([on]).figure.startswith(f"four: {together} of 6 pairs")


def test_what_the_paper_leaves_without_order_has_none() -> None:
    _, printed = FIGURE_5["M2-Fileserver-HDD3"]
    names = ("SA", "GA", "DQN", "BO", "RS")
    order = ranks.order(names, [-float(printed[name][0]) for name in names], higher=True, tie=",")
    assert order == "GA, BO > SA, RS > DQN"


def test_a_trend_is_no_unsteadiness() -> None:
    rising = [float(nth) for nth in range(11)]
    jumping = [0.0, 10.0] * 5
    assert cao2018_replays.unsteadiness(rising) == pytest.approx(0.5**0.5)
    assert cao2018_replays.unsteadiness(jumping) == pytest.approx(50.0**0.5)
    assert cao2018_replays.unsteadiness([1.0]) == 0.0


def test_it_may_be_easier_where_fewer_are_near_optimal(tmp_path: Path) -> None:
    many = measured(tmp_path, "many", lambda a, _: 1.0 if a == 0 else 9.0)  # Three of nine.
    few = measured(tmp_path, "few", lambda a, b: 1.0 if a == b == 0 else 9.0)  # One.

    def of(on: Table, found: bool) -> cao2018_replays.Replayed:
        runs = [[on.best if found else len(on.points) - 1] * 600] * 40
        return replayed(on, **dict.fromkeys(cao2018_claims.METHODS, runs))

    harder = cao2018_claims._more_difficult([of(many, found=True), of(few, found=False)])
    assert harder.verdict == HOLDS
    assert harder.figure.startswith("many - few, SA 100 (88.7 to 100)")
    easier = cao2018_claims._more_difficult([of(few, found=True), of(many, found=False)])
    assert easier.verdict == "does not hold here (5 against)"
    alike = cao2018_claims._more_difficult([of(few, found=True), of(many, found=True)])
    assert alike.verdict == "not decided here (5 undecided)"


def test_a_study_is_higher_than_all_defaults_that_it_begins_with() -> None:
    on = Table(SYSTEMS)
    begun = file_systems.defaults(on)
    assert on.default in begun
    assert len(begun) == 5, "one of each file system"
    best = min(begun, key=on.truths.__getitem__)
    runs: list[list[int | None]] = [[on.default, best], [on.default, on.best]]
    of = replayed(on, GA=runs, SA=runs)
    assert of.higher("GA") == [False, True], "what is given is not found"
    assert of.higher("SA") == [True, True]


def test_sa_is_stuck_below_96_percent_or_is_not(tmp_path: Path) -> None:
    on = measured(tmp_path, "line", lambda a, b: 1.0 + (a * 10 + b) / 100, levels=10)

    def judged(place: int) -> str:
        return cao2018_claims._got_stuck([replayed(on, SA=[[place] * 9] * 60)]).verdict

    assert on.truths[on.best] / on.truths[3] > 0.96 > on.truths[on.best] / on.truths[9]
    assert judged(9) == HOLDS
    assert judged(3) == NOT


def test_where_random_search_does_not_win_its_reason_is_told_to_explain_nothing(
    tmp_path: Path,
) -> None:
    on = measured(tmp_path, "line", lambda a, b: 1.0 + (a * 10 + b) / 100, levels=10)
    easy, hard, slow = 2, on.best, 50  # The best 4.5 % are four, of which two are near-optimal.

    def told(**runs: Sequence[int]) -> str:
        of = {name: [[slow] * 9] * 60 for name in cao2018_claims.METHODS}
        of |= {name: [[place] * 9 for place in places] for name, places in runs.items()}
        claim = cao2018_claims._since_many_are_near([replayed(on, **of)])
        assert claim.verdict.startswith(f"{NOT} (1 against")
        return claim.figure

    behind = told(GA=[easy] * 60)
    assert "against it is line, RS - GA, where RS runs one of the best 4.5 % no more" in behind
    assert behind.endswith("often than GA: -100 (-100 to -92.3)")
    ahead = told(RS=[hard] * 60, GA=[easy, slow] * 30)
    assert "against it" not in ahead


def test_later_runs_of_the_surrogate_are_compared_with_ga_s_and_with_its_own(
    tmp_path: Path,
) -> None:
    on = measured(tmp_path, "line", lambda a, b: 1.0 + a * 10 + b)

    def ran(place: int) -> dict[str, object]:
        """Studies whose runs from the 76th on are of this one."""
        return {"studies": [{"runs": [0] * 75 + [place] * 25}] * 9}

    results = [{"tables": [{"methods": [ran(1), ran(3), ran(0)]}]}]
    slower, slowest, steady = range(3)
    readings = [
        robert2019_claims.Reading(results, [on], {"SM": one, "GA": other})
        for one, other in ((slower, slowest), (steady, slower))
    ]
    claim = robert2019_claims._longer(readings, robert2019_claims.ALIKE)
    assert claim.verdict == f"{NOT} (2 against)", "than in GA"
    assert claim.figure.endswith(
        f"{HOLDS} where it runs nothing twice (the figures are in the row on the feedback loop); "
        f"{NOT_DECIDED} where it runs whatever comes"
    )


def test_what_scatters_alike_is_not_louder() -> None:
    draws = Random(1)
    alike = [[draws.gauss(9.0, 1.0) for _ in range(8)] for _ in range(40)]
    louder = [[draws.gauss(9.0, 1.0 + nth % 2) for _ in range(8)] for nth in range(40)]
    assert robert2020_data._louder(alike) > 0.05
    assert robert2020_data._louder(louder) < 0.01


def test_a_study_is_faster_while_it_runs_in_the_median_or_in_each_iteration() -> None:
    def judged(*times: float) -> claims.Claim:
        return robert2020_claims._while_it_runs([list(times) * 8] * 9, 2.0)

    assert judged(1.0, 1.0, 1.0, 1.0).verdict == HOLDS
    mostly = judged(1.0, 1.0, 1.0, 3.0)
    assert mostly.verdict == f"{HOLDS} only with the median over iterations"
    assert "slower are iterations 4 to 32" in mostly.figure
    assert mostly.figure.endswith("in each iteration: does not hold here")
    assert judged(3.0, 3.0, 1.0, 3.0).verdict == NOT


def test_what_is_faster_than_the_default_may_be_slower_than_cga() -> None:
    faster, slower = claims.Difference(9.0, 8.0, 10.0), claims.Difference(-1.0, -2.0, -0.5)
    judged = robert2020_claims._reduces
    assert judged({"RGA": faster}, {"RGA - CGA": faster}).verdict == HOLDS
    apart = judged({"RGA": faster}, {"RGA - CGA": slower})
    assert apart.verdict == f"{HOLDS} only with the gain over the default"
    assert judged({"RGA": slower}, {"RGA - CGA": slower}).verdict == NOT


def test_what_one_metric_gives_another_may_take() -> None:
    wobble = [0.01 * (nth % 3) for nth in range(8)]

    def values(metric: str, name: str) -> list[float]:
        of = {"NbrSteps": {"RGA": 9.0}, "RegCost": {"RGA": 1.0}, "DistOptim": {"RGA": 5.0}}
        return [of[metric].get(name, 5.0) + (name == "RGA") * one for one in wobble]

    opposed, told = robert2020_metrics.trade_offs(values, ("NbrSteps",), ("RegCost",))
    assert opposed == 3, "RGA and each of the others"
    assert told.startswith("of 12 comparisons surely opposed: CGA - RGA, NbrSteps -4.01")
    among = robert2020_metrics.trade_offs(values, ("NbrSteps", "RegCost"))
    assert among == (opposed, told)
    alike, told = robert2020_metrics.trade_offs(values, ("NbrSteps",), ("DistOptim",))
    assert alike == 0
    assert told.startswith("of 12 comparisons none is surely opposed; sure: CGA - RGA, NbrSteps")


def test_a_gain_is_a_share_of_the_metric_s_range() -> None:
    def method(success: float, steps: float) -> dict[str, object]:
        figures = {"SuccessRate": success, "NbrSteps": steps}
        return {"figures": [{"metric": name, "value": value} for name, value in figures.items()]}

    methods = [method(10.0, 40.0), method(30.0, 20.0), method(50.0, 30.0)]
    result = {"methods": ["a", "b", "c"], "tables": [{"methods": methods}]}
    assert robert2020_metrics.gain(result, "SuccessRate", "b", "a") == pytest.approx(0.5)
    assert robert2020_metrics.gain(result, "NbrSteps", "b", "a") == pytest.approx(1.0), "fewer"


def test_a_mean_of_more_runs_is_more_precise_or_not(tmp_path: Path) -> None:
    def verdict(of: Callable[[Random, float], float]) -> str:
        draws = Random(3)
        path = tmp_path / "runs.json"
        parameters = [{"name": word, "kind": "int", "values": list(range(9))} for word in "ab"]
        path.write_text(json.dumps({"name": "runs", "parameters": parameters}), "utf-8")
        lines = []
        for a in range(9):
            for b in range(9):
                own = draws.gauss(0.0, 1.0)
                lines += [f"{a},{b},{20.0 + of(draws, own)}" for _ in range(8)]
        path.with_suffix(".csv").write_text("\n".join(["a,b,time", *lines]) + "\n", "utf-8")
        return robert2020_claims._mean_is_more_precise(Table(path)).verdict

    assert verdict(lambda draws, _: draws.gauss(0.0, 1.0)) == HOLDS
    assert verdict(lambda _, own: own) == NOT_DECIDED, "all runs alike: no mean is nearer"


def test_one_class_with_surely_fewer_steps_is_enough() -> None:
    def ran(*steps: int) -> robert2020_steps.Steps:
        return robert2020_steps.Steps([{"runs": [0] * (step - 1) + [7]} for step in steps], 7)

    late, early, some = ran(40, 41, 42, 43), ran(10, 11, 12, 13), [1.0, 2.0, 3.0]

    def judged(**classes: robert2020_steps.Steps) -> claims.Claim:
        return robert2020_steps.claim_of_one(
            "a",
            "fewer",
            {name: (one, late) for name, one in classes.items()},
            dict.fromkeys(classes, (some, some)),
        )

    one = judged(RGA=late, FGA=early)
    assert one.verdict == f"{HOLDS}, but not with each reading"
    assert judged(RGA=late, FGA=late).verdict == NOT_DECIDED


def test_steps_by_repetition_are_of_those_in_which_both_ran_the_optimum() -> None:
    def ran(*steps: int) -> robert2020_steps.Steps:
        return robert2020_steps.Steps([{"runs": [0] * (step - 1) + [7]} for step in steps], 7)

    never = robert2020_steps.Steps([{"runs": [1]}], 7)
    each = [(ran(1, 3), ran(9)), (ran(2), ran(8)), (never, ran(5))]
    claim = robert2020_steps.claim_by_repetition(
        "a", "fewer", {"x": each}, {"x": claims.Difference(-1.0, -2.0, -0.5)}
    )
    assert claim.figure.startswith("to the optimum, where it ran: x -6.5 (")


def test_random_search_owes_it_to_the_many_or_not(tmp_path: Path) -> None:
    on = measured(tmp_path, "line", lambda a, b: 1.0 + (a * 10 + b) / 10, levels=10)
    [best], near = cao2018_replays.near_optimal(on), 1
    assert cao2018_replays.best_of(on) == {0, 1, 2, 3}

    def judged(random: int, others: int) -> str:
        runs = {name: [[others] * 9] * 60 for name in ("SA", "GA", "DQN", "BO")}
        return cao2018_claims._since_many_are_near(
            [replayed(on, RS=[[random] * 9] * 60, **runs)]
        ).verdict

    assert judged(near, 99) == HOLDS, "it has one of the many, and not one of the few"
    assert judged(best, near) == "does not hold here (4 against)", "all have one of the many"
    assert judged(99, 99) == "not decided here (4 undecided)"


def test_some_setting_may_be_applied_in_another(tmp_path: Path) -> None:
    def pattern(name: str, rows: dict[int, list[float]]) -> Table:
        path = tmp_path / f"{name}.json"
        parameters = [{"name": "a", "kind": "int", "values": [0, 1, 2]}]
        of = {"name": name, "parameters": parameters, "default": {"a": 0}}
        path.write_text(json.dumps(of), "utf-8")
        lines = [f"{level},{time}" for level, times in rows.items() for time in times]
        path.with_suffix(".csv").write_text("\n".join(["a,time", *lines]) + "\n", "utf-8")
        return Table(path)

    one = pattern("one", {0: [2.0, 2.02], 1: [1.0, 1.01], 2: [9.0, 9.1]})
    other = pattern("other", {0: [2.0, 2.02], 1: [4.0, 4.05], 2: [1.0, 1.01]})
    same = pattern("same", {0: [2.0, 2.02], 1: [1.0, 1.01], 2: [9.0, 9.1]})
    applied, harms = cao2018_space._applied([one, other])
    assert (applied.verdict, harms.verdict) == (HOLDS, HOLDS)
    applied, harms = cao2018_space._applied([one, same])
    assert (applied.verdict, harms.verdict) == (NOT_DECIDED, NOT_DECIDED)


def test_a_share_lies_between_bounds_or_not() -> None:
    between = cao2018_space._between
    assert between(claims.Difference(0.3, 0.25, 0.35), (0.2, 0.4)) is claims.Side.FOR
    assert between(claims.Difference(0.39, 0.35, 0.45), (0.2, 0.4)) is claims.Side.OPEN
    assert between(claims.Difference(0.5, 0.45, 0.55), (0.2, 0.4)) is claims.Side.AGAINST
    assert between(claims.Difference(0.1, 0.05, 0.15), (0.2, 0.4)) is claims.Side.AGAINST


def test_how_much_slower_the_worst_is_has_its_noise(tmp_path: Path) -> None:
    path = tmp_path / "noisy.json"
    parameters = [{"name": "a", "kind": "int", "values": [0, 1]}]
    path.write_text(json.dumps({"name": "noisy", "parameters": parameters}), "utf-8")
    path.with_suffix(".csv").write_text("a,time\n0,1\n0,1.2\n1,4\n1,4.8\n", "utf-8")
    of = optima.worst(Table(path))
    assert of.mean == pytest.approx(0.25)
    assert of.low < 0.25 < of.high
    assert of.low * of.high == pytest.approx(0.25**2), "as much either way, by logarithms"


def test_a_linear_regression_finds_the_best_of_what_is_linear(tmp_path: Path) -> None:
    linear = measured(tmp_path, "linear", lambda a, b: 1.0 / (1.0 + a + b))
    valley = measured(tmp_path, "valley", lambda a, b: 1.0 if a == b == 1 else 2.0 + a)
    assert cao2018_space.predicted_best(linear) == pytest.approx(1.0)
    assert cao2018_space.predicted_best(valley) == pytest.approx(0.5)
    judged = cao2018_space.of_the_conclusion([linear])[0]
    assert judged.verdict == NOT, "it does work there"
    assert cao2018_space.of_the_conclusion([valley])[0].verdict == HOLDS


def test_what_promises_has_the_best_s_values_of_what_matters(tmp_path: Path) -> None:
    on = measured(tmp_path, "grid", lambda a, b: 1.0 + 9 * a + b)
    assert cao2018_replays.promising(on) == {on.best}
    of = replayed(on, GA=[[on.best, 8, None, 8], [8, 8, 8, on.best]])
    assert of.in_promising("GA") == pytest.approx([100 / 3, 25.0])
    assert of.in_promising("GA", 0.0, 0.25) == [100.0, 0.0]
    assert of.found_after_promising("GA", frozenset({on.best})) == [100.0]
    assert of.found_after_promising("GA", frozenset({7})) == [0.0], "the second had it too late"


def _rates(table: dict[float, float]) -> cao2018_rates.ByTable:
    """100 studies of each rate, of which so many, %, find it."""
    return {
        "small": [
            [100.0 * (nth < table.get(rate, 0.0)) for nth in range(100)]
            for rate in cao2018_rates.RATES
        ]
    }


def test_rates_between_are_better_than_both_ends_or_not() -> None:
    between = cao2018_rates._trade_off(_rates({0.08: 60.0}))
    assert between.verdict == HOLDS
    assert between.figure == "small: 8%"
    end = cao2018_rates._trade_off(_rates({0.01: 60.0, 0.64: 60.0}))
    assert end.verdict == NOT
    assert cao2018_rates._trade_off(_rates({})).verdict == NOT_DECIDED


def test_a_hyperparameter_matters_or_is_not_shown_to() -> None:
    assert cao2018_rates._hyperparameters(_rates({0.32: 60.0})).verdict == HOLDS
    assert cao2018_rates._hyperparameters(_rates({0.32: 1.0})).verdict == NOT_DECIDED
    assert cao2018_rates._affects(_rates({0.32: 60.0})).verdict == HOLDS
    assert cao2018_rates._affects(_rates({0.32: 1.0})).verdict == NOT_DECIDED


def test_alleles_are_there_at_first_and_stay_or_not(tmp_path: Path) -> None:
    on = file_systems.of_system(
        Table(Path("analysis/data/papers/file-systems.json")), "ext3", tmp_path
    )
    sizes = {
        point[0]: nth for nth, point in reversed(list(enumerate(on.points)))
    }  # A member of each block size.
    assert file_systems._has_all(on, "block_size", list(sizes.values()))
    assert not file_systems._has_all(on, "block_size", [sizes[0], sizes[1]])
    same: list[int | None] = [0] * 64
    assert file_systems._staying(on, same) == 100.0
    apart = next(
        nth
        for nth, point in enumerate(on.points)
        if all(a != b for a, b in zip(point, on.points[0], strict=True))
    )
    turning: list[int | None] = [*([0] * 8), *([apart] * 8)] * 4
    assert file_systems._staying(on, turning) == 0.0
    assert file_systems._staying(on, [None] * 64) is None


def test_two_values_of_a_category_are_a_range_apart(tmp_path: Path) -> None:
    path = tmp_path / "mixed.json"
    parameters = [
        {"name": "a", "kind": "int", "values": [0, 1, 2]},
        {"name": "b", "kind": "categorical", "values": ["x", "y", "z"]},
    ]
    path.write_text(json.dumps({"name": "mixed", "parameters": parameters}), "utf-8")
    lines = [f"{a},{b},{1 + a}" for a in range(3) for b in "xyz"]
    path.with_suffix(".csv").write_text("\n".join(["a,b,time", *lines]) + "\n", "utf-8")
    on = Table(path)
    places = robert2019_claims.coordinates(on)
    at = {point: places[nth] for nth, point in enumerate(on.points)}
    assert np.linalg.norm(at[0, 0] - at[1, 0]) == pytest.approx(0.5)
    assert np.linalg.norm(at[0, 0] - at[0, 2]) == pytest.approx(1.0)


def test_what_is_novel_is_far_from_what_was_tested() -> None:
    line = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    # After 0 the others are 1 to 4 away; after 4 they are 1, 2 and 1; 0 has run before.
    assert robert2019_claims.novelty(line, [0, 4, 2, 0, 1]) == pytest.approx(
        [0.0, 75.0, 200 / 3, 0.0, 0.0]
    )


def test_moving_on_is_to_what_is_novel_or_not(tmp_path: Path) -> None:
    on = measured(tmp_path, "wide", lambda a, b: 1.0 + a + b, levels=11)
    near = [0] * 75
    far = list(range(120, 95, -1))

    def judged(studies: list[list[int]]) -> str:
        results = [{"tables": [{"methods": [{"studies": [{"runs": one} for one in studies]}]}]}]
        of = robert2019_claims.Reading(results, [on], {"SM": 0})
        return claims.above("a", robert2019_claims._moving_on(of, "SM")).verdict

    late, early = [*near, *far], [*near[:25], *far, *near[:50]]
    assert judged([late, [1, *late[1:]], late]) == HOLDS
    assert judged([early, [1, *early[1:]], early]) == NOT


def _replayed_2019(on: Table, **figures: dict[str, float]) -> robert2019_claims.Reading:
    """Two studies of each heuristic, of which the second has 0.01 more."""
    metrics = ("DistOpt", "AvgDist", "EC")
    methods = [
        {
            "figures": [{"metric": metric} for metric in metrics],
            "studies": [
                {"figures": [of[metric] + more * wide for metric in metrics]}
                for more, wide in ((0.0, 0.0), (0.01, of.get("wide", 1.0)))
            ],
        }
        for of in figures.values()
    ]
    places = {name: nth for nth, name in enumerate(figures)}
    return robert2019_claims.Reading([{"tables": [{"methods": methods}]}], [on], places)


def test_what_comes_nearest_pays_for_it_or_not(tmp_path: Path) -> None:
    on = measured(tmp_path, "grid", lambda a, b: 1.0 + a + b)
    sa = {"DistOpt": 7.0, "AvgDist": 19.0, "EC": 12.0}
    ga = {"DistOpt": 4.0, "AvgDist": 13.0, "EC": 9.0}

    def judged(sm: dict[str, float]) -> claims.Claim:
        return robert2019_claims._trade_off(_replayed_2019(on, SM=sm, GA=ga, SA=sa))

    as_printed = judged({"DistOpt": 0.0, "AvgDist": 26.0, "EC": 24.0})
    assert as_printed.verdict == HOLDS
    assert as_printed.figure.startswith("grid, Avg Dist, SM - GA 13 (")
    steady = judged({"DistOpt": 0.0, "AvgDist": 26.0, "EC": 5.0})
    assert steady.verdict == "does not hold here (1 for, 1 against)"
    unsure = judged({"DistOpt": 4.0, "AvgDist": 26.0, "EC": 24.0, "wide": 99.0})
    assert unsure.verdict == "not decided here (2 undecided)", (
        "of GA, which may be nearest, it is not"
    )


def test_what_runs_again_after_the_design_is_counted(tmp_path: Path) -> None:
    on = measured(tmp_path, "grid", lambda a, b: 1.0 + a + b, levels=5)
    design = list(range(robert2019_claims.DESIGN))
    studies = [{"runs": [*design, 15, 15, 16, 0]}, {"runs": [*design, None, None, 17, 18]}]
    results = [{"tables": [{"methods": [{"studies": studies}]}]}]
    of = robert2019_claims.Reading(results, [on], {"SM": 0})
    assert of.again("SM", 0) == [50.0, 0.0]
    assert robert2019_claims._over_the_whole_grid(of).verdict == HOLDS
    never = [{"tables": [{"methods": [{"studies": studies[1:]}]}]}]
    new = robert2019_claims.Reading(never, [on], {"SM": 0})
    assert robert2019_claims._over_the_whole_grid(new).verdict == NOT


def test_all_pairs_of_readings_are_tried() -> None:
    pairs = {
        (surrogate, genetic)
        for surrogate, genetic in robert2019.READINGS.values()
        if genetic != "GA, probabilistic"
    }
    assert len(pairs) == 2 * 3
    assert len(robert2019.READINGS) == 2 * 3 + 1


def test_success_and_steps_alone_leave_the_distance_out() -> None:
    def method(success: float, steps: float, distance: float) -> dict[str, object]:
        figures = {"SuccessRate": success, "NbrSteps": steps, "DistOptim": distance}
        return {
            "figures": [{"metric": name, "value": value} for name, value in figures.items()],
            "scores": {"optim": 0.0, "stability": 0.0, "score": 0.0},
        }

    result = {
        "methods": ["CGA", "RGA", "RS"],
        "tables": [
            {"methods": [method(0.0, 40.0, 9.0), method(50.0, 20.0, 99.0), method(25.0, 30.0, 0.0)]}
        ],
    }
    [table] = robert2020_claims.with_both(result)["tables"]
    assert [one["scores"]["both"] for one in table["methods"]] == pytest.approx([0.0, 1.0, 0.5])


def test_what_is_critical_is_judged_by_what_its_sentence_names() -> None:
    steps = claims.Claim("steps", claims.UNDECIDED, "y")
    against = claims.Difference(-2.0, -3.0, -1.0)
    abstract, beside = robert2020_claims._critical({"RGA - CGA": against}, steps)
    assert abstract.verdict == NOT
    assert "abstract" in abstract.words
    assert beside is steps


def test_more_tasks_take_longer_or_not() -> None:
    slower = alabed2021._scales({1: [1.0, 1.1, 1.2], 2: [2.0, 2.1, 2.3], 3: [3.0, 3.2, 3.3]})
    assert slower.verdict == HOLDS
    assert slower.figure.startswith("table, 2 tasks - 1 1.03")
    quicker = alabed2021._scales({1: [2.0, 2.1, 2.2], 2: [1.0, 1.1, 1.3]})
    assert quicker.verdict == NOT


def test_fewer_parameters_of_a_task_may_be_none_fewer() -> None:
    shares = {"m": {"a": 0.5, "b": 0.0}}
    apart = alabed2021._of_clusters(shares, {"a": 0.1, "b": 0.4})
    assert [one.verdict for one in apart] == [NOT, f"{HOLDS} only with structured"]
    together = alabed2021._of_clusters(shares, {"a": 0.6, "b": 0.4})
    assert together[1].verdict == NOT

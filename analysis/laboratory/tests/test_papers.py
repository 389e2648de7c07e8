"""The papers' pages: statistics, rankings, orders, drawings; without the program."""

import json
import re
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, median

import pytest
from papers import (
    alabed2021,
    anova,
    cao2018,
    cao2018_claims,
    cao2018_replays,
    cao2018_space,
    claims,
    clusters,
    drawing,
    file_systems,
    optima,
    published,
    ranks,
    robert2019,
    robert2019_claims,
    robert2020,
    robert2020_claims,
    robert2020_data,
    robert2020_steps,
    studies,
)
from papers.text import prose
from peers.tables import Table


def test_the_best_of_each_class_is_taken() -> None:
    labels = ["CGA a", "CGA b", "RGA a", "FGA a", "FRGA a", "RS"]
    of = [
        {
            "figures": [{"metric": "SuccessRate", "value": float(nth)}],
            "scores": {"optim": 0.1, "stability": 0.2, "score": nth / 10},
        }
        for nth in range(len(labels))
    ]
    best = robert2020_claims.best_of_each({"methods": labels, "tables": [{"methods": of}]})
    assert [one.name for one in best] == ["CGA b", "RGA a", "FGA a", "FRGA a", "RS"]
    assert best[0].metrics == {
        "SuccessRate": 1.0,
        "ScoreOptim": 0.1,
        "ScoreStability": 0.2,
        "Score": 0.1,
    }


def test_the_published_tables_are_whole() -> None:
    assert {len(row) for row in published.TABLE_VI.values()} == {len(published.CLASSES)}
    for columns in published.TABLE_2.values():
        assert set(columns) == set(robert2019.METRICS) - {"ECBest", "Regressions"}, (
            "the table has neither"
        )
        assert {len(row) for row in columns.values()} == {len(published.HEURISTICS)}
    methods = {method.name for method in cao2018.METHODS}
    assert methods == set(cao2018_claims.METHODS)
    assert all(set(printed) == methods for _, printed in published.FIGURE_5.values())


def test_an_order_is_claimed_if_it_holds_in_every_repetition() -> None:
    def best(*successes: float) -> list[robert2020_claims.Best]:
        metrics = dict.fromkeys(published.TABLE_VI, 0.0)
        return [robert2020_claims.Best("", metrics | {"SuccessRate": one}) for one in successes]

    lines = robert2020._orders([best(1, 9, 5, 5, 0), best(2, 8, 5, 6, 0)])
    [row] = [line for line in lines if "SuccessRate" in line]
    cells = [cell.strip() for cell in row.split("|")]
    assert {"RGA > CGA", "RGA > FRGA"} <= set(cells[2].split(", "))
    assert cells[3] == "-", "nothing is the other way round"
    assert cells[4] == "FRGA > FGA", "a tie in one repetition"


def test_ranks_by_hand() -> None:
    assert ranks.order("abc", [1.0, 3.0, 3.0], higher=True) == "b = c > a"
    assert ranks.order("abc", [1.0, 3.0, 2.0], higher=False) == "a > c > b"
    assert ranks.order("abc", [1.0, 3.0, 3.0], higher=True, tie=",") == "b, c > a"
    assert ranks.rounded(None) == 0.0
    assert ranks.rounded(1.2345) == 1.23


def two_by_two(directory: Path) -> Table:
    """The first parameter decides nearly all."""
    path = directory / "small.json"
    parameters = [{"name": word, "kind": "int", "values": [0, 1]} for word in "ab"]
    path.write_text(json.dumps({"name": "small", "parameters": parameters}), "utf-8")
    path.with_suffix(".csv").write_text("a,b,time\n0,0,1\n0,1,2\n1,0,9\n1,1,10\n", "utf-8")
    return Table(path)


def test_studies_are_times_by_run(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)
    method = {"studies": [{"runs": [0, 3, None]}, {"runs": [1, 1, 2]}, {"runs": [1, 3, 2]}]}
    of = studies.courses(method, on)
    assert of[0] == [1.0, 10.0, on.truths[on.default]], "what the table lacks takes the default's"
    assert studies.medians(of[:3])[:2] == [2.0, 10.0]


def test_noise_leaves_several_that_may_be_the_best(tmp_path: Path) -> None:
    def measured(name: str, rows: dict[int, list[float]]) -> Table:
        path = tmp_path / f"{name}.json"
        parameters = [{"name": "a", "kind": "int", "values": [0, 1, 2]}]
        path.write_text(json.dumps({"name": name, "parameters": parameters}), "utf-8")
        lines = [f"{level},{time}" for level, times in rows.items() for time in times]
        path.with_suffix(".csv").write_text("a,time\n" + "\n".join(lines) + "\n", "utf-8")
        return Table(path)

    first = measured("first", {0: [1.0, 1.1], 1: [1.05, 1.1], 2: [9.0, 9.1]})
    second = measured("second", {0: [9.0, 9.1], 1: [9.0, 9.2], 2: [1.0, 1.1]})
    noisy = measured("noisy", {0: [1.0, 9.0], 1: [1.1, 9.0], 2: [1.2, 9.0]})
    assert optima.candidates(first) == [0, 1]
    assert optima.candidates(noisy) == [0, 1, 2]
    assert optima.surely_different([first, second, noisy]) == [("first", "second")]


def test_a_trajectory_is_below_the_mean_if_all_its_runs_are(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)  # A mean of 5.5.
    below = robert2019_claims.below_mean_throughout
    assert below([1.0, 2.0], on) == 100.0
    assert below([9.0, 1.0, 2.0], on) == 0.0
    assert below([9.0, 1.0, 2.0], on, begin=1) == 100.0
    assert robert2019_claims.below_default([1.0, 2.0, 9.0, 10.0], on) == pytest.approx(
        100.0 * sum(time < on.truths[on.default] for time in (1.0, 2.0, 9.0, 10.0)) / 4
    )


def test_runs_below_the_mean_are_counted_one_by_one(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)  # A mean of 5.5.
    assert robert2019_claims.below_mean([9.0, 1.0, 2.0, 9.0], on) == 50.0


def test_what_is_close_is_left_as_often_as_a_run_that_is_not_follows(tmp_path: Path) -> None:
    path = tmp_path / "line.json"
    parameters = [{"name": "a", "kind": "int", "values": [0, 1, 2]}]
    words = {"name": "line", "parameters": parameters, "default": {"a": 1}}
    path.write_text(json.dumps(words), "utf-8")
    path.with_suffix(".csv").write_text("a,time\n0,1\n1,3\n2,9\n", "utf-8")
    on = Table(path)  # Close is what takes 2 s at most.
    design = [1.0, 9.0, 1.0] * (robert2019_claims.DESIGN // 3)
    assert robert2019_claims.departures([*design, 1.0, 2.0, 9.0, 3.0, 1.0, 3.0], on) == 2.0
    assert robert2019_claims.departures([*design, 1.0, 1.0, 2.0], on) == 0.0


def test_a_function_with_interactions_is_not_linear(tmp_path: Path) -> None:
    def measured(name: str, time: Callable[[int, int, int], float], left_out: int = 0) -> Table:
        path = tmp_path / f"{name}.json"
        parameters = [{"name": word, "kind": "int", "values": [0, 1, 2]} for word in "abc"]
        path.write_text(json.dumps({"name": name, "parameters": parameters}), "utf-8")
        points = [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]
        lines = [
            f"{a},{b},{c},{time(a, b, c) + 0.01 * ((a * 5 + b * 3 + c * 7) % 4)}"
            for a, b, c in points[left_out:]
        ]
        path.with_suffix(".csv").write_text("a,b,c,time\n" + "\n".join(lines) + "\n", "utf-8")
        return Table(path)

    tables = [
        measured("product", lambda a, b, c: 1.0 + a * b + c),
        measured("sum", lambda a, b, c: 1.0 + a + b + c),
        measured("part", lambda a, b, c: 1.0 + a * b + c, left_out=1),
    ]
    claim = robert2019_claims._not_additive(tables)
    assert claim.verdict == "not decided here (1 for, 1 undecided)", "a part of a grid is left out"
    assert claim.figure == (
        "product: 1 of 3 pairs of parameters; sum: 0 of 3 pairs of parameters; part cannot tell: "
        "it has 26 of the 27 parametrizations of its grid"
    )


def test_what_is_best_of_one_table_is_run_under_another(tmp_path: Path) -> None:
    def measured(name: str, rows: dict[int, list[float]]) -> Table:
        path = tmp_path / f"{name}.json"
        parameters = [{"name": "a", "kind": "int", "values": [0, 1, 2]}]
        of = {"name": name, "parameters": parameters, "default": {"a": 0}}
        path.write_text(json.dumps(of), "utf-8")
        lines = [f"{level},{time}" for level, times in rows.items() for time in times]
        path.with_suffix(".csv").write_text("\n".join(["a,time", *lines]) + "\n", "utf-8")
        return Table(path)

    one = measured("one", {0: [2.0, 2.02], 1: [1.0, 1.01], 2: [9.0, 9.1]})
    other = measured("other", {2: [1.0, 1.01], 1: [4.0, 4.05], 0: [2.0, 2.02]})
    there, back = optima.applied([one, other])
    assert (there.name, there.other) == ("one", "other")
    assert there.share == pytest.approx(1.005 / 4.025)
    assert (there.surely, there.worse, there.harms) == (True, True, True)
    assert back.share == pytest.approx(1.005 / 9.05)
    assert back.worse
    noisy = measured("noisy", {2: [1.0, 9.0], 1: [1.1, 9.5], 0: [1.2, 9.9]})
    assert not any(of.surely or of.harms for of in optima.applied([one, noisy]) if of.name == "one")


def test_a_verdict_that_differs_at_equal_runs_is_none() -> None:
    def read(verdict: str, figure: str = "x 1") -> claims.Claim:
        return claims.Claim("a", verdict, figure)

    def timed(by_time: str, by_runs: str) -> claims.Claim:
        [claim] = cao2018_claims._timed([read(by_time)], [read(by_runs, "x 2")])
        return claim

    alike = timed(f"{claims.NOT} (1 for, 1 against)", f"{claims.NOT} (2 against)")
    assert alike.verdict == f"{claims.NOT} (1 for, 1 against)"
    assert alike.figure == f"x 1. At equal runs: {claims.NOT} (2 against)"
    apart = timed(claims.HOLDS, claims.UNDECIDED)
    assert apart.verdict == claims.UNDECIDED
    assert apart.figure == (
        f"at equal time: {claims.HOLDS}: x 1. At equal runs: {claims.UNDECIDED}"
    )
    assert timed(claims.UNDECIDED, claims.HOLDS).verdict == claims.UNDECIDED
    same = read(claims.HOLDS)
    assert cao2018_claims._timed([same], [same]) == [same], "what has no time has no second verdict"


def test_a_step_to_a_neighbour_is_a_level_at_most(tmp_path: Path) -> None:
    path = tmp_path / "line.json"
    parameters = [{"name": "a", "kind": "int", "values": [0, 1, 2]}]
    path.write_text(json.dumps({"name": "line", "parameters": parameters}), "utf-8")
    path.with_suffix(".csv").write_text("a,time\n0,1\n1,2\n2,3\n", "utf-8")
    study = {"runs": [2] * robert2019_claims.DESIGN + [1, 0, 2, 2]}
    results = [{"tables": [{"methods": [{"studies": [study]}]}]}]
    reading = robert2019_claims.Reading(results, [Table(path)], {"GA": 0})
    # 2 to 1, 1 to 0, 0 to 2, 2 to 2.
    assert reading.neighbours("GA", 0) == [75.0]


def test_each_reading_names_a_variant_of_each_heuristic() -> None:
    places = robert2019._readings()
    first = places["GA whatever comes, SM nothing twice"]
    assert {name: first[name] for name in published.HEURISTICS} == dict(
        zip(published.HEURISTICS, robert2019._first(), strict=True)
    ), "the first reading is what stands for them elsewhere"
    known = (*published.HEURISTICS, robert2019_claims.EXPLOITING)
    assert {tuple(of) for of in places.values()} == {known}


def test_what_matters_is_the_share_of_the_variance(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)
    pairs = list(zip(on.points, on.truths, strict=True))
    # Between: 4 * 4^2 and 4 * 0.5^2, of 65.
    assert file_systems.shares(pairs, 2) == pytest.approx([64 / 65, 1 / 65])
    # Of throughputs 1, 1/2, 1/9 and 1/10, and without what two levels of four explain by chance.
    of = [1.0, 1 / 2, 1 / 9, 1 / 10]
    total = sum((one - fmean(of)) ** 2 for one in of)
    plain = [
        ((of[0] + of[1] - of[2] - of[3]) / 2) ** 2 / total,
        ((of[0] - of[1] + of[2] - of[3]) / 2) ** 2 / total,
    ]
    by_chance = [file_systems.adjusted(share, 4, 2) for share in plain]
    assert file_systems.importance(on) == pytest.approx(by_chance)


def test_fences_by_hand() -> None:
    # Quartiles 2 and 4.
    assert robert2020_data.fences([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx((-1.0, 7.0))


def test_outliers_are_compared_with_the_paper_s_of_as_many_runs_only() -> None:
    about_one = claims.Difference(0.8, 0.7, 0.9)
    judged = robert2020_data._one_outlier
    assert judged(about_one, 16).verdict == claims.HOLDS
    assert judged(about_one, 8).verdict == claims.UNTRIED
    assert judged(claims.Difference(0.3, 0.2, 0.4), 16).verdict == claims.NOT


def test_fences_of_fewer_runs_leave_more_outside() -> None:
    # By 20,000 groups of another generator: 0.652 and 0.428.
    assert robert2020_data._of_normal(8) == pytest.approx(0.65, abs=0.03)
    assert robert2020_data._of_normal(16) == pytest.approx(0.43, abs=0.03)


def test_a_parameter_may_have_an_effect_by_one_analysis_alone(tmp_path: Path) -> None:
    path = tmp_path / "nine.json"
    parameters = [{"name": word, "kind": "int", "values": [0, 1, 2]} for word in "ab"]
    path.write_text(json.dumps({"name": "nine", "parameters": parameters}), "utf-8")
    lines = [f"{a},{b},{5 + 10 * a + b + 0.1 * (a * b % 2)}" for a in range(3) for b in range(3)]
    path.with_suffix(".csv").write_text("a,b,time\n" + "\n".join(lines) + "\n", "utf-8")
    claim = robert2020_data._each_has_an_effect(Table(path))
    assert claim.verdict == "holds here only with the additive analysis"
    assert claim.figure.endswith("one by one: not decided here (1 for, 1 undecided)")


def test_designs_that_err_both_ways_are_not_near() -> None:
    assert robert2020_claims.away([8.0, 12.0], 10.0) == pytest.approx([20.0, 20.0])


def test_an_additive_analysis_of_variance_by_hand(tmp_path: Path) -> None:
    # Times 1, 2, 9, 11: 72.25 between the levels of a, 2.25 of b, 0.25 left with one degree.
    path = tmp_path / "four.json"
    parameters = [{"name": word, "kind": "int", "values": [0, 1]} for word in "ab"]
    path.write_text(json.dumps({"name": "four", "parameters": parameters}), "utf-8")
    path.with_suffix(".csv").write_text("a,b,time\n0,0,1\n0,1,2\n1,0,9\n1,1,11\n", "utf-8")
    [a, b] = anova.main_effects(Table(path))
    assert (a.name, b.name) == ("a", "b")
    assert (a.ratio, b.ratio) == pytest.approx((289.0, 9.0))
    assert b.p == pytest.approx(0.2048, abs=1e-4)


def test_an_interaction_is_what_two_do_beyond_each(tmp_path: Path) -> None:
    path = tmp_path / "eight.json"
    parameters = [{"name": word, "kind": "int", "values": [0, 1]} for word in "abc"]
    path.write_text(json.dumps({"name": "eight", "parameters": parameters}), "utf-8")
    points = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    lines = [f"{a},{b},{c},{5 + 2 * (a ^ b) + c + 0.1 * (a & b & c)}" for a, b, c in points]
    path.with_suffix(".csv").write_text("a,b,c,time\n" + "\n".join(lines) + "\n", "utf-8")
    pairs = {effect.name: effect.p for effect in anova.interactions(Table(path))}
    assert pairs["a and b"] < 0.05 < min(pairs["a and c"], pairs["b and c"])


def test_what_a_repetition_chooses_is_judged_by_the_next() -> None:
    def repetition(*scores: float) -> dict[str, object]:
        labels = ["CGA a", "CGA b", "RGA", "FGA", "FRGA", "RS"]
        of = [
            {"figures": [], "scores": {"optim": one, "stability": 0.0, "score": one}}
            for one in (*scores, 0.5, 0.5, 0.5, 0.5)
        ]
        return {"methods": labels, "tables": [{"methods": of}]}

    first, second = repetition(0.9, 0.1), repetition(0.2, 0.3)
    chosen = [of[0] for of in robert2020_claims.judged_elsewhere([first, second])]
    assert [one.name for one in chosen] == ["CGA a", "CGA b"]
    assert [one.metrics["Score"] for one in chosen] == [0.2, 0.1]


def test_the_median_iteration_is_of_the_median_study() -> None:
    courses = [[8.0, 4.0], [6.0, 4.0], [2.0, 9.0]]
    # Medians 6 and 4: 40 and 60 % faster than 10.
    assert robert2020_claims.faster_by_iteration(courses, 10.0) == pytest.approx(50.0)


def test_steps_to_the_optimum_are_of_the_studies_that_ran_it() -> None:
    runs: list[list[int | None]] = [[4, 2, 7], [1, 1, None], [7, 7]]
    of = [{"runs": one} for one in runs]
    assert robert2020_steps.first_runs(of, 7) == [3.0, 1.0]

    def found(*steps: int) -> robert2020_steps.Steps:
        return robert2020_steps.Steps([{"runs": [0] * (step - 1) + [7]} for step in steps], 7)

    claim = robert2020_steps.claim(
        "a",
        "fewer",
        {"x": (found(1, 2, 3), found(4, 6, 8))},
        {"x": claims.Difference(-1.0, -2.0, -0.5)},
    )
    assert claim.verdict == claims.UNDECIDED, "by the optimum, whose interval has zero in it"
    assert claim.tried == "fewer"
    assert claim.figure == (
        "to the optimum, where it ran: x -4 (-8.16 to 0.155), of 3 and 3 studies. "
        "To the optimum, a study that never ran it counting 51: x -4 (-8.16 to 0.155). "
        "To what is recommended: x -1 (-2 to -0.5). "
        "With other readings: to what is recommended: holds here"
    )


def test_a_study_that_never_ran_the_optimum_counts_as_later_than_all_runs() -> None:
    steps = robert2020_steps.Steps([{"runs": [3, 7]}, {"runs": [3, 4, None]}], 7)
    assert steps.where_it_ran == [2.0]
    assert steps.of_all == [2.0, 51.0]


def test_a_drawing_has_a_line_for_each_series() -> None:
    text = drawing.lines({"a < b": [1.0, 2.0], "c": [3.0]}, "run", "time, s")
    assert text.count("<polyline") == 2
    assert "a &lt; b" in text


def test_a_text_has_all_its_figures() -> None:
    directory = Path(__file__).parents[1] / "papers" / "prose"
    with pytest.raises(KeyError):
        prose("robert2020-table-vi")
    for path in directory.glob("*.md"):
        names = set(re.findall(r"\$\{(\w+)\}", path.read_text("utf-8")))
        assert "$" not in "".join(prose(path.stem, **dict.fromkeys(names, "1")))


SYSTEMS = Path(__file__).parents[3] / "analysis/data/papers/file-systems.json"


def test_draws_without_replacement_by_hand() -> None:
    assert file_systems.found_at_random(valid=4, near=1, runs=2) == pytest.approx(50.0)
    assert file_systems.found_at_random(valid=4, near=2, runs=2) == pytest.approx(100 - 100 / 6)
    assert file_systems.found_at_random(valid=4, near=1, runs=4) == 100.0
    assert file_systems.found_at_random(valid=4, near=1, runs=0) == 0.0


def test_the_second_is_what_matters_with_the_first_fixed(tmp_path: Path) -> None:
    """Cao 2018, section 4.4: "with the value of the most important one fixed"."""
    on = two_by_two(tmp_path)
    [(first, one), (second, other)] = file_systems.first_and_second(on)
    assert (first.name, second.name) == ("a", "b")
    assert one < 1.0, "throughputs 1, 1/2, 1/9, 1/10"
    assert other == 0.0, "with `a` fixed two configurations are left, which two values explain"
    assert file_systems.told([(first, 0.7), (second, 0.61)]) == "a 0.70, then b 0.61"
    assert file_systems.told([(first, 0.7), (second, 0.5)]) == "a 0.70 (b 0.50)"
    assert file_systems.told([(first, 0.5), (second, 0.9)]) == (
        "none alone above 0.6 (a 0.50, then b 0.90)"
    ), "the paper has no second without a first"


def test_with_the_first_fixed_the_second_decides_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "twelve.json"
    parameters = [
        {"name": "a", "kind": "int", "values": [0, 1]},
        {"name": "b", "kind": "int", "values": [0, 1]},
        {"name": "c", "kind": "int", "values": [0, 1, 2]},
    ]
    path.write_text(json.dumps({"name": "twelve", "parameters": parameters}), "utf-8")
    points = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1, 2)]
    lines = [f"{a},{b},{c},{1 + 9 * a + 0.5 * b + 0.001 * c}" for a, b, c in points]
    path.with_suffix(".csv").write_text("a,b,c,time\n" + "\n".join(lines) + "\n", "utf-8")
    [_, (second, share)] = file_systems.first_and_second(Table(path))
    assert second.name == "b"
    assert share == pytest.approx(1.0, abs=1e-3)


def test_with_the_first_fixed_few_configurations_tell_nothing(tmp_path: Path) -> None:
    path = tmp_path / "few.json"
    parameters = [
        {"name": name, "kind": "int", "values": list(range(values))}
        for name, values in (("a", 2), ("b", 2), ("c", 6))
    ]
    described = {"name": "few", "parameters": parameters, "complete": False}
    path.write_text(json.dumps(described), "utf-8")
    # With a = 1 there are four, which b divides; with a = 0 twelve, which c divides.
    lines = [f"0,{b},{c},{100 + c}" for b in (0, 1) for c in range(6)]
    lines += [f"1,{b},{c},{1 + 9 * b}" for b in (0, 1) for c in (0, 1)]
    path.with_suffix(".csv").write_text("a,b,c,time\n" + "\n".join(lines) + "\n", "utf-8")
    [(first, _), (second, _)] = file_systems.first_and_second(Table(path))
    assert (first.name, second.name) == ("a", "c")


def replayed(on: Table, **runs: list[list[int | None]]) -> cao2018_replays.Replayed:
    methods = {name: {"studies": [{"runs": one} for one in of]} for name, of in runs.items()}
    return cao2018_replays.Replayed(on, methods)


def test_throughputs_vary_and_are_bad_by_the_table(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)  # Times 1, 2, 9, 10: the median's throughput is 1 / 5.5.
    of = replayed(on, BO=[[0, 0, 1], [0, 2, 3], [3]])
    # Differences 0 and 1/2, then 8/9 and 1/90: half of the mean square.
    assert of.varying("BO") == pytest.approx(
        [(1 / 4 / 4) ** 0.5, ((64 / 81 + 1 / 8100) / 4) ** 0.5, 0.0]
    )
    assert of.bad("BO") == pytest.approx([0.0, 200 / 3, 100.0])


def test_when_something_was_found_is_in_runs_of_the_default(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)  # Times 1, 2, 9, 10; the default's is the first that was measured.
    default = on.truths[on.default]
    study = {"runs": [2, None, 0]}
    assert cao2018_replays.times(study, on) == pytest.approx(
        [9 / default, 9 / default + 1, 10 / default + 1]
    )
    assert cao2018_replays.when(study, on, frozenset({0, 1})) == 10 / default + 1
    assert cao2018_replays.when(study, on, frozenset({3})) is None
    assert cao2018_replays.times(study, on, by_runs=True) == [1.0, 2.0, 3.0]
    assert cao2018_replays.when(study, on, frozenset({0, 1}), by_runs=True) == 3.0
    of = replayed(on, GA=[[0], [2, 0], [3]])
    found = of.found("GA", frozenset({0}), 5 / default)
    assert found == [100.0, 0.0, 0.0]
    assert of.until("GA", frozenset({0}), 5 / default) == pytest.approx(
        [1 / default, 5 / default, 5 / default]
    )


def test_equal_time_is_that_of_the_method_whose_studies_end_first(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)
    default = on.truths[on.default]
    of = replayed(on, GA=[[0, 0]] * 20, SA=[[2, 2]] * 20)
    assert of.horizon == pytest.approx(2 / default)
    assert cao2018_replays.near_optimal(on) == {0}
    assert cao2018_replays.near_optimal(on, 0.4) == {0, 1}
    assert cao2018_replays.best_of(on, 0.5) == {0, 1}
    assert cao2018_replays.best_of(on) == {0}, "one at least"


def test_what_is_found_in_time_what_stays_slow_and_what_spreads(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)  # Times 1, 2, 9, 10; the first is the best, and slow are 9 and 10.
    default = on.truths[on.default]
    of = replayed(on, GA=[[3, 2, 0, 3], [0, 1, 0, 0], [None, None, None, None]])
    gains = of.gain_by("GA", 19 / default)
    assert gains[0] == pytest.approx(100 * (default / 9 - 1)), "the third run ends later"
    assert gains[1] == pytest.approx(100 * (default / 1 - 1))
    assert of.gain_by("GA", 0.0) == [0.0, 0.0, 0.0]
    assert of.stays_bad("GA") == [50.0, 0.0, 0.0]
    assert of.spreads(0, (0, 1), 2) == [50.0, 0.0, 0.0], "the best's `a` in runs 1 and 2, 3 and 4"
    assert of.spreads(1, (0, 1), 2) == [0.0, 50.0, 0.0]


def test_what_is_invalid_is_counted_at_both_ends(tmp_path: Path) -> None:
    study = [None, None, *[0] * 12, None, 0]
    of = replayed(two_by_two(tmp_path), GA=[study, study])
    first, last = of.invalid("GA")
    assert first == [100.0, 100.0], "of the first two of sixteen runs"
    assert last == [50.0, 50.0], "of the last two"


def test_tables_on_which_studies_end_too_soon_are_named(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)
    of = replayed(on, GA=[[3] * 10] * 20)
    assert cao2018_claims._lasting([of], of.horizon) == ([of], "")
    none, note = cao2018_claims._lasting([of], of.horizon + 1)
    assert none == []
    assert note == "On small the studies end too soon"


def test_random_search_is_better_than_one_of_the_others_or_behind_them_all(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)

    def judged(random: int, other: int, rest: int) -> str:
        runs = {"SA": other, "GA": rest, "DQN": rest, "BO": rest, "RS": random}
        studies: dict[str, list[list[int | None]]] = {
            name: [[place]] * 60 for name, place in runs.items()
        }
        return cao2018_claims._random_is_better([replayed(on, **studies)]).verdict

    best, worst = on.best, 1
    assert judged(best, worst, best) == "holds here"
    assert judged(worst, best, best) == "does not hold here"
    assert judged(worst, worst, best) == "not decided here"


def test_methods_differ_if_one_surely_finds_more_than_another(tmp_path: Path) -> None:
    on = two_by_two(tmp_path)

    def judged(studies: int) -> claims.Claim:
        runs: dict[str, list[list[int | None]]] = {
            name: [[on.best if name == "BO" else 1]] * studies for name in cao2018_claims.METHODS
        }
        return cao2018_claims._differing([replayed(on, **runs)])

    assert judged(60).verdict == "holds here"
    assert judged(60).figure == "small: BO 100, SA 0 %"
    assert judged(2).verdict == "not decided here"
    # The highest and the lowest are of few studies; two between them are sure.
    nth = {"BO": [1, 1], "GA": [1, 1, 0] * 200, "SA": [1, 0, 0] * 200, "DQN": [0, 0]}
    between: dict[str, list[list[int | None]]] = {
        name: [[on.best if one else 1] for one in nth.get(name, [1, 0])]
        for name in cao2018_claims.METHODS
    }
    assert cao2018_claims._differing([replayed(on, **between)]).figure == "small: GA 67, SA 33 %"


def test_most_settings_decide_a_claim_of_most() -> None:
    yes, no, unknown = (claims.Side.FOR, claims.Side.AGAINST, claims.Side.OPEN)
    assert cao2018_space._most([yes, yes, no]) == "holds here"
    assert cao2018_space._most([yes, unknown, no]) == "not decided here"
    assert cao2018_space._most([yes, no]) == "does not hold here", "half are not most"
    assert cao2018_space._most([yes, yes, unknown, unknown]) == "not decided here"


def test_noise_of_the_default_leaves_open_how_many_are_better(tmp_path: Path) -> None:
    path = tmp_path / "noisy.json"
    parameters = [{"name": "a", "kind": "int", "values": [0, 1, 2, 3]}]
    described = {"name": "noisy", "parameters": parameters, "default": {"a": 2}}
    path.write_text(json.dumps(described), "utf-8")
    rows = [
        f"{a},{time}"
        for a, times in enumerate([(1, 1.1), (4, 4.4), (4.1, 4.5), (9, 9.9)])
        for time in times
    ]
    path.with_suffix(".csv").write_text("a,time\n" + "\n".join(rows) + "\n", "utf-8")
    better = optima.better(Table(path))
    assert (better.low, better.mean, better.high) == (25.0, 50.0, 75.0)


def test_what_is_invalid_takes_no_time_of_a_random_search() -> None:
    on = Table(SYSTEMS)
    of = replayed(on, RS=[[None, on.best], [None, None]])
    first, second = of.studies("RS")
    assert first["runs"][0] == on.default
    assert sorted(first["runs"]) == list(range(len(on.points))), "without replacement"
    assert first["runs"] != second["runs"]
    assert cao2018_replays.times({"runs": [None, on.default]}, on) == [0.0, 1.0]


def test_more_studies_found_it_surely_or_not() -> None:
    some, none = [100.0] * 12 + [0.0] * 48, [0.0] * 60
    assert cao2018_replays.surely_more(some, none, 1)
    assert not cao2018_replays.surely_more(some, none, 1000)
    assert not cao2018_replays.surely_more(none, some, 1)
    assert not cao2018_replays.surely_more([100.0] * 60, [100.0] * 60, 1)


def test_configurations_are_matched_in_all_else(tmp_path: Path) -> None:
    on = file_systems.of_system(Table(SYSTEMS), "ext3", tmp_path)
    same = {"block_size": "1024"}
    one, other = cao2018_space._matched(
        on, {**same, "journal": "writeback"}, {**same, "journal": "ordered"}
    )
    assert len(one) == len(other) == 6
    assert all(0.0 < share <= 1.0 for share in (*one, *other))


def test_a_peak_is_surely_faster_than_all_that_differ_in_one_parameter(tmp_path: Path) -> None:
    def measured(name: str, scatter: float) -> Table:
        path = tmp_path / f"{name}.json"
        parameters = [{"name": "a", "kind": "int", "values": [0, 1, 2]}]
        parameters += [{"name": "b", "kind": "int", "values": [0, 1, 2]}]
        path.write_text(json.dumps({"name": name, "parameters": parameters}), "utf-8")
        times = {(0, 0): 1.0, (2, 2): 2.0}
        lines = [
            f"{a},{b},{times.get((a, b), 9.0) * factor}"
            for a in range(3)
            for b in range(3)
            for factor in (1.0 - scatter, 1.0 + scatter)
        ]
        path.with_suffix(".csv").write_text("a,b,time\n" + "\n".join(lines) + "\n", "utf-8")
        return Table(path)

    assert optima.peaks(measured("quiet", 0.01)) == 2
    assert optima.peaks(measured("noisy", 0.9)) == 0


def test_a_file_system_by_itself_has_its_own_parameters(tmp_path: Path) -> None:
    on = Table(SYSTEMS)
    ext3 = file_systems.of_system(on, "ext3", tmp_path)
    names = [parameter.name for parameter in ext3.parameters]
    assert names == ["block_size", "inode_size", "groups", "journal", "atime"]
    assert len(ext3.points) == 108
    default = {
        p.name: p.values[level]
        for p, level in zip(ext3.parameters, ext3.points[ext3.default], strict=True)
    }
    assert default["journal"] == "ordered"
    btrfs = file_systems.of_system(on, "btrfs", tmp_path)
    assert [parameter.name for parameter in btrfs.parameters] == ["atime", "special"]
    lines = file_systems.clusters(ext3, "journal", "block_size")
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["journal", "ordered", "writeback"]


def test_table_5_has_the_paper_s_file_systems() -> None:
    assert set(published.TABLE_5) == {
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "nilfs2", "reiserfs")
    }


def test_a_study_that_finds_nothing_is_later_than_all() -> None:
    assert alabed2021._steps([3, None, 5]) == "5 (3 to none)"
    assert alabed2021._steps([None, None, 5]) == "none (5 to none)"


def test_a_claim_holds_where_every_interval_lies_on_its_side() -> None:
    # Differences -1, -2, -3: a mean of -2, t = 4.303 of two degrees of freedom, an error of 1/√3.
    across = claims.paired([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert (across.mean, across.low, across.high) == pytest.approx((-2.0, -4.484, 0.484), abs=1e-3)
    below = claims.Difference(-1.0, -1.5, -0.5)
    assert claims.below("a", {"x": below}).verdict == claims.HOLDS
    assert claims.above("a", {"x": below}).verdict == claims.NOT
    both = claims.below("a", {"x": below, "y": across})
    assert both.verdict == "not decided here (1 for, 1 undecided)"
    assert both.figure == "x -1 (-1.5 to -0.5); y -2 (-4.48 to 0.484)"


def test_an_interval_with_zero_in_it_decides_nothing() -> None:
    across = claims.Difference(1.0, -1.0, 3.0)
    assert claims.above("a", {"x": across}).verdict == claims.UNDECIDED
    assert claims.below("a", {"x": across}).verdict == claims.UNDECIDED
    assert claims.below("a", {"x": claims.Difference(0.0, 0.0, 0.0)}).verdict == claims.UNDECIDED


def test_one_comparison_against_a_claim_refutes_it_and_all_are_counted() -> None:
    sides = [claims.Side.FOR, claims.Side.OPEN, claims.Side.AGAINST, claims.Side.FOR]
    assert claims.verdict(sides) == "does not hold here (2 for, 1 against, 1 undecided)"
    assert claims.verdict(sides[:2]) == "not decided here (1 for, 1 undecided)"
    assert claims.verdict([claims.Side.FOR] * 3) == claims.HOLDS
    facts = {"a": True, "b": False}
    assert claims.judged("a", facts, "").verdict == "does not hold here (1 for, 1 against)"


def test_what_sums_err_by_is_printed_as_nothing() -> None:
    assert claims.Difference(-1.1e-16, -3.33, 3.33).told() == "0 (-3.33 to 3.33)"
    assert claims.Difference(1.1e-6, 0.0, 2.2e-6).told() == "0.0000011 (0 to 0.0000022)"


def test_a_bound_moves_what_is_compared_with() -> None:
    of = claims.Difference(5.0, 4.0, 6.0)
    assert claims.above("a", {"x": of}, bound=3.0).verdict == claims.HOLDS
    assert claims.above("a", {"x": of}, bound=5.0).verdict == claims.UNDECIDED
    assert claims.above("a", {"x": of}, bound=7.0).verdict == claims.NOT


def test_no_difference_is_claimed_by_an_interval_within_a_bound() -> None:
    near, across, far = ((-0.1, 0.1), (-0.1, 2.0), (2.0, 3.0))
    verdicts = [
        claims.alike("a", {"x": claims.Difference(0.0, *of)}, 1.0).verdict
        for of in (near, across, far)
    ]
    assert verdicts == [claims.HOLDS, claims.UNDECIDED, claims.NOT]


def test_welch_s_interval_by_hand() -> None:
    # Errors 1/3 and 4/3; (5/3)^2 / ((1/9 + 16/9) / 2) = 2.941 degrees of freedom, t = 3.218.
    of = claims.unpaired([1.0, 2.0, 3.0], [4.0, 6.0, 8.0])
    assert (of.mean, of.low, of.high) == pytest.approx((-4.0, -8.155, 0.155), abs=1e-2)
    assert claims.unpaired([1.0, 1.0], [3.0, 3.0]) == claims.Difference(-2.0, -2.0, -2.0)


def test_wilson_s_interval_is_within_what_can_be() -> None:
    assert claims.share(60, 60).high == pytest.approx(100.0)
    assert claims.share(60, 60).low == pytest.approx(93.98, abs=0.01)
    assert claims.share(0, 60).low == pytest.approx(0.0)
    half = claims.share(50, 100)
    assert (half.mean, half.low, half.high) == pytest.approx((50.0, 40.38, 59.62), abs=0.01)


def test_shares_apart_have_an_interval_where_none_scatters() -> None:
    # Agresti and Caffo: 41/42 - 1/42 = 0.952, an error of 0.0333.
    apart = claims.shares_apart([100.0] * 40, [0.0] * 40)
    assert (apart.mean, apart.high) == (100.0, 100.0)
    assert apart.low == pytest.approx(88.7, abs=0.1)
    none = claims.shares_apart([0.0] * 40, [0.0] * 40)
    assert none.mean == 0.0
    assert none.low < 0.0 < none.high


def test_a_bootstrap_has_the_statistic_of_all_and_is_the_same_each_time() -> None:
    values = [float(nth) for nth in range(21)]

    def middle(places: Sequence[int]) -> float:
        return median(values[nth] for nth in places)

    of = claims.bootstrapped(middle, len(values))
    assert of.mean == 10.0
    assert 3.0 < of.low < 10.0 < of.high < 17.0
    assert of == claims.bootstrapped(middle, len(values))


def test_a_claim_says_which_readings_it_depends_on() -> None:
    holds, against, again = (
        claims.Claim("a", claims.HOLDS, "x 1"),
        claims.Claim("a", claims.NOT, "x -1"),
        claims.Claim("a", claims.HOLDS, "x 2"),
    )
    assert claims.with_readings({"one": holds, "two": again}) == holds
    only = claims.with_readings({"one": holds, "two": against}, "these two")
    assert only.verdict == "holds here only with these two"
    assert only.figure == "x 1. With other readings: two: does not hold here"
    some = claims.with_readings({"one": holds, "two": against, "three": again})
    assert some.verdict == "holds here, but not with each reading"
    none = claims.with_readings({"one": against, "two": holds})
    assert none.verdict == claims.NOT
    assert "two: holds here" in none.figure


def test_another_count_is_another_verdict_or_not() -> None:
    one, two = (claims.Claim("a", f"not decided here ({of} for)", "x") for of in (1, 2))
    assert claims.with_readings({"one": one, "two": two}, counted=False) == one
    assert "two: not decided here (2 for)" in claims.with_readings({"one": one, "two": two}).figure


def test_an_interval_over_several_cases_is_wider() -> None:
    values = [1.0, 2.0, 4.0, 8.0]
    # Student's quantiles with three degrees: 3.182 at 97.5 %, 4.857 at 99.17 %.
    one, three = claims.mean(values), claims.mean(values, cases=3)
    ratio = (three.high - three.low) / (one.high - one.low)
    assert ratio == pytest.approx(4.857 / 3.182, rel=1e-3)


def _measured(
    folder: Path, measures: list[str], of: Callable[[int, int, int], tuple[float, ...]]
) -> Table:
    """A table of three parameters of two levels; `of` gives a point's measures and its time."""
    path = folder / "measured.json"
    parameters = [{"name": word, "kind": "int", "values": [0, 1]} for word in "abc"]
    described = {"name": "measured", "parameters": parameters, "measures": measures}
    path.write_text(json.dumps(described), "utf-8")
    rows: list[list[object]] = [[*point, *of(*point)] for point in product((0, 1), repeat=3)]
    head: list[object] = ["a", "b", "c", *measures, "time"]
    lines = [",".join(map(str, row)) for row in [head, *rows]]
    path.with_suffix(".csv").write_text("\n".join(lines) + "\n", "utf-8")
    return Table(path)


def test_a_parameter_belongs_to_the_measure_that_it_explains_best(tmp_path: Path) -> None:
    on = _measured(
        tmp_path, ["one", "other"], lambda a, b, c: (10 ** (1 + a), 10 ** (2 * b + c), 1)
    )
    shares = clusters.shares(on)
    assert shares["one"]["a"] == pytest.approx(1.0)
    assert shares["other"]["b"] > shares["other"]["c"] > 0.0
    assert clusters.by_covariance(shares) == {"one": ["a"], "other": ["b", "c"]}
    # A half of the variance, by two levels of eight points: 1 - 1/2 * 7/6.
    assert file_systems.adjusted(0.5, 8, 2) == pytest.approx(5 / 12)


def test_what_a_measure_says_of_the_time(tmp_path: Path) -> None:
    on = _measured(
        tmp_path,
        ["with", "apart"],
        lambda a, b, c: (8 ** (a + b) - 0.99, 1 + c, 2 ** (2 * a + b)),
    )
    of = clusters.with_time(on)
    assert of["with"].low > 0.0
    assert of["apart"].low < 0.0 < of["apart"].high
    # Four fifths of the variance, by two levels of eight points: 1 - 1/5 * 7/6.
    assert clusters.of_time(on)["a"] == pytest.approx(1 - 7 / 30)


def test_what_a_correlation_leaves_is_said(tmp_path: Path) -> None:
    on = _measured(
        tmp_path, ["with"], lambda a, b, c: (10 ** (1 + 3 * a + b), 2 ** (2 * b + 4 * c + a / 2))
    )
    of = alabed2021.Replayed(
        steps={},
        seconds={},
        of_tasks={},
        optimal={},
        shares=clusters.shares(on),
        of_time=clusters.of_time(on),
        with_time={"with": claims.Difference(0.3, 0.1, 0.5)},
    )
    claim = alabed2021._implicitly(of)
    assert claim.verdict == claims.UNTRIED, "however sure the correlation is"
    assert "explains 9 to 9 % of the variance of times; and c alone explains" in claim.figure
    assert claim.figure.endswith("and of no measure's more than 0 %")


def test_methods_that_run_alike_are_one() -> None:
    def crossed(*runs: list[int]) -> list[dict[str, object]]:
        methods = [{"studies": [{"runs": one, "recommended": 0}]} for one in runs]
        labels = [f"FGA {nth}" for nth in range(len(runs) - 1)] + ["RS"]
        return [{"methods": labels, "tables": [{"methods": methods}]}]

    assert robert2020.different(crossed([1, 2], [1, 2], [3, 4], [5, 6])) == 2
    assert robert2020.different(crossed([1, 2], [5, 6]), crossed([1, 2], [5, 6])) == 1


def test_a_posterior_is_off_by_the_logarithm() -> None:
    study = {
        "elapsed": [0.2, 0.4, None],
        "predicted": [None, 0.2, 0.2],
        "factor": [None, 2.0, 2.0],
        "measures": [0, 1, 0],
    }
    [(off, expected, measures)] = alabed2021._surprises(study)
    assert off == pytest.approx(expected)
    assert measures == 1
    assert alabed2021._so_far(study) == [0.2, 0.2, 0.2]
    assert alabed2021._reached([study, {**study, "elapsed": [0.3, 0.21, None]}], 0.1) == [1, 2]

"""Planted effects: what is found, and that nothing is found where nothing is planted."""

import json
import shlex
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from histories import (
    DEFAULT,
    START,
    Rows,
    assessment,
    effect,
    frame,
    noise,
    row,
    settled,
    unsettled,
)
from io_autotune_report.analyse.understanding import (
    explored,
    findings,
    gather,
    importance,
    quiet,
    surfaces,
)
from io_autotune_report.analyse.understanding import noise as scatter
from io_autotune_report.analyse.understanding.findings import QUIET_DAYS
from io_autotune_report.analyse.understanding.importance import tree
from io_autotune_report.analyse.understanding.surfaces import Process
from io_autotune_report.document import Finding, Importance, NodeHours, Parameter, Study
from io_autotune_report.load.assessment import Found
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.tree import DecisionTreeRegressor

HOURS = NodeHours(9.0, 5.0, 1.0, 9.0, 6.0, 0.5, 0.5, None)

LEVELS: dict[str, list[Any]] = {
    "size": [1, 4, 16, 64],
    "cache": ["off", "on"],
    "order": ["a", "b", "c"],
}


def grid(
    effect: Callable[..., float], cv: float, seed: int = 0, share: float = 1.0
) -> pd.DataFrame:
    """A share of all parametrizations, once each; ``effect`` of the values is on log elapsed."""
    random = np.random.default_rng(seed)
    rows: Rows = []
    for values in product(*LEVELS.values()):
        known = dict(zip(LEVELS, values, strict=True))
        if random.random() < share:
            log = effect(**known) + cv * random.standard_normal()
            key = json.dumps(known, sort_keys=True)
            rows.append(row(len(rows) + 1, 100 * float(np.exp(log)), "search", "search", key))
    return frame(rows)


def strong(size: int, cache: str, order: str) -> float:
    """The size explains most, the order the rest once the size is fixed; the cache nothing."""
    del cache
    return 0.5 * np.log2(size) / 2 + {"a": 0.0, "b": 0.15, "c": 0.3}[order]


def test_table_5_names_the_first_and_the_second_parameter() -> None:
    said = importance(grid(strong, 0.02))
    assert [share.parameters for share in said.r2] == [["size"], ["order"]]
    assert 0.6 < said.r2[0].share < 0.98
    assert said.r2[1].share > 0.95


def test_table_5_names_nothing_below_its_threshold() -> None:
    said = importance(grid(lambda **values: 0.02 * np.log2(values["size"]), 0.1))
    assert said.r2 == []


def test_a_parameter_with_as_many_levels_as_runs_explains_nothing() -> None:
    random = np.random.default_rng(1)
    rows = [
        row(n + 1, 100 * float(random.lognormal(0, 0.2)), "search", "search", f'{{"seed":{n}}}')
        for n in range(14)
    ]
    assert importance(frame(rows)).silent is not None


def test_an_interaction_is_told_from_main_effects() -> None:
    def crossed(size: int, cache: str, order: str) -> float:
        del order
        return 0.2 * (np.log2(size) - 3) * (1 if cache == "on" else -1)

    said = importance(grid(crossed, 0.05))
    assert said.anova[0].parameters in (["size", "cache"], ["cache", "size"])
    assert said.anova[0].share > 0.8
    additive = importance(grid(strong, 0.05))
    assert all(len(share.parameters) == 1 for share in additive.anova)
    assert [share.parameters for share in additive.anova] == [["size"], ["order"]]
    total = sum(share.share for share in additive.anova)
    assert 0.9 < total <= 1.02


def test_type_two_does_not_confuse_parameters_that_ran_together() -> None:
    """Where the cache was on, large sizes ran more often; the cache does nothing."""
    data = grid(strong, 0.03)
    values = data["key"].map(json.loads)
    rare = [(v["cache"] == "on") == (v["size"] >= 16) or v["order"] == "a" for v in values]
    said = importance(data[rare])
    assert [share.parameters for share in said.anova] == [["size"], ["order"]]


def test_the_forest_speaks_where_it_has_skill() -> None:
    said = importance(grid(strong, 0.05))
    assert said.forest_skill > 0.5
    assert said.forest[0].parameters == ["size"]
    assert said.forest[0].low <= said.forest[0].share <= said.forest[0].high
    assert all(share.parameters != ["cache"] for share in said.forest)


@pytest.mark.parametrize("seed", range(6))
def test_noise_alone_explains_nothing(seed: int) -> None:
    said = importance(grid(lambda **_: 0.0, 0.3, seed=seed))
    assert (said.r2, said.forest) == ([], [])
    assert said.forest_skill < 0.3
    assert len(said.anova) <= 1


def test_the_forests_trees_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(3)
    for seed in range(50):
        count, columns = int(random.integers(8, 60)), int(random.integers(1, 12))
        x = random.integers(0, 4, (count, columns)).astype(np.float32)
        y, weights = random.standard_normal(count), random.integers(1, 5, count).astype(np.float64)
        known = DecisionTreeRegressor(min_samples_leaf=2, max_features=0.7, random_state=seed)
        expected = known.fit(x, y, sample_weight=weights).predict(x)
        assert np.array_equal(tree(x, y, weights, seed).predict(x)[:, 0], expected)


def test_few_parametrizations_are_silence() -> None:
    said = importance(frame(settled(100, 0.5, noise(1, 0.1))))
    assert "2 parametrizations ran" in said.silent


def test_a_parameter_that_does_not_exist_is_a_level_of_its_own() -> None:
    rows: Rows = []
    for n, (mode, buffer) in enumerate(product(["x", "y"], [1, 2, 3, 4, 5, 6])):
        values = {"mode": mode, "buffer" if mode == "x" else "other": buffer}
        key = json.dumps(values, sort_keys=True)
        rows.append(row(n + 1, 100.0 + 50 * (mode == "y") + buffer, "search", "search", key))
    known = gather(frame(rows))
    by_name = {parameter.name: parameter for parameter in known.parameters}
    assert by_name["buffer"].levels == (1, 2, 3, 4, 5, 6, None)
    assert by_name["buffer"].scale[-1] == -1
    said = importance(frame(rows))
    assert said.r2[0].share > 0.9


def test_surfaces_are_near_the_truth_and_surer_where_it_ran() -> None:
    data = grid(strong, 0.03, share=0.7)
    said = importance(data)
    shown = surfaces(data, said)
    pairs = [{surface.x, surface.y} for surface in shown]
    assert {"size", "order"} in pairs
    surface = shown[pairs.index({"size", "order"})]
    for j, y in enumerate(surface.y_values):
        for i, x in enumerate(surface.x_values):
            values: dict[str, Any] = {surface.x: x, surface.y: y, "cache": "on"}
            assert surface.elapsed[j][i] == pytest.approx(100 * np.exp(strong(**values)), rel=0.25)
    assert all(deviation > 0 for line in surface.deviation for deviation in line)
    assert all(x in surface.x_values and y in surface.y_values for x, y, _, _ in surface.runs)
    assert surfaces(data, Importance(silent="no")) == []


def test_the_process_is_that_of_scikit_learn() -> None:
    random = np.random.default_rng(4)
    for count, columns in ((12, 1), (30, 3), (60, 5)):
        x, asked = random.random((count, columns)), random.random((20, columns))
        alpha = 0.01 / random.integers(1, 5, count)
        y = np.sin(3 * x[:, 0]) + 0.1 * random.standard_normal(count)
        y -= y.mean()
        spread = float(np.var(y))
        kernel = ConstantKernel(spread, (spread / 30, spread * 30)) * Matern(
            [0.7] * columns, (0.1, 30.0), nu=2.5
        ) + WhiteKernel(spread / 100, (spread * 1e-5, spread))
        with warnings.catch_warnings():
            # A length at its bound says that a column does not matter here.
            warnings.simplefilter("ignore", ConvergenceWarning)
            known = GaussianProcessRegressor(kernel, alpha=alpha).fit(x, y)
        mean, deviation = Process(x, y, alpha).predict(asked)
        expected = known.predict(asked, return_std=True)
        assert mean == pytest.approx(expected[0], abs=1e-4)
        assert deviation == pytest.approx(expected[1], abs=1e-4)


def test_noise_is_measured_and_differences_of_it_are_found() -> None:
    random = np.random.default_rng(2)
    rows: Rows = []
    for key, cv in (('{"a":1}', 0.05), ('{"a":2}', 0.05), ('{"a":3}', 0.4)):
        for _ in range(60):
            elapsed = 100 * float(np.exp(cv * random.standard_normal()))
            rows.append(row(len(rows) + 1, elapsed, "search", "search", key))
    differs, alike = scatter(frame(rows)), scatter(frame(rows[:120]))
    assert differs.varies is True
    assert differs.levene_p < 1e-6
    assert differs.bartlett_p < 1e-6
    assert alike.varies is False
    assert alike.cv == pytest.approx(0.05, rel=0.2)
    assert alike.outliers < 0.06
    for slow in rows[:120:10]:
        slow["elapsed"] *= 1.6
    assert scatter(frame(rows[:120])).outliers >= 0.1


def test_single_runs_tell_no_noise() -> None:
    said = scatter(grid(strong, 0.1))
    assert (said.cv, said.levene_p, said.outliers, said.varies) == (None, None, None, None)


def study(
    runs: pd.DataFrame,
    phase: str = "settled",
    hours: NodeHours = HOURS,
    **gain: Any,  # noqa: ANN401 - fields of several types
) -> Study:
    return Study(
        study_id=12,
        application="ocean",
        user="u",
        account=None,
        accelerator="romio",
        context={},
        epoch=int(runs["epoch"].max()),
        phase=phase,
        runs=len(runs),
        counted=len(runs),
        failed=0,
        gain=assessment(effect(), **gain).gain,
        node_hours=hours,
        parameters=[Parameter("a", 1, 2, None)],
        chosen_since=None,
        convergence=[],
        points=[],
        importance=Importance(silent=""),
        surfaces=[],
        noise=scatter(runs),
    )


def listed(
    runs: pd.DataFrame,
    *found: Found,
    phase: str = "settled",
    **known: Any,  # noqa: ANN401 - likewise
) -> dict[str, Finding]:
    said = findings(study(runs, phase, **known), found, explored(runs))
    return {finding.kind: finding for finding in said}


def test_a_healthy_study_is_not_listed() -> None:
    for seed in range(8):
        runs = frame(
            unsettled(noise(seed, 0.2)) + settled(400, 0.8, noise(seed + 50, 0.2), since=20)
        )
        assert listed(runs, verdict="faster", share=0.2) == {}


def test_a_choice_that_is_slower_is_a_regression() -> None:
    runs = frame(settled(30, 1.4, noise(3, 0.1)))
    said = listed(runs, verdict="slower", share=-0.4, low=-0.5, high=-0.3)
    assert said["regression"].what.startswith(
        "What is chosen takes 40 % longer than the default (30 % at least)"
    )


def test_what_the_service_finds_is_rendered_in_its_words() -> None:
    runs = frame(settled(30, 1.0, noise(3, 0.1)))
    said = listed(
        runs,
        Found("mixed", "The runs differ.", "`io-autotune accept study:12`."),
        Found("quarantine", "3 of 3 runs failed", "Look at them.", {"b": 2, "a": "x"}),
        Found("drift", "It changed.", "Nothing."),
        Found("ineffective", "a has no effect here.", "Leave it out."),
        Found("nothing_to_win", "There is nothing to win.", "Nothing."),
        Found("elapsed_worse", "a=2 makes elapsed worse.", "Nothing.", {"a": 2}),
        Found("unreported", "No run has told it.", "Have the job say it."),
        Found("default_lost", "The default has not completed yet.", "Look at its runs."),
        Found("of_a_newer_service", "It is so.", "Do it."),
    )
    assert list(said) == [
        "mixed",
        "quarantine",
        "drift",
        "ineffective",
        "nothing_to_win",
        "elapsed_worse",
        "unreported",
        "default_lost",
        "other",
    ]
    assert (said["mixed"].what, said["mixed"].do) == (
        "The runs differ.",
        "`io-autotune accept study:12`.",
    )
    assert said["quarantine"].what == '{"a":"x","b":2}: 3 of 3 runs failed'


def test_a_search_that_costs_much_and_finds_nothing() -> None:
    rows = unsettled(noise(8, 0.1))
    for explores in rows[4:]:
        explores["elapsed"] *= 2
    assert "exploring runs took" in listed(frame(rows), phase="search")["waste"].what
    rows[10]["elapsed"] /= 4
    assert "waste" not in listed(frame(rows), phase="search")


def test_tuning_that_surely_cost_more_than_it_saved_is_waste() -> None:
    runs = frame(settled(30, 1.0, noise(9, 0.1)))
    lost = replace(HOURS, saved=-7.0, low=-9.0, high=-5.0)
    waste = listed(runs, phase="search", hours=lost)["waste"]
    assert "cost 7.0 node-hours more" in waste.what
    assert "enough explored" in waste.do, "what is recommended now saves something"
    worse = replace(lost, by_chosen=-1.0)
    assert "default is best" in listed(runs, phase="search", hours=worse)["waste"].do
    assert listed(runs, phase="search", hours=replace(lost, high=1.0)) == {}


def test_of_a_design_that_has_run_the_default_alone_nothing_is_said() -> None:
    rows = unsettled(noise(8, 0.1))[:5]
    for run in rows:
        run.update(key=DEFAULT, default=True)
    assert explored(frame(rows)) is None


def test_nobody_is_asked_to_end_a_search_that_has_ended() -> None:
    runs = frame(settled(30, 1.0, noise(9, 0.1)))
    lost = replace(HOURS, saved=-7.0, low=-9.0, high=-5.0)
    for phase in ("settled", "pinned"):
        assert listed(runs, phase=phase, hours=lost) == {}


def test_where_the_default_is_best_stopping_is_a_result() -> None:
    runs = frame(settled(50, 1.0, noise(9, 0.1), key=DEFAULT))
    assert "pin study:12 a=1" in listed(runs, verdict="no_effect", share=0.0)["already_best"].do


def test_a_search_that_nobody_runs_any_more_is_quiet() -> None:
    runs = frame(unsettled(noise(10, 0.1)))
    end = runs["started_at"].max()
    late, early = end + pd.Timedelta(days=QUIET_DAYS + 1), end + pd.Timedelta(days=1)
    (finding,) = quiet(study(runs, "search"), end, late)
    assert f"No run for {QUIET_DAYS + 1} days" in finding.what
    assert [*quiet(study(runs, "search"), end, early)] == []
    assert [*quiet(study(runs, "settled"), end, late)] == []
    assert end > START


def test_what_to_do_is_a_command_that_a_shell_understands() -> None:
    runs = frame(settled(50, 1.0, noise(9, 0.1), key=DEFAULT))
    plain = study(runs, verdict="no_effect", share=0.0)
    odd = replace(plain, parameters=[Parameter("a", "x; rm -rf /", 2, None)])
    command = findings(odd, (), None)[0].do.split(" stops here")[0]
    assert command[0] == command[-1] == "`"  # code, to the page
    assert shlex.split(command[1:-1])[:4] == ["io-autotune", "pin", "study:12", "a=x; rm -rf /"]

"""Optuna's own tests of samplers, and its storages, with ours."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import optuna
import pytest
from io_autotune.optuna import Sampler, _parameter
from optuna.testing import pytest_samplers

optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture
def sampler() -> Callable[[], Sampler]:
    return lambda: Sampler(seed=1)


class TestBasic(pytest_samplers.BasicSamplerTestCase):
    """Optuna's tests of any sampler."""

    @pytest.fixture
    def sampler(self) -> Callable[[], optuna.samplers.BaseSampler]:
        """Return ours."""
        return lambda: Sampler(seed=1)


class TestRelative(pytest_samplers.RelativeSamplerTestCase):
    """Optuna's tests of a sampler that samples several parameters together."""

    @pytest.fixture
    def sampler(self) -> Callable[[], optuna.samplers.BaseSampler]:
        """Return ours."""
        return lambda: Sampler(seed=1)


class TestSingleOnly(pytest_samplers.SingleOnlySamplerTestCase):
    """Optuna's tests of a sampler for one objective."""

    @pytest.fixture
    def sampler(self) -> Callable[[], optuna.samplers.BaseSampler]:
        """Return ours."""
        return lambda: Sampler(seed=1)


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -10, 10)
    n = trial.suggest_int("n", 1, 1000, log=True)
    codec = trial.suggest_categorical("codec", [None, "lz4", "zstd"])
    return (x - 2) ** 2 + abs(n - 40) / 100 + (codec != "zstd")


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_it_finds_what_is_good(direction: Literal["minimize", "maximize"]) -> None:
    sign = 1 if direction == "minimize" else -1
    study = optuna.create_study(direction=direction, sampler=Sampler(seed=1))
    study.optimize(lambda trial: sign * objective(trial), n_trials=40)
    assert sign * study.best_value < 1.5
    assert study.best_params["codec"] == "zstd"


def test_a_study_in_a_storage_goes_on_with_another_sampler(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"

    def trials(after: int) -> list[dict[str, object]]:
        study = optuna.create_study(
            storage=storage, study_name="one", load_if_exists=True, sampler=Sampler(seed=1)
        )
        study.optimize(objective, n_trials=after)
        return [trial.params for trial in study.trials]

    first = trials(10)
    assert trials(5)[:10] == first


def test_failed_pruned_and_enqueued_trials_are_told_of() -> None:
    study = optuna.create_study(sampler=Sampler(seed=1), pruner=optuna.pruners.NopPruner())
    study.enqueue_trial({"x": 2.1, "n": 40, "codec": "zstd"})

    def function(trial: optuna.Trial) -> float:
        value = objective(trial)
        if trial.number % 5 == 3:
            raise RuntimeError(value)
        if trial.number % 5 == 4:
            trial.report(value, 1)
            raise optuna.TrialPruned
        return value

    study.optimize(function, n_trials=30, catch=(RuntimeError,))
    near = [trial for trial in study.trials[10:] if abs(trial.params["x"] - 2) < 2]
    assert len(near) > len(study.trials[10:]) / 2


def test_trials_at_once_differ() -> None:
    study = optuna.create_study(sampler=Sampler(seed=1))
    study.optimize(objective, n_trials=5)
    space = {
        "x": optuna.distributions.FloatDistribution(-10, 10),
        "n": optuna.distributions.IntDistribution(1, 1000, log=True),
        "codec": optuna.distributions.CategoricalDistribution([None, "lz4", "zstd"]),
    }
    asked = [study.ask(space) for _ in range(4)]
    assert len({str(trial.params) for trial in asked}) == 4


def test_more_parameters_than_are_searched_are_drawn_at_random() -> None:
    study = optuna.create_study(sampler=Sampler(seed=1))

    def function(trial: optuna.Trial) -> float:
        return sum(trial.suggest_float(f"x{place:02}", 0, 1) for place in range(22))

    study.optimize(function, n_trials=1)
    with pytest.warns(UserWarning, match="the first 20"):
        study.optimize(function, n_trials=1)
    assert len(study.trials[-1].params) == 22


def test_a_long_range_of_integers_has_levels_on_its_steps() -> None:
    long = optuna.distributions.IntDistribution(1, 9_999_997, step=3)
    assert len(_parameter(long, 51).values) == 51
    study = optuna.create_study(sampler=Sampler(seed=1))
    study.optimize(lambda trial: trial.suggest_int("x", 1, 9_999_997, step=3) / 1e6, n_trials=5)
    assert all((trial.params["x"] - 1) % 3 == 0 for trial in study.trials)


def test_a_sampler_goes_to_another_process() -> None:
    sampler = pickle.loads(pickle.dumps(Sampler(seed=1)))
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    assert len(study.trials) == 3

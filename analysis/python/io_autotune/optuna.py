"""`Sampler`: our search in Optuna's studies, with its storages and its dashboard."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from io_autotune.errors import Error
from io_autotune.process import Process
from io_autotune.space import Categorical, Float, Int, Ordered, Parameter, Space, nearest

# What the engine's spaces have at most.
MOST_PARAMETERS = 20
# Steps of a range beyond which levels are taken.
MOST_STEPS = 1000
# Samplers take turns; a lock of their own could not go to another process.
_LOCK = threading.Lock()


class Sampler(BaseSampler):
    """Samples what all trials share by `io-autotune optimize`, and the rest at random.

    Nothing is kept here: each trial's values come from the study's trials, so any storage will do.

    Args:
        seed: Of the search, and of what is drawn at random.
        levels: The search is over levels: a float's range, and a long one of integers, has so many.
    """

    def __init__(self, *, seed: int | None = None, levels: int = 51) -> None:
        """Make a sampler."""
        self._independent = RandomSampler(seed=seed)
        self._seed, self._levels = 1 if seed is None else seed, levels
        self._shared = IntersectionSearchSpace()
        # What was given to trials whose values the storage does not have yet.
        self._given: dict[int, dict[str, Any]] = {}

    def reseed_rng(self) -> None:
        """Draw otherwise in another process."""
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self,
        study: Study,
        trial: FrozenTrial,  # noqa: ARG002
    ) -> dict[str, BaseDistribution]:
        """Return what all trials have, but for single values."""
        shared = self._shared.calculate(study)
        several = {name: one for name, one in sorted(shared.items()) if not one.single()}
        if len(several) > MOST_PARAMETERS:
            some = f"the first {MOST_PARAMETERS} by name are searched, the others drawn at random"
            warnings.warn(f"{len(several)} parameters: {some}", stacklevel=2)
        return dict(list(several.items())[:MOST_PARAMETERS])

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:  # noqa: ANN401 - as in Optuna
        """Draw at random what not all trials have."""
        self._raise_error_if_multi_objective(study)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return what the search proposes after the study's trials."""
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        known = {name: _parameter(one, self._levels) for name, one in search_space.items()}
        names = {f"p{place}": name for place, name in enumerate(search_space)}
        space = Space({short: known[name] for short, name in names.items()})
        goal = "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"
        with _LOCK:
            others = study.get_trials(deepcopy=False)
            trials = [one for one in others if one._trial_id != trial._trial_id]
            runs = max(100, 2 * len(trials) + 2)
            options = [f"--runs={runs}", f"--seed={self._seed}", f"--goal={goal}"]
            with closing(Process(space.toml(), options)) as process:
                for one in trials:
                    params = self._given.get(one._trial_id, {}) | one.params
                    if one.state.is_finished():
                        self._given.pop(one._trial_id, None)
                    if _fits(params, search_space) and (told := _told(one)) is not None:
                        level = {n: _level(search_space[n], known[n], params[n]) for n in known}
                        values = space.encode({short: level[n] for short, n in names.items()})
                        _answered(process.ask({"add": {"parametrization": values, **told}}))
                asked = space.decode(_answered(process.ask({"ask": True}))["parametrization"])
            given = {n: _value(search_space[n], asked[short]) for short, n in names.items()}
            self._given[trial._trial_id] = given
        return given


def _answered(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise Error(answer["error"])
    return answer


def _told(trial: FrozenTrial) -> dict[str, object] | None:
    """Return how a trial ended; nothing of one that runs, and none of one that waits."""
    match trial.state:
        case TrialState.COMPLETE if trial.value is not None and math.isfinite(trial.value):
            return {"value": trial.value}
        case TrialState.RUNNING:
            return {}
        case TrialState.WAITING:
            return None
        case TrialState.PRUNED:
            # A heuristic: a loss that falls would have ended lower than what it reported last.
            last = trial.last_step
            value = None if last is None else trial.intermediate_values[last]
            if value is not None and math.isfinite(value):
                return {"value": value, "censored": True}
    return {"failed": True}


def _fits(params: dict[str, Any], space: dict[str, BaseDistribution]) -> bool:
    """Return whether a trial has all of them, each in its range of today."""
    return all(
        name in params and one._contains(one.to_internal_repr(params[name]))
        for name, one in space.items()
    )


def _parameter(distribution: BaseDistribution, levels: int) -> Parameter:
    match distribution:
        case CategoricalDistribution():
            return Categorical(range(len(distribution.choices)))
        case IntDistribution(log=True, low=low, high=high):
            return Ordered(
                sorted({round(one) for one in Float(low, high, log=True, levels=levels).values})
            )
        case IntDistribution(low=low, high=high, step=step) if (high - low) // step >= MOST_STEPS:
            some = Float(low, high, levels=levels).values
            return Ordered(sorted({low + round((one - low) / step) * step for one in some}))
        case IntDistribution():
            return Int(distribution.low, distribution.high, distribution.step)
        case FloatDistribution(low=low, high=high, step=float(step)) if (
            steps := round((high - low) / step) + 1
        ) <= MOST_STEPS:
            return Ordered([low + place * step for place in range(steps)])
        case FloatDistribution():
            return Float(distribution.low, distribution.high, log=distribution.log, levels=levels)
    raise optuna.exceptions.OptunaError(f"{distribution} is a distribution that nobody knows here")


def _level(distribution: BaseDistribution, parameter: Parameter, value: Any) -> object:  # noqa: ANN401
    """Return the parameter's value that is nearest to a trial's."""
    if isinstance(distribution, CategoricalDistribution):
        return int(distribution.to_internal_repr(value))
    values: Sequence[Any] = parameter.values
    if isinstance(values, range):
        return int(value)
    log = isinstance(distribution, (FloatDistribution, IntDistribution)) and distribution.log
    return nearest(values, value, log=log)


def _value(distribution: BaseDistribution, level: Any) -> Any:  # noqa: ANN401
    """Return a trial's value: of a step that is in levels, the nearest."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[level]
    if isinstance(distribution, IntDistribution):
        return int(level)
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        low, step = distribution.low, distribution.step
        return min(low + round((float(level) - low) / step) * step, distribution.high)
    return float(level)

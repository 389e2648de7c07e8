"""A study by Ax that begins from what other studies learnt."""

import logging
import math
import time
import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import pandas as pd
import torch
from ax.adapter.transfer_learning.adapter import transfer_learning_generator_specs_constructor
from ax.core.arm import Arm
from ax.core.auxiliary import AuxiliaryExperimentPurpose
from ax.core.auxiliary_source import AuxiliarySource
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.metric import Metric
from ax.core.objective import Objective
from ax.core.observation import ObservationFeatures
from ax.core.optimization_config import OptimizationConfig
from ax.core.parameter import ChoiceParameter, ParameterType, RangeParameter
from ax.core.search_space import SearchSpace
from ax.exceptions.core import SearchSpaceExhausted
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from peers.tables import Point, Table

from ax_transfer.life import FIT_STEPS, LOOKS, Life

_METRIC = "log_time"
Learnt = list[dict[str, Any]]
"""What a study knows of its points: `parametrization`, `log_ratio` over its default, `runs`."""


def live(table: Table, others: list[Learnt], seed: int, runs: int) -> Life:
    """A study of so many runs, the first of the default; the table answers."""
    began = time.process_time()
    optimizer = AxTransfer(table, others, seed)
    counts: Counter[int] = Counter()
    runs_over_default: list[float] = []
    life = Life([], [], [], 0.0)
    for number in range(1, runs + 1):
        place = table.place(optimizer.ask())
        if place is None:
            raise ValueError(f"{table.name}: Ax left the grid")
        optimizer.tell(math.log(table.draw(place, counts[place], seed)))
        counts[place] += 1
        runs_over_default.append(table.truths[place] / table.truths[table.default])
        if number in LOOKS:
            best = table.place(optimizer.recommend())
            life.recommended.append(table.truths[best or 0] / table.truths[table.best])
            life.average.append(sum(runs_over_default) / number)
            life.harm.append(sum(max(over - 1.0, 0.0) for over in runs_over_default))
    return replace(life, computing=time.process_time() - began)


class AxTransfer:
    """Ax's transfer learning, as its constructor of generators puts it together.

    A Gaussian process of several tasks, one of them the study and one each of the others, whose
    covariances are learnt (`Generators.BOTL`); before each run Ax compares it by cross validation
    with one of the study alone, and takes the better. Noise is inferred.
    """

    packages = ("ax-platform", "botorch", "gpytorch", "numpy", "scipy", "torch")

    def __init__(self, table: Table, others: list[Learnt], seed: int) -> None:
        """A study of `table` that knows what `others` learnt."""
        warnings.filterwarnings("ignore")
        logging.disable(logging.CRITICAL)
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._table = table
        self._varied = [(i, p) for i, p in enumerate(table.parameters) if p.levels > 1]
        sources = []
        for number, learnt in enumerate(others):
            source = self._experiment(f"other-{number}")
            for one in learnt:
                _record(source, self._levels(one["parametrization"]), one["log_ratio"])
            sources.append(AuxiliarySource(experiment=source))
        purpose = AuxiliaryExperimentPurpose.TRANSFERABLE_EXPERIMENT
        self._experiment_of_its_own = self._experiment(
            "study", auxiliary_experiments_by_purpose={purpose: sources}
        )
        specs, selector = transfer_learning_generator_specs_constructor(
            mll_kwargs={"optimizer_kwargs": {"options": {"maxiter": FIT_STEPS}}}
        )
        node = GenerationNode(name="transfer", generator_specs=specs, best_model_selector=selector)
        self._strategy = GenerationStrategy(nodes=[node])
        self._runs: list[Point] = []

    def _experiment(self, name: str, **more: Any) -> Experiment:  # noqa: ANN401 - passed on
        parameters: list[Any] = [
            RangeParameter(p.name, ParameterType.INT, 0, p.levels - 1)
            if p.ordered
            else ChoiceParameter(
                p.name,
                ParameterType.INT,
                list(range(p.levels)),
                is_ordered=False,
                sort_values=True,
            )
            for _, p in self._varied
        ]
        objective = Objective(metric=Metric(_METRIC, lower_is_better=True), minimize=True)
        return Experiment(
            search_space=SearchSpace(parameters),
            name=name,
            optimization_config=OptimizationConfig(objective),
            **more,
        )

    def _levels(self, parametrization: dict[str, Any]) -> dict[str, int]:
        return {p.name: p.values.index(parametrization[p.name]) for _, p in self._varied}

    def ask(self) -> Point:
        """What to run next: first the default; its recommendation, when all points have run."""
        point = self._table.points[self._table.default]
        if self._runs:
            point = self._next() or self._predicted_best()
        self._runs.append(point)
        return point

    def _next(self) -> Point | None:
        """Fits its processes to what has run, and takes a new point; none when all have run."""
        try:
            run = self._strategy.gen_single_trial(self._experiment_of_its_own)
        except SearchSpaceExhausted:
            return None
        return self._point(run.arms[0].parameters)

    def _point(self, parameters: dict[str, Any]) -> Point:
        return tuple(int(parameters.get(p.name, 0)) for p in self._table.parameters)

    def _given(self, point: Point) -> dict[str, int]:
        return {p.name: point[i] for i, p in self._varied}

    def tell(self, log_time: float) -> None:
        """What the run that was asked for took: the natural logarithm of its seconds."""
        _record(self._experiment_of_its_own, self._given(self._runs[-1]), log_time)

    def recommend(self) -> Point:
        """The lowest prediction among what has run, by the process of the next run."""
        if len(self._runs) == 1:
            return self._runs[0]
        self._next()
        return self._predicted_best()

    def _predicted_best(self) -> Point:
        tried = sorted(set(self._runs))
        features = [ObservationFeatures(parameters=dict(self._given(one))) for one in tried]
        means, _ = self._strategy.adapter.predict(features)
        return min(zip(means[_METRIC], tried, strict=True))[1]


def _record(experiment: Experiment, parameters: dict[str, int], log_time: float) -> None:
    """Adds a run: an arm, and what it took with unknown noise."""
    trial = experiment.new_trial()
    trial.add_arm(Arm(dict(parameters)))
    trial.mark_running(no_runner_required=True)
    row = {
        "arm_name": trial.arm.name,
        "metric_name": _METRIC,
        "metric_signature": _METRIC,
        "mean": log_time,
        "sem": math.nan,
        "trial_index": trial.index,
    }
    experiment.attach_data(Data(df=pd.DataFrame([row])))
    trial.mark_completed()

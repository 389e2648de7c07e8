"""The peers: one adapter each, with the settings that its authors ship.

Each adapter asks for the default first. Ordered parameters are integers, their levels (as in
io-autotune's methods); others are categories; parameters with one value are left out. The objective
is log time; `tell` gets None for a failed run (outside the table).
"""

import itertools
import logging
import math
import random
import tempfile
import warnings
from importlib.metadata import version
from typing import Any, ClassVar, Protocol

from peers.tables import Parameter, Point, Table


class Optimizer(Protocol):
    """One study of a peer."""

    packages: ClassVar[tuple[str, ...]]
    """Those behind it."""

    def __init__(self, table: Table, seed: int, budget: int) -> None:
        """A study of so many runs."""

    def ask(self) -> Point:
        """What to run next."""

    def tell(self, log_time: float | None) -> None:
        """What the run that was asked for took: the natural logarithm of its seconds."""

    def recommend(self) -> Point | None:
        """Its own recommendation; None if it has none but the lowest time it saw."""


class Random:
    """Every point equally likely, with replacement."""

    packages = ()

    def __init__(self, table: Table, seed: int, budget: int) -> None:  # noqa: ARG002 - as all of them
        """A study of `table`."""
        self._table = table
        self._generator = random.Random(seed)
        self._first = True

    def ask(self) -> Point:
        """See `Optimizer`."""
        if self._first:
            self._first = False
            return self._table.points[self._table.default]
        return tuple(self._generator.randrange(p.levels) for p in self._table.parameters)

    def tell(self, log_time: float | None) -> None:
        """See `Optimizer`."""

    def recommend(self) -> None:
        """See `Optimizer`."""


class _Optuna:
    """Optuna through its ask-and-tell interface; the default is enqueued."""

    def __init__(self, table: Table, seed: int, budget: int) -> None:  # noqa: ARG002 - as all of them
        """A study of `table`."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        self._table = table
        self._failed = optuna.trial.TrialState.FAIL
        self._study = optuna.create_study(sampler=self._sampler(optuna, seed))
        default = zip(table.parameters, table.points[table.default], strict=True)
        self._study.enqueue_trial({p.name: level for p, level in default if p.levels > 1})
        self._trial: Any = None

    @staticmethod
    def _sampler(optuna: Any, seed: int) -> Any:  # noqa: ANN401 - loaded when it is used
        raise NotImplementedError

    def _suggest(self, parameter: Parameter) -> int:
        if parameter.levels == 1:
            return 0
        if parameter.ordered:
            return self._trial.suggest_int(parameter.name, 0, parameter.levels - 1)
        return self._trial.suggest_categorical(parameter.name, list(range(parameter.levels)))

    def ask(self) -> Point:
        """See `Optimizer`."""
        self._trial = self._study.ask()
        return tuple(self._suggest(parameter) for parameter in self._table.parameters)

    def tell(self, log_time: float | None) -> None:
        """See `Optimizer`."""
        if log_time is None:
            self._study.tell(self._trial, state=self._failed)
        else:
            self._study.tell(self._trial, log_time)

    def recommend(self) -> None:
        """See `Optimizer`. Optuna's `best_params` are those of the lowest time it saw."""


class OptunaTpe(_Optuna):
    """Optuna's tree-structured Parzen estimator."""

    packages = ("optuna", "numpy")

    @staticmethod
    def _sampler(optuna: Any, seed: int) -> Any:  # noqa: ANN401 - loaded when it is used
        return optuna.samplers.TPESampler(seed=seed)


class OptunaGp(_Optuna):
    """Optuna's Gaussian process, told that the objective is noisy (its default)."""

    packages = ("optuna", "numpy", "scipy", "torch")

    @staticmethod
    def _sampler(optuna: Any, seed: int) -> Any:  # noqa: ANN401 - loaded when it is used
        return optuna.samplers.GPSampler(seed=seed, deterministic_objective=False)


class Smac:
    """SMAC3, facade for hyperparameter optimisation, told that the objective is noisy.

    It runs incumbents and their challengers again, up to 3 times. Its forest is fitted anew after
    eight new parametrizations.
    """

    packages = ("smac", "ConfigSpace", "numpy", "scipy", "scikit-learn")

    def __init__(self, table: Table, seed: int, budget: int) -> None:
        """A study of `table`."""
        logging.disable(logging.CRITICAL)
        import ConfigSpace
        from smac import HyperparameterOptimizationFacade, Scenario
        from smac.main.exceptions import ConfigurationSpaceExhaustedException
        from smac.runhistory import StatusType, TrialInfo, TrialValue

        # With every forest it says that there is one process.
        warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")

        self._table = table
        self._statuses, self._value = StatusType, TrialValue
        self._exhausted = ConfigurationSpaceExhaustedException
        space = ConfigSpace.ConfigurationSpace(seed=seed)
        default = dict(
            zip((p.name for p in table.parameters), table.points[table.default], strict=True)
        )
        for parameter in table.parameters:
            if parameter.levels == 1:
                continue
            if parameter.ordered:
                of = ConfigSpace.Integer(
                    parameter.name, (0, parameter.levels - 1), default=default[parameter.name]
                )
            else:
                of = ConfigSpace.Categorical(
                    parameter.name, list(range(parameter.levels)), default=default[parameter.name]
                )
            space.add(of)
        self._directory = tempfile.TemporaryDirectory(prefix="bench-peers-")
        scenario = Scenario(
            space,
            n_trials=budget,
            seed=seed,
            deterministic=False,
            output_directory=self._directory.name,
        )
        self._smac = HyperparameterOptimizationFacade(
            scenario,
            self._never,
            overwrite=True,
            logging_level=False,
        )
        # Told before the first question: SMAC takes the run into its races, with its seed.
        self._asked = TrialInfo(config=space.get_default_configuration(), seed=seed)
        self._first = True
        self._slowest = -math.inf

    @staticmethod
    def _never(config: Any, seed: int = 0) -> float:  # noqa: ANN401 - SMAC wants it, and asks through `ask`
        raise NotImplementedError

    def _point(self, config: Any) -> Point:  # noqa: ANN401 - loaded when it is used
        return tuple(int(config[p.name]) if p.levels > 1 else 0 for p in self._table.parameters)

    def ask(self) -> Point:
        """See `Optimizer`. When SMAC has nothing left to try, its incumbent is run."""
        if not self._first and self._asked is not None:
            try:
                self._asked = self._smac.ask()
            except (StopIteration, self._exhausted):
                self._asked = None
        self._first = False
        if self._asked is None:
            return self.recommend() or self._table.points[self._table.default]
        return self._point(self._asked.config)

    def tell(self, log_time: float | None) -> None:
        """See `Optimizer`. A failed run costs as much as the slowest so far."""
        if self._asked is None:
            return
        if log_time is None:
            cost, status = max(self._slowest, 0.0), self._statuses.CRASHED
        else:
            self._slowest = max(self._slowest, log_time)
            cost, status = log_time, self._statuses.SUCCESS
        self._smac.tell(self._asked, self._value(cost=cost, status=status), save=False)

    def recommend(self) -> Point | None:
        """See `Optimizer`. SMAC's incumbent."""
        incumbents = self._smac.intensifier.get_incumbents()
        return self._point(incumbents[0]) if incumbents else None


class CatCma:
    """CatCMA with margin (package cmaes).

    The default takes the place of one solution of its first generation (Hansen's injection). The
    generation is drawn around the middle of the space, as its authors ship it: the library fails on
    a start at the edge, and one near the default was worse on the stand-in for the burst buffers.
    """

    packages = ("cmaes", "numpy", "scipy")

    def __init__(self, table: Table, seed: int, budget: int) -> None:  # noqa: ARG002 - as all of them
        """A study of `table`."""
        from cmaes import CatCMAwM

        self._table = table
        places = range(len(table.parameters))
        # Its authors: two values are better given as categories.
        self._ordered = [i for i in places if self._levels(i) > 2 and table.parameters[i].ordered]  # noqa: PLR2004
        self._sets = [i for i in places if self._levels(i) > 1 and i not in self._ordered]
        self._optimizer = CatCMAwM(
            z_space=[list(range(self._levels(i))) for i in self._ordered] or None,
            c_space=[self._levels(i) for i in self._sets] or None,
            seed=seed,
        )
        self._solution: Any = None
        self._generation: list[tuple[Any, float]] = []
        self._first = True

    def _levels(self, place: int) -> int:
        return self._table.parameters[place].levels

    def _injected(self, point: Point) -> Any:  # noqa: ANN401 - loaded when it is used
        """A solution that stands for a point: one-hot categories, and a sample at the point."""
        import numpy as np

        z = np.array([float(point[i]) for i in self._ordered]) if self._ordered else None
        c = None
        if self._sets:
            c = np.zeros((len(self._sets), max(map(self._levels, self._sets))), dtype=bool)
            c[range(len(self._sets)), [point[i] for i in self._sets]] = True
        return type(self._solution)(None, z, c, z)

    def ask(self) -> Point:
        """See `Optimizer`."""
        self._solution = self._optimizer.ask()
        if self._first:
            self._first = False
            self._solution = self._injected(self._table.points[self._table.default])
        point = [0] * len(self._table.parameters)
        for nth, place in enumerate(self._ordered):
            point[place] = int(self._solution.z[nth])
        for nth, place in enumerate(self._sets):
            point[place] = int(self._solution.c[nth].argmax())
        return tuple(point)

    def tell(self, log_time: float | None) -> None:
        """See `Optimizer`."""
        self._generation.append((self._solution, math.inf if log_time is None else log_time))
        if len(self._generation) == self._optimizer.population_size:
            self._optimizer.tell(self._generation)
            self._generation = []

    def recommend(self) -> None:
        """See `Optimizer`."""


class Ax:
    """Ax through its client: the generation strategy that it chooses by itself, noise inferred.

    The default is attached as the baseline. Its design is of Sobol's points, then BoTorch's noisy
    expected improvement on a Gaussian process.
    """

    packages = ("ax-platform", "botorch", "gpytorch", "numpy", "scipy", "torch")

    _OBJECTIVE = "log_time"

    def __init__(self, table: Table, seed: int, budget: int) -> None:  # noqa: ARG002 - as all of them
        """A study of `table`."""
        warnings.filterwarnings("ignore")
        logging.disable(logging.CRITICAL)
        import torch
        from ax.api.client import Client
        from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

        torch.set_num_threads(1)
        self._table = table
        self._client = Client(random_seed=seed)
        self._client.configure_experiment(
            [
                RangeParameterConfig(p.name, bounds=(0, p.levels - 1), parameter_type="int")
                if p.ordered
                else ChoiceParameterConfig(
                    p.name, values=list(range(p.levels)), parameter_type="int", is_ordered=False
                )
                for p in table.parameters
                if p.levels > 1
            ]
        )
        self._client.configure_optimization(objective=f"-{self._OBJECTIVE}")
        self._trial: int | None = None
        self._first = True

    def ask(self) -> Point:
        """See `Optimizer`. When Ax has nothing new to try, its recommendation is run."""
        from ax.exceptions.core import AxError

        if self._first:
            self._first = False
            default = self._table.points[self._table.default]
            given = {
                p.name: level
                for p, level in zip(self._table.parameters, default, strict=True)
                if p.levels > 1
            }
            self._trial = self._client.attach_baseline(given)
            return default
        try:
            ((self._trial, parameters),) = self._client.get_next_trials(max_trials=1).items()
        except (AxError, ValueError):
            self._trial = None
            return self.recommend() or self._table.points[self._table.default]
        return self._point(parameters)

    def _point(self, parameters: Any) -> Point:  # noqa: ANN401 - loaded when it is used
        return tuple(int(parameters.get(p.name, 0)) for p in self._table.parameters)

    def tell(self, log_time: float | None) -> None:
        """See `Optimizer`."""
        if self._trial is None:
            return
        if log_time is None:
            self._client.mark_trial_failed(self._trial)
        else:
            self._client.complete_trial(self._trial, {self._OBJECTIVE: log_time})

    def recommend(self) -> Point | None:
        """See `Optimizer`. Ax's best by its model's prediction."""
        best = self._client.get_best_parameterization(use_model_predictions=True)
        return self._point(best[0])


class BoTorch:
    """BoTorch's logarithmic noisy expected improvement, as its documentation puts it together.

    A Gaussian process with inferred noise (its own priors), a mixed kernel where there are
    categories; ten of Sobol's points with the default first; the acquisition is maximised over all
    points of a space of up to 4,096, else over so many drawn. A failed run counts as the slowest.
    """

    packages = ("botorch", "gpytorch", "numpy", "scipy", "torch")

    _DESIGN = 10
    _MOST_POINTS = 4096

    def __init__(self, table: Table, seed: int, budget: int) -> None:  # noqa: ARG002 - as all of them
        """A study of `table`."""
        warnings.filterwarnings("ignore")
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self._torch = torch
        self._levels = [p.levels for p in table.parameters]
        varied = [i for i, levels in enumerate(self._levels) if levels > 1]
        self._varied = varied
        self._categories = [
            nth for nth, place in enumerate(varied) if not table.parameters[place].ordered
        ]
        size = math.prod(self._levels)
        generator = random.Random(seed)
        if size <= self._MOST_POINTS:
            self._points = list(itertools.product(*(range(levels) for levels in self._levels)))
        else:
            self._points = [
                tuple(generator.randrange(levels) for levels in self._levels)
                for _ in range(self._MOST_POINTS)
            ]
        sobol = torch.quasirandom.SobolEngine(len(varied), scramble=True, seed=seed)
        design = [
            self._whole([int(u * self._levels[i]) for u, i in zip(row, varied, strict=True)])
            for row in sobol.draw(self._DESIGN - 1).tolist()
        ]
        self._design = [table.points[table.default], *design]
        self._runs: list[Point] = []
        self._values: list[float | None] = []

    def _whole(self, of_varied: list[int]) -> Point:
        point = [0] * len(self._levels)
        for place, level in zip(self._varied, of_varied, strict=True):
            point[place] = level
        return tuple(point)

    def _inputs(self, points: list[Point]) -> Any:  # noqa: ANN401 - loaded when it is used
        """Levels from 0 to 1; a category's stay whole numbers, as the mixed kernel wants them."""
        whole = {self._varied[nth] for nth in self._categories}
        rows = [
            [p[i] if i in whole else p[i] / (self._levels[i] - 1) for i in self._varied]
            for p in points
        ]
        return self._torch.tensor(rows, dtype=self._torch.double)

    def _model(self) -> Any:  # noqa: ANN401 - loaded when it is used
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MixedSingleTaskGP, SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        slowest = max((value for value in self._values if value is not None), default=0.0)
        outcomes = [[-(slowest if value is None else value)] for value in self._values]
        x, y = self._inputs(self._runs), self._torch.tensor(outcomes, dtype=self._torch.double)
        if self._categories:
            model = MixedSingleTaskGP(x, y, cat_dims=self._categories)
        else:
            model = SingleTaskGP(x, y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def ask(self) -> Point:
        """See `Optimizer`."""
        from botorch.acquisition import qLogNoisyExpectedImprovement
        from botorch.optim import optimize_acqf_discrete

        if len(self._runs) < len(self._design):
            point = self._design[len(self._runs)]
        else:
            inputs = self._inputs(self._points)
            acquisition = qLogNoisyExpectedImprovement(
                self._model(), self._inputs(self._runs), prune_baseline=True
            )
            chosen, _ = optimize_acqf_discrete(acquisition, q=1, choices=inputs)
            point = self._points[int((inputs == chosen).all(dim=1).nonzero()[0])]
        self._runs.append(point)
        return point

    def tell(self, log_time: float | None) -> None:
        """See `Optimizer`."""
        self._values.append(log_time)

    def recommend(self) -> Point:
        """See `Optimizer`. The lowest posterior mean among the parametrizations that have run."""
        tried = [p for p, value in zip(self._runs, self._values, strict=True) if value is not None]
        mean = self._model().posterior(self._inputs(tried)).mean
        return tried[int(mean.argmax())]


PEERS: dict[str, type[Optimizer]] = {
    "optuna-tpe": OptunaTpe,
    "optuna-gp": OptunaGp,
    "smac3": Smac,
    "catcmawm": CatCma,
    "ax": Ax,
    "botorch": BoTorch,
    "random": Random,
}
COSTLY = frozenset({"ax", "botorch"})
"""Those of which a study of 50 runs takes two minutes of a processor or more."""


def versions(peer: str) -> dict[str, str]:
    """The packages behind a peer, with their versions."""
    return {package: version(package) for package in PEERS[peer].packages}

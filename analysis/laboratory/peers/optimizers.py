"""The peers: one adapter each, with the settings that its authors ship.

Each adapter asks for the default first. Ordered parameters are integers, their levels (as in
io-autotune's methods); others are categories; parameters with one value are left out. The objective
is log time; `tell` gets None for a failed run (outside the table).
"""

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


PEERS: dict[str, type[Optimizer]] = {
    "optuna-tpe": OptunaTpe,
    "optuna-gp": OptunaGp,
    "smac3": Smac,
    "catcmawm": CatCma,
    "random": Random,
}


def versions(peer: str) -> dict[str, str]:
    """The packages behind a peer, with their versions."""
    return {package: version(package) for package in PEERS[peer].packages}
